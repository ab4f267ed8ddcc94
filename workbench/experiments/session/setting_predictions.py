"""SettingPredictions: what the settings of a session would give, from its newest trace."""

from __future__ import annotations

import threading

from workbench.core.options import Optimizations, StageOptions
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.core.what_if.what_if import Predictor
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.program_facts import ProgramFacts
from workbench.experiments.session.scenarios import like_baseline, scenario_beside
from workbench.experiments.what_if.predict import every_setting


class SettingPredictions:
    """Predicts settings of one program; what a trace says is worked out once and kept.

    Attributes:
      learned: what is known of the program's graphs; another value takes its place as a whole.
    """

    def __init__(
        self, program: ProgramFacts, baseline: Optimizations, learned: LearnedGraphs
    ) -> None:
        self.learned = learned
        self._program, self._baseline = program, baseline
        self._lock = threading.Lock()
        self._made: tuple[Trace, LearnedGraphs, Predictor] | None = None

    def of(self, optimizations: Optimizations, trace: Trace) -> Predicted | Withheld:
        """What a setting would give, or why nothing is known of that; `trace` is the baseline's."""
        scenario = scenario_beside(self._baseline, optimizations, self._program.batch_size)
        if isinstance(scenario, Withheld):
            return scenario
        unknown = self.learned.unknown(optimizations)
        if unknown:
            return Withheld(scenario=scenario, reason=unknown)
        return self.predictor(trace).answer(scenario)

    def of_all(self, trace: Trace) -> Predictions:
        """What every combination of toggles would give."""
        return self.predictor(trace).predictions(self._scenarios())

    def predictor(self, trace: Trace) -> Predictor:
        """What predicts from this trace."""
        with self._lock:
            made, learned = self._made, self.learned
            if made is None or made[0] is not trace or made[1] is not learned:
                made = self._made = (trace, learned, learned.predictor(trace, self._baseline))
            return made[2]

    def _scenarios(self) -> list[Scenario]:
        """Every combination of toggles, with the threads and the batch of the baseline."""
        wishes = every_setting(
            self._baseline.stage or StageOptions(),
            self.learned.smart_stage,
            own_stage=not self._program.is_function,
        )
        beside = [
            scenario_beside(self._baseline, like_baseline(self._baseline, wish), None)
            for wish in wishes
        ]
        return [each for each in beside if isinstance(each, Scenario)]
