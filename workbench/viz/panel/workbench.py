"""Workbench: the panel alive in a notebook. It draws no number of its own."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.toggles.toggle import Toggle
from workbench.core.what_if.predictions import Predictions
from workbench.errors import OptionError, WorkbenchError
from workbench.experiments.comparison.machine_peaks import machine_peaks
from workbench.experiments.search.best import Best
from workbench.experiments.session.background import Job
from workbench.experiments.session.history import History
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.files.atomic_file import replacing
from workbench.viz.panel.answers import Answers
from workbench.viz.panel.clicks import clicked
from workbench.viz.panel.graph_preview import GraphPreview
from workbench.viz.panel.job_view import NOTHING, READY, JobView, failed, running
from workbench.viz.panel.news import news_of_run, news_of_search
from workbench.viz.panel.program_of import program_of
from workbench.viz.panel.report import report_name, session_report_html
from workbench.viz.panel.settings.choices import choices_of, known_toggles
from workbench.viz.panel.settings.group import Group
from workbench.viz.panel.settings.groups import groups_of, unfit_options
from workbench.viz.panel.settings.known_settings import last_cut, said_of, stored_settings
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.panel_state import PanelState
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.still import DisplayedStill, panel_still
from workbench.viz.panel.tabs.contents import THROUGHPUT, TWO_RUNS, Contents
from workbench.viz.panel.view import panel_view, run_list, state_of
from workbench.viz.panel.widget import TOGGLES, PanelWidget
from workbench.viz.style import format
from workbench.viz.style.still import show_widget, still_output


class Workbench(PanelWidget):
    """Toggles, runs and every view of a run, over one program.

    What a toggle would give is predicted as soon as one run has been traced. The method `run`
    measures the setting beside the baseline, in child processes, while the kernel stays free.
    Everything that a click does, code does too: the toggles are traits to set and observe.

    Attributes:
      session: the runs, to be saved, and predictions by code; the others are `PanelWidget`'s.
    """

    def __init__(
        self,
        program: Any,
        optimizations: Optimizations | None = None,
        *,
        toggles: Sequence[Toggle] = (),
        baseline: Optimizations | None = None,
        budget_s: float = 30.0,
        trace_steps: int = 30,
    ) -> None:
        """Makes the panel; nothing runs until Run is clicked or `run` is called.

        Args:
          program: a `wb.Program` or `wb.FunctionProgram`; a function `build(optimizations)` that
            returns `wb.Built`; a function of nothing that returns (train_step, dataset) or
            (model, dataset); or a `wb.Session`, such as one that was loaded, to go on with.
          optimizations: where the toggles stand at first.
          toggles: those of your own, such as `wb.Toggle("dim", [16, 32])`, which the program reads
            as `optimizations["dim"]`; also of the environment. A session has its own.
          baseline: the setting that the others are compared with; None means all off.
          budget_s: seconds that one run takes.
          trace_steps: steps to trace of each run; 0 traces nothing, so that nothing is predicted.

        Raises:
          OptionError: what is no program, no toggle, or a number out of range.
        """
        session = program if isinstance(program, Session) else None
        if session is not None and toggles:
            raise OptionError(
                "a session has toggles of its own; give them there: wb.Session(program, "
                "toggles=[…]), or wb.load_session(directory, program, toggles=[…])"
            )
        session = session or Session(
            program_of(program),
            toggles=toggles,
            baseline=baseline,
            budget_s=budget_s,
            trace_steps=trace_steps,
        )
        setting = setting_of(optimizations or session.baseline)
        choices_of(setting.state()["chosen"], known_toggles(session))
        cut = setting.cut or last_cut(session)
        self._groups = _groups(session, cut)
        super().__init__(session, setting, cut, panel_view(session, self._groups))
        self._contents = Contents(self.session)
        self._job: Job[Any] | None = None
        self._graphs: LearnedGraphs | None = None
        self._preview = GraphPreview(self.session, lambda markup: self.set_trait("shape", markup))
        self._waiting: Optimizations | None = None
        self._answers = Answers(self.session, self._contents)
        self._still = DisplayedStill(self._still_bundle, lambda: bool(self.job["running"]))
        self._saying = threading.RLock()
        self._history: History[PanelState] = History()
        self._last = self._state()
        self.observe(self._note_stop, "stop_when_clear")
        self.on_msg(self._on_message)
        self.observe(self._changed, list(TOGGLES))
        self.observe(lambda _: self._still.draw_soon(), ["shown", "base"])
        self._list_runs()
        self.status = READY if self.session.program else _LOADED
        self._say()

    def __repr__(self) -> str:
        # What a notebook shows without the widget.
        return f"Workbench({self.session.name})"

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, the oldest first."""
        return self.session.runs

    @property
    def predictions(self) -> Predictions | None:
        """What every combination of toggles would give; None before the first run."""
        return self.session.predictions

    @property
    def plan(self) -> StagePlan:
        """The plan of the boundary as it is drawn for the run shown, for `wb.apply`.

        Raises:
          OptionError: the boundary of that run was not shown yet.
          PlanError: the cut is not legal, or the run has no graph.
        """
        return self._answers.plan(self.shown)

    def run(self, *, wait: bool = False) -> Job[Run]:
        """Measures the setting of the toggles; returns at once unless told to wait.

        Raises:
          OptionError: a run goes on, or the program cannot have this setting.
          RunError: where it waits and the run failed.
        """
        name = name_of(self.setting)
        job = self._start(
            lambda: self.session.start(
                self.optimizations, on_progress=self._progress, on_end=self._ended
            ),
            f"Running “{name}” in a child process. The kernel is free.",
        )
        if wait:
            job.wait()
            if job.error:
                raise job.error
        return job

    def run_when_free(self) -> Job[Run] | None:
        """Measures the setting of the toggles, after the run that goes on where there is one.

        Returns:
          The job; None where it begins later. Of several that wait, the last one is measured.

        Raises:
          OptionError: the program cannot have this setting.
        """
        if self._job is None or not self._job.running:
            return self.run()
        self._waiting = self.optimizations
        self.status = f"Next: “{name_of(self.setting)}”. The kernel is free."
        return None

    def find_best(
        self, budget: float | str = "2min", memory: float | str | None = None
    ) -> Job[Best]:
        """Searches the fastest setting while the kernel stays free; the toggles then stand on it.

        Args:
          budget, memory: as of `wb.find_best`.

        Raises:
          OptionError: a run goes on.
        """
        return self._start(
            lambda: self.session.start_search(
                budget=budget, memory=memory, on_progress=self._progress, on_end=self._ended
            ),
            f"Searching the best setting for {budget}. The kernel is free.",
        )

    def cancel(self) -> None:
        """Ends the run that goes on, within a second, and forgets one that waits for it."""
        self._waiting = None
        if self._job is not None:
            self._job.cancel()

    def describe_run(self, number: int, **words: str) -> Run:
        """Gives a run a name, a note or a group; see `Session.describe_run`.

        Args:
          number: of the run.
          **words: `name`, `note` and `group`.

        Raises:
          OptionError: no such run, another word, or a text that is too long.
        """
        run = self.session.describe_run(number, **words)
        self._runs_changed()
        return run

    def delete_run(self, number: int) -> None:
        """Leaves a run out; `undo` brings it back.

        Raises:
          OptionError: there is no such run.
        """
        self.session.delete_run(number)
        self._runs_changed()

    def undo(self) -> None:
        """Takes back the last change of toggles, of the boundary, or of a run's words; of none."""
        self._went(self._history.undo(self._state()))

    def redo(self) -> None:
        """Does again what `undo` took back last."""
        self._went(self._history.redo(self._state()))

    def _state(self) -> PanelState:
        toggles = {name: getattr(self, name) for name in TOGGLES}
        return PanelState(toggles=toggles, edits=self.session.run_edits)

    def _note_change(self) -> None:
        """What was until now can be gone back to."""
        now = self._state()
        if now != self._last:
            self._history.changed(self._last)
            self._last = now
            self._say_undo()

    def _say_undo(self) -> None:
        self.can_undo, self.can_redo = self._history.can_undo, self._history.can_redo

    def _went(self, state: PanelState) -> None:
        """Puts toggles and runs where they were."""
        self._last = state
        with self.hold_trait_notifications():
            # A stage that was moved needs its cut.
            for name in sorted(state.toggles, key=lambda name: name != "cut"):
                setattr(self, name, state.toggles[name])
        if state.edits != self.session.run_edits:
            self.session.edit_runs(state.edits)
            self._runs_changed()
        self._say_undo()

    def _runs_changed(self) -> None:
        """Draws anew what has the words of runs in it."""
        self._note_change()
        self._contents.forget()
        self._list_runs()
        self.edited += 1
        self._say()
        self._still.draw_soon()

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Saves all runs; `wb.Workbench(wb.load_session(directory))` shows them again."""
        path = self.session.save(directory)
        self.saved = f"Saved {path}"
        return path

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Writes the report: every tab as one page that needs no kernel and no network.

        Args:
          path: the HTML file; None writes "workbench-" and the program's name into the working
            directory.

        Raises:
          OptionError: nothing has run.
          OutputError: the file cannot be written; none is half written.
        """
        file = Path(path or report_name(self.session))
        page = session_report_html(self.session, self._contents)
        with replacing(file) as part:
            part.write_text(page, encoding="utf-8")
        self.saved = f"Report {file}, {format.size(len(page.encode()))}"
        self.saved_path = os.fspath(file.resolve())
        return file

    def measure_peaks(self) -> None:
        """Measures what this machine can do, in about five seconds, for the tab Limit.

        Raises:
          RunError: the measurement failed.
        """
        machine_peaks(progress=False)
        self._draw_learned()
        self._still.draw_soon()

    def draw_shape(self) -> None:
        """Shows the program's graph before anything has run, once a child process has built it."""
        self._preview.begin()

    def _start(self, begin: Callable[[], Job[Any]], words: str) -> Job[Any]:
        self.session.require_free()
        before = self.job, self.status, self.news
        self._preview.cancel()
        self._show_job(running("Starting a child process"))
        self.status, self.news = words, {}
        try:
            self._job = begin()
        except BaseException:
            self.job, self.status, self.news = before
            self._preview.go_on()
            raise
        return self._job

    def _show_job(self, shown: JobView) -> None:
        self.job = dataclasses.asdict(shown)

    def _progress(self, words: str) -> None:
        self._show_job(running(words))
        # What is measured shows before the rest of the run is over.
        listed = {each["number"] for each in self.run_list}
        new = [run for run in self.session.runs if run.number not in listed]
        if new:
            self._list_runs()
            self._show_result(new[-1])

    def _show_result(self, run: Run) -> None:
        self.shown = run.number
        self.news = news_of_run(self.session, run, self.session.run_numbered(self.base))

    def _ended(self, job: Job[Any]) -> None:
        """Called on the thread of the job."""
        shown = failed(job.error, cancelled=job.cancelled) if job.error else NOTHING
        try:
            self._show_end(job)
        finally:
            self._show_job(shown)
            self.status = shown.words or READY
            self._still.draw_soon()
            self._preview.go_on()
            self._go_on()

    def _show_end(self, job: Job[Any]) -> None:
        """Shows what a job has left."""
        self._note_graphs()
        self._regroup()
        self._list_runs()
        best = job.result if isinstance(job.result, Best) else None
        if best:
            self._contents.search = best
            self.optimizations = best.optimizations
        run = self._run_of(job.result)
        if run is not None:
            self._show_result(run)
            self._open_news(run)
        if best:
            self.news = news_of_search(best)
        self._say()
        self._say_all()

    def _note_graphs(self) -> None:
        """Has drawn anew what rests on the program's graphs, where others are known than before."""
        graphs = self.session.graphs
        if self.session.predictions is not None and graphs is not self._graphs:
            self._graphs = graphs
            self._draw_learned()

    def _draw_learned(self) -> None:
        self._contents.learned()
        self.learned += 1

    def _run_of(self, result: Best | Run | None) -> Run | None:
        """The run that a job has ended with; None where it was deleted meanwhile."""
        if isinstance(result, Best):
            return self.session.run_of(result.optimizations)
        number = result.number if result is not None else 0
        return next((run for run in self.session.runs if run.number == number), None)

    def _go_on(self) -> None:
        """Begins the run that waited for the one that has ended."""
        wish, self._waiting = self._waiting, None
        if wish is None:
            return
        try:
            self.optimizations = wish
            self.run()
        except WorkbenchError as error:
            self._show_job(failed(error))

    def _open_news(self, run: Run) -> None:
        """Opens what a first run beside the baseline changed, unless the user looks elsewhere."""
        base = self.session.run_numbered(self.base)
        first = sum(not each.is_baseline for each in self.session.runs) == 1
        traced = run.measured.trace is not None and base.measured.trace is not None
        if first and traced and run is not base and self.tab == THROUGHPUT:
            self.tab = TWO_RUNS

    def _regroup(self) -> None:
        """Refuses what the program's graphs, which a run has built, have no use for."""
        groups = _groups(self.session, self.cut)
        if groups != self._groups:
            self._groups = groups
            self.view = panel_view(self.session, groups)

    def _list_runs(self) -> None:
        runs = self.session.runs
        numbers = [run.number for run in runs]
        if self.base not in numbers:
            own = (run.number for run in runs if run.is_baseline)
            self.base = next(own, numbers[0] if numbers else 0)
        if self.shown not in numbers:
            self.shown = numbers[-1] if numbers else 0
        self.run_list = run_list(self.session)

    def _note_stop(self, change: Any) -> None:
        self.session.stop_when_clear = bool(change["new"])

    def _changed(self, change: Any) -> None:
        self._note_change()
        if change["name"] == "cut":
            self._regroup()
        self._say()

    def _say(self) -> None:
        """Tells what is known of the setting."""
        with self._saying:
            self.said = said_of(self.session, self.setting, self._groups)

    def _say_all(self) -> None:
        """Tells what is known of every combination of toggles, so that a click needs no answer."""
        known = stored_settings(self.session, self._groups, [self.setting])
        self.send({"kind": "settings", "settings": known})

    def _on_message(self, _widget: Any, message: Any, _buffers: Any) -> None:
        clicked(self, self._answers, message)

    def _still_bundle(self) -> dict[str, str]:
        numbers = (self.shown, self.base)
        run, base = (self.session.run_numbered(each) if each else None for each in numbers)
        names = ("shown", "base", "tab", "selected", "selected_table", "saved", "cut", "news")
        shown = {name: getattr(self, name) for name in names}
        picture, words = panel_still(
            self.session,
            self._contents,
            run,
            base,
            self.view,
            state_of(self.session, self.setting, **shown),
            stored_settings(self.session, self._groups, [self.setting]),
        )
        return {
            "text/html": still_output(self.still, picture),
            "text/plain": words,
        }

    def _ipython_display_(self) -> None:
        self._note_graphs()  # They may have been built by code.
        self.draw_shape()  # It is built while the page loads.
        self._say()  # The notebook may have a variable for it by now.
        self._still.display()
        show_widget(self)


def _groups(session: Session, cut: str) -> tuple[Group, ...]:
    """The toggles of a session's program, as far as it is known."""
    return groups_of(session.program, unfit_options(session), cut=cut, toggles=session.toggles)


_LOADED = "These runs were loaded; give the program to run more."
