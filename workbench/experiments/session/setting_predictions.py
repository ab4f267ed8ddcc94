"""SettingPredictions: what the settings of a session would give, from its newest trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.core.what_if.what_if import Predictor
from workbench.errors import WorkbenchError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import PREDICT
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.refusals import refusal_of
from workbench.experiments.session.learned_graphs import LearnedGraphs, learned_graphs
from workbench.experiments.session.program_facts import ProgramFacts
from workbench.experiments.session.scenarios import (
    like_baseline,
    scenario_beside,
    traced_scenario,
)
from workbench.experiments.what_if.ceilings import ceiling_scenarios
from workbench.experiments.what_if.predict import every_setting
from workbench.experiments.worker.wire.cancellation import require_not_cancelled

CANCELLED_AFTER_RUN = (
    "Cancelled after the run, which is kept; what other settings would give may not be known; no "
    "process is left."
)
_PREDICTING = "Predicting the other settings"
_NO_STAGE = "a tf.function is staged as a whole, so it has no stage of your own"


class SettingPredictions:
    """Predicts settings of one program; what a trace says is worked out once and kept.

    Attributes:
      known: what is known of the program's graphs; None until they were built. Another value takes
        its place as a whole.
    """

    def __init__(
        self,
        program: ProgramFacts,
        baseline: Optimizations,
        known: LearnedGraphs | None,
        *,
        unknown: str,
    ) -> None:
        """Nothing is predicted yet.

        Args:
          program: whose settings they are.
          baseline: what its traces are of.
          known: what is known of its graphs.
          unknown: why nothing is, as long as that is so: a clause.
        """
        self.known = known
        self._nothing = LearnedGraphs(problem=unknown)
        self._program, self._baseline = program, baseline
        self._lock = threading.Lock()
        self._predictors: list[tuple[Trace, LearnedGraphs, Predictor]] = []

    @property
    def learned(self) -> LearnedGraphs:
        """What is known of the graphs, or why nothing is."""
        return self.known or self._nothing

    def learn(self, program: AnyProgram, progress: bool | Callable[[str], None]) -> None:
        """Builds the program's graphs in a child process.

        Raises:
          RunError, KeyboardInterrupt: as `compare`.
        """
        self.known = learned_graphs(program, self._baseline, progress)

    def foresee(
        self,
        program: AnyProgram,
        traces: Sequence[Trace],
        progress: bool | Callable[[str], None],
    ) -> None:
        """Predicts every combination of toggles after a run, once the program's graphs are known.

        Where they cannot be built, the reason is kept in their place. Where a trace cannot be
        simulated, predictions say so, and the graphs are kept.

        Raises:
          KeyboardInterrupt: another thread cancelled, or Ctrl-C.
        """
        try:
            if self.known is None:
                self._learn_or_say(program, progress)
            if isinstance(progress, Progress):
                progress.phase(_PREDICTING, PREDICT)
            elif callable(progress):
                progress(_PREDICTING)
            self.of_all(traces)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(CANCELLED_AFTER_RUN) from None

    def _learn_or_say(self, program: AnyProgram, progress: bool | Callable[[str], None]) -> None:
        try:
            self.learn(program, progress)
        except WorkbenchError as error:
            self.known = LearnedGraphs(problem=f"its graph could not be built: {error}")

    def of(self, optimizations: Optimizations, traces: Sequence[Trace]) -> Predicted | Withheld:
        """What a setting would give, or why nothing is known of that.

        Args:
          optimizations: the setting.
          traces: of the baseline, the newest first; one at least.
        """
        scenario = scenario_beside(self._baseline, optimizations, self._program.batch_size)
        if isinstance(scenario, Withheld):
            return scenario
        unknown = self.learned.unknown(optimizations) or self._impossible(optimizations)
        if self._program.is_function and optimizations.stage:
            unknown = _NO_STAGE
        if unknown:
            return Withheld(scenario=scenario, reason=unknown)
        return self._predictor(traces).answer(scenario)

    def untraced_ms(self, traces: Sequence[Trace]) -> float | None:
        """Time of an untraced step beside the trace that predictions are made from."""
        replay = self._predictor(traces).replay
        return replay.untraced_ms if replay is not None else None

    def of_all(self, traces: Sequence[Trace]) -> Predictions:
        """What every combination of toggles would give; a cancelled thread stops early.

        Raises:
          KeyboardInterrupt: another thread cancelled.
        """
        made, scenarios = self._predictor(traces), self._scenarios()
        for scenario in scenarios:
            require_not_cancelled()
            made.answer(scenario)
        return made.predictions(scenarios)

    def ceilings(self, traces: Sequence[Trace]) -> Predictions:
        """What a step of the baseline would take without each kind of work."""
        scenarios = ceiling_scenarios(traced_scenario(self._baseline))
        return self._predictor(traces).predictions(scenarios)

    def _predictor(self, traces: Sequence[Trace]) -> Predictor:
        """What predicts from the newest trace whose replay holds; of none the newest says why."""
        with self._lock:
            made = [self._of_trace(trace) for trace in traces[:1]]
            for trace in traces[1:]:
                if made[-1].holds:
                    break
                made.append(self._of_trace(trace))
        return made[-1] if made[-1].holds else made[0]

    def _of_trace(self, trace: Trace) -> Predictor:
        learned = self.learned
        for known, its_graphs, predictor in self._predictors:
            if known is trace and its_graphs is learned:
                return predictor
        try:
            predictor = learned.predictor(trace, self._baseline)
        except WorkbenchError as error:
            predictor = Predictor(
                title=trace.meta.title,
                traced=traced_scenario(self._baseline),
                graphs=learned.graphs,
                problem=f"its trace could not be simulated: {error}",
            )
        kept = [each for each in self._predictors if each[1] is learned]
        self._predictors = [*kept, (trace, learned, predictor)]
        return predictor

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
        known = [each for each in beside if isinstance(each, Scenario)]
        return [each for each in known if not self._impossible(each.optimizations)]

    def _impossible(self, setting: Optimizations) -> str:
        refused = refusal_of(setting, is_function=self._program.is_function)
        return f"the program cannot have {refused}" if refused else ""
