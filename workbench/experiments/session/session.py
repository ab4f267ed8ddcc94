"""Session: a program, its runs one after the other, and what its other settings would give."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens, make_lens
from workbench.core.boundary.boundary import Boundary
from workbench.core.optimizations import Optimizations
from workbench.core.options import require_at_least
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.meta import EXECUTOR
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.errors import OptionError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.amounts import require_seconds, seconds_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import (
    AnyProgram,
    require_possible,
    require_program,
)
from workbench.experiments.program.toggles import own_choices
from workbench.experiments.search.best import Best
from workbench.experiments.search.find_best import find_best
from workbench.experiments.session.background import Job, Turn
from workbench.experiments.session.baseline_graph import baseline_graph
from workbench.experiments.session.foreseen_phases import (
    first_wait,
    learn_phases_of_predictions,
    phases_of_predictions,
    seconds_of_predictions,
)
from workbench.experiments.session.kept_runs import KeptRuns
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.own_toggles import (
    completed,
    keeps_training,
    own_toggles,
    require_own,
)
from workbench.experiments.session.program_facts import ProgramFacts
from workbench.experiments.session.ratios import ratio_between
from workbench.experiments.session.run import (
    Run,
    comparisons_of,
    require_setting,
    require_settings,
    runs_of,
)
from workbench.experiments.session.run_edits import RunEdits
from workbench.experiments.session.saved.session import SavedSession, write_session
from workbench.experiments.session.setting_predictions import SettingPredictions
from workbench.experiments.worker.wire.cancellation import require_not_cancelled
from workbench.experiments.worker.wire.messages import DescribedGraph

_NOT_LEARNED = "the program's graph for it is not built yet; run a setting, or call learn_graphs()"
_NO_PROGRAM = "the session was loaded, and the program's graph for it was not saved with it"


class Session:
    """One program: settings of it are run one after the other, each beside the baseline.

    Every run is kept. The first run traces the baseline and makes the program's graphs known. From
    then on, what any other setting would give is predicted in milliseconds.

    Methods may be called from any thread; two runs at the same time are refused, since they would
    slow each other.

    Attributes:
      best: what the last search found; None before one.
      stop_when_clear: whether the blocks of a run end once its ratio is clear, as of `compare`.
    """

    def __init__(
        self,
        program: AnyProgram,
        *,
        toggles: Sequence[Toggle] = (),
        baseline: Optimizations | None = None,
        budget_s: float = 30.0,
        trace_steps: int = 30,
        stop_when_clear: bool = False,
    ) -> None:
        """Nothing is run yet.

        Args:
          program: what is run.
          toggles: those of the program's author. Each setting has a choice of each, the usual one
            unless it says another.
          baseline: the setting that the others are compared with; None means all off.
          budget_s: seconds for each run, as of `compare`. What the first run learns of the
            program's graphs comes after that; how long is said first.
          trace_steps: steps to trace of each run; 0 traces nothing, so that nothing is predicted.
          stop_when_clear: whether the blocks of a run end once its ratio is clear, as of `compare`.

        Raises:
          OptionError: no program, no toggle, or a number out of range.
        """
        require_program(program)
        require_at_least("trace_steps", trace_steps, 0)
        require_seconds("budget_s", budget_s)
        saved = SavedSession(
            program=ProgramFacts.of(program),
            baseline=require_setting(baseline or Optimizations()),
            budget_s=budget_s,
            trace_steps=trace_steps,
            stop_when_clear=stop_when_clear,
        )
        self._begin(saved, program, toggles)

    @classmethod
    def restored(
        cls, saved: SavedSession, program: AnyProgram | None, toggles: Sequence[Toggle] = ()
    ) -> Session:
        """A session that goes on where it was saved; without its program nothing can be run.

        Args:
          saved: what it holds.
          program: what is run.
          toggles: of the program's author, in the place of those in the file.
        """
        session = cls.__new__(cls)
        session._begin(saved, program, toggles)
        return session

    def _begin(
        self, saved: SavedSession, program: AnyProgram | None, toggles: Sequence[Toggle]
    ) -> None:
        own = require_own(toggles)
        given = {each.name for each in own}
        kept = (each for each in own_toggles([saved.baseline]) if each.name not in given)
        self._own = (*own, *kept)
        self.baseline = self.completed(saved.baseline)
        if program is not None:
            require_possible(program, self.baseline)
        self.program = program
        self.budget_s, self.trace_steps = saved.budget_s, saved.trace_steps
        self._facts = saved.program
        self.stop_when_clear = saved.stop_when_clear
        self.best: Best | None = None
        self._kept = KeptRuns(
            [
                dataclasses.replace(run, optimizations=self.completed(run.optimizations))
                for run in saved.runs
            ]
        )
        self._samples: dict[Optimizations, Trace] = {}
        self._turn = Turn(saved.program.name)
        self._foreseen = SettingPredictions(
            saved.program,
            self.baseline,
            saved.learned,
            unknown=_NO_PROGRAM if program is None else _NOT_LEARNED,
        )

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {len(self.runs)} runs)"

    @property
    def name(self) -> str:
        """The program's name."""
        return self._facts.name

    @property
    def program_is_function(self) -> bool:
        """Whether the program is a FunctionProgram, which cannot have every choice."""
        return self._facts.is_function

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, the oldest first."""
        return self._kept.runs

    def run_numbered(self, number: int) -> Run:
        """The run of a number.

        Raises:
          OptionError: there is none, or it was deleted.
        """
        return self._kept.numbered(number)

    def describe_run(self, number: int, **words: str) -> Run:
        """Gives a run a name, a note or a group of the user's own; `undo` takes it back.

        Args:
          number: of the run.
          **words: `name`, `note` and `group`; "" takes one away, what is missing stays.

        Returns:
          The run as it is then.

        Raises:
          OptionError: no such run, another word, or a text that is too long.
        """
        unknown = sorted(words.keys() - {"name", "note", "group"})
        if unknown:
            raise OptionError(f"a run has no {unknown[0]!r}; expected name=, note= or group=")
        self.run_numbered(number)
        self._kept.edit(lambda edits: edits.described(number, words))
        return self.run_numbered(number)

    def delete_run(self, number: int) -> None:
        """Leaves a run out; `undo` brings it back, and a saved session lacks it.

        Raises:
          OptionError: there is no such run.
        """
        self.run_numbered(number)
        self._kept.edit(lambda edits: edits.without(number))

    def undo(self) -> bool:
        """Takes back the last name, note, group or deletion; returns whether there was one."""
        return self._kept.undo()

    def redo(self) -> bool:
        """Does again what was taken back last; returns whether there was anything."""
        return self._kept.redo()

    @property
    def run_edits(self) -> RunEdits:
        """Names, notes, groups and deletions of runs, as they are now."""
        return self._kept.edits

    def edit_runs(self, edits: RunEdits) -> None:
        """Has these names, notes, groups and deletions in the place of those that are; a change."""
        self._kept.edit(lambda _: edits)

    def require_free(self) -> None:
        """Requires that nothing runs, so that a run can begin.

        Raises:
          OptionError: a run goes on.
        """
        self._turn.require_free()

    @property
    def toggles(self) -> tuple[Toggle, ...]:
        """Those of the program's author: which were given, then others that runs have."""
        known = {each.name for each in self._own}
        others = own_toggles(run.optimizations for run in self.runs)
        return (*self._own, *(each for each in others if each.name not in known))

    def completed(self, optimizations: Optimizations) -> Optimizations:
        """A setting as it is run here: each of the author's toggles stands somewhere."""
        return completed(require_setting(optimizations), self._own)

    def run_of(self, optimizations: Optimizations) -> Run | None:
        """The newest run of a setting; None where it was not run."""
        wish = self.completed(optimizations)
        own = (run for run in reversed(self.runs) if run.optimizations == wish)
        return next(own, None)

    def ratio(self, run: Run, to: Run) -> Ratio | None:
        """How many times as fast one run is as another one; see `ratios.ratio_between`."""
        return ratio_between(run, to)

    def run(
        self,
        optimizations: Optimizations | None = None,
        *,
        progress: bool | Callable[[str], None] = True,
    ) -> Run:
        """Measures a setting beside the baseline, in child processes, and keeps it.

        The first run adds the baseline's own, too, and then builds the program's graphs, for
        `predict`; where that fails, `predict` says why.

        Args:
          optimizations: the setting; None measures the baseline alone.
          progress: as of `compare`.

        Returns:
          The run of the setting.

        Raises:
          OptionError: what `compare` refuses, another run that goes on, or a session without its
            program.
          PlanError, RunError, KeyboardInterrupt: as `compare`.
        """
        program, wish = self._ready(optimizations)
        with self._turn.alone():
            return self._measured(program, wish, progress)

    def start(
        self,
        optimizations: Optimizations | None = None,
        *,
        on_progress: Callable[[str], None] | None = None,
        on_end: Callable[[Job[Run]], None] | None = None,
    ) -> Job[Run]:
        """The same as `run`, on a thread of its own.

        Args:
          optimizations: the setting; None measures the baseline alone.
          on_progress: called with each line of progress, on that thread.
          on_end: called with the job once it is over, on that thread.

        Raises:
          OptionError: another run goes on, the program cannot have the setting, or a session
            without its program. What goes wrong later is the job's `error`.
        """
        program, wish = self._ready(optimizations)
        return self._turn.start(lambda say: self._measured(program, wish, say), on_progress, on_end)

    def start_search(
        self,
        *,
        budget: float | str = "2min",
        memory: float | str | None = None,
        on_progress: Callable[[str], None] | None = None,
        on_end: Callable[[Job[Best]], None] | None = None,
    ) -> Job[Best]:
        """Searches the fastest setting, as `find_best` does, on a thread of its own.

        Toggles of the program's author are searched, too, if each of their choices keeps the
        training. What was measured most of it is kept as runs.

        Args:
          budget, memory: as of `find_best`.
          on_progress, on_end: as of `start`.

        Raises:
          OptionError: another run goes on, or a session without its program.
        """
        program, _ = self._ready(None)

        seconds = seconds_of(budget)

        def work(say: Callable[[str], None]) -> Best:
            started, clock = _now(), TimeBudget(seconds)
            later_s = seconds_of_predictions(program, known=self._foreseen.known is not None)
            best = find_best(
                program,
                budget=seconds,
                memory=memory,
                toggles=[each for each in self.toggles if keeps_training(each)] or None,
                baseline=self.baseline,
                trace_steps=self.trace_steps,
                progress=say,
            )
            require_not_cancelled()
            known = {raced.label: raced.optimizations for raced in (best.best, *best.runners_up)}
            known[self.baseline.label(in_full=True)] = self.baseline
            settings = [known[variant.label] for variant in best.comparison.variants]
            self.add(best.comparison, settings, started=started)
            self.best = best
            # Graphs that are not known yet are built in what is left, else with the next run.
            if self._foreseen.known or clock.left_s() >= later_s:
                self._foresee(program, say)
            return best

        return self._turn.start(work, on_progress, on_end)

    def first_wait(self) -> tuple[float, bool]:
        """Seconds that the first run takes in all, about; whether runs on this machine have told.

        Raises:
          OptionError: a session without its program.
        """
        program, _ = self._ready(None)
        return first_wait(program, budget_s=self.budget_s, trace_steps=self.trace_steps)

    def start_graph(
        self, on_end: Callable[[Job[DescribedGraph]], None] | None = None
    ) -> Job[DescribedGraph]:
        """Builds the baseline's graph in a child process, on a thread of its own; nothing trains.

        A run may begin meanwhile; whoever begins it cancels this job, which would slow it.

        Args:
          on_end: as of `start`.

        Raises:
          OptionError: a session without its program.
        """
        program, baseline = self._ready(None)
        return Job(lambda _: baseline_graph(program, baseline), release=lambda: None, on_end=on_end)

    def add(
        self,
        comparison: Comparison,
        settings: Sequence[Optimizations],
        *,
        started: str | None = None,
    ) -> tuple[Run, ...]:
        """Keeps what was measured elsewhere, one run for each setting.

        The baseline gets a run of its own where it has none yet, or where nothing else is there.

        Args:
          comparison: of the session's program, beside its baseline.
          settings: of its variants, in their order; the baseline first.
          started: when it was begun, ISO 8601; None says now.

        Raises:
          OptionError: it is of another program or baseline, or has other variants.
        """
        if comparison.program != self.name:
            raise OptionError(
                f"the comparison is of program {comparison.program!r}; "
                f"expected one of {self.name!r}"
            )
        settings = list(map(self.completed, settings))
        require_settings(comparison, settings, self.baseline)
        when = started or _now()
        return self._kept.add(
            lambda before, last: runs_of(
                comparison, settings, before=before, after=last, started=when
            )
        )

    def learn_graphs(self, progress: bool | Callable[[str], None] = True) -> None:
        """Builds the program's graphs in a child process, so that settings can be predicted.

        The first run does it, too. Where the program has lookups to fuse, what their ops cost on
        this machine is measured once, in a minute. It is kept in the user's cache directory.

        Raises:
          OptionError: a run goes on, or a session without its program.
          RunError, KeyboardInterrupt: as `compare`.
        """
        program, _ = self._ready(None)
        with self._turn.alone():
            self._foreseen.learn(program, progress)

    @property
    def graphs(self) -> LearnedGraphs | None:
        """What is known of the program's graphs; None until they were built."""
        return self._foreseen.known

    def predict(self, optimizations: Optimizations) -> Predicted | Withheld | None:
        """What a setting would give, or why nothing is known of that.

        Returns:
          None where no run of the baseline has a trace yet. Of several traces the newest counts
          that can be simulated; the reason says so where none can.

        Raises:
          OptionError: what is no setting.
        """
        wish, traces = self.completed(optimizations), self._traces()
        if not traces:
            return None
        predicted = self._foreseen.of(wish, traces)
        run, beside_ms = self.run_of(self.baseline), self._foreseen.untraced_ms(traces)
        if isinstance(predicted, Withheld) or run is None or not beside_ms:
            return predicted
        return predicted.in_time_of(1e3 / run.measured.steps_per_s / beside_ms)

    @property
    def predictions(self) -> Predictions | None:
        """What every combination of toggles would give; None as of `predict`."""
        traces = self._traces()
        return self._in_measured_time(self._foreseen.of_all(traces)) if traces else None

    @property
    def ceilings(self) -> Predictions | None:
        """What a step would take without each kind of work; None as `predict`."""
        traces = self._traces()
        return self._in_measured_time(self._foreseen.ceilings(traces)) if traces else None

    def _in_measured_time(self, predictions: Predictions) -> Predictions:
        """Predictions whose traced setting takes what the baseline's own run measured."""
        run = self.run_of(self.baseline)
        if run is None:
            return predictions
        return predictions.where_a_step_takes(1e3 / run.measured.steps_per_s)

    def embedding_lens(self, trace: Trace) -> EmbeddingLens:
        """The embedding tables of a run, with the sizes and ids that were learned of the program.

        Args:
          trace: of the run.

        Raises:
          TraceError: it does not know which op feeds which, or has no step.
        """
        sampled = self._foreseen.learned.sampled
        if sampled is None:
            return make_lens(trace, not_sampled=self._no_ids())
        return make_lens(trace, None, {each.name: each for each in sampled.tables}, sampled.ids)

    def _no_ids(self) -> str:
        """Why the ids of the program's tables are not known, a clause."""
        return self._foreseen.learned.problem or "the session was saved before they were kept"

    def boundary_of(self, optimizations: Optimizations) -> Boundary | None:
        """What may run ahead in the graph of a setting; None where that is not known.

        With another choice of an author's toggle the program may build another graph.
        """
        if own_choices(self.completed(optimizations)) != own_choices(self.baseline):
            return None
        return self._foreseen.learned.boundary_of(optimizations)

    def no_use(self, optimizations: Optimizations) -> str:
        """Why the program has no use for what a setting switches on: a clause; "" where it has.

        Known once a run has built the program's graphs.
        """
        return self._foreseen.learned.no_use(optimizations)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Writes all runs with their traces into a directory, made if needed; see `load_session`.

        Raises:
          OptionError: a setting holds what no file can: exception classes in place of codes.
          OutputError: it cannot be written; what was saved there before is kept.
        """
        saved = SavedSession(
            program=self._facts,
            baseline=self.baseline,
            budget_s=self.budget_s,
            trace_steps=self.trace_steps,
            stop_when_clear=self.stop_when_clear,
            runs=self.runs,
            learned=self._foreseen.known,
        )
        return write_session(saved, directory)

    def _ready(self, optimizations: Optimizations | None) -> tuple[AnyProgram, Optimizations]:
        """The program and the setting to run."""
        if self.program is None:
            raise OptionError(
                f"the session was loaded without its program {self.name!r}, so nothing can be run; "
                "give it: wb.load_session(directory, program)"
            )
        wish = self.baseline if optimizations is None else self.completed(optimizations)
        require_possible(self.program, wish)
        return self.program, wish

    def _measured(
        self, program: AnyProgram, wish: Optimizations, progress: bool | Callable[[str], None]
    ) -> Run:
        started = _now()
        settings = list(dict.fromkeys([self.baseline, wish]))
        shown = Progress.of(progress)
        if self.trace_steps:
            shown.expect_later(
                phases_of_predictions(program, known=self._foreseen.known is not None)
            )
        try:
            comparison = compare(
                program,
                settings[1:],
                baseline=self.baseline,
                budget_s=self.budget_s,
                trace_steps=self.trace_steps,
                stop_when_clear=self.stop_when_clear,
                samples=self._samples,
                progress=shown,
            )
            require_not_cancelled()
            run = self.add(comparison, settings, started=started)[-1]
            self._samples = self._sample_of(comparison)
            self._foresee(program, shown)
            # What failed on its way has not taken what it takes.
            if not self._foreseen.learned.problem:
                learn_phases_of_predictions(program, shown)
        finally:
            shown.end()
        return run

    def _sample_of(self, comparison: Comparison) -> dict[Optimizations, Trace]:
        """The baseline's trace, for smart stages to be planned on, where it is of stock's order."""
        plain, trace = self.baseline, comparison.variants[0].trace
        fits = plain == Optimizations(fused_embeddings=plain.fused_embeddings, chosen=plain.chosen)
        if trace is None or not fits or trace.meta.source != EXECUTOR:
            return self._samples
        return {plain: trace}

    def _foresee(self, program: AnyProgram, progress: bool | Callable[[str], None]) -> None:
        traces = self._traces()
        if traces:
            self._foreseen.foresee(program, traces, progress)

    def _traces(self) -> list[Trace]:
        """Those of the baseline, the newest first."""
        traces = [each.variants[0].trace for each in reversed(comparisons_of(self.runs))]
        return [trace for trace in traces if trace is not None]


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
