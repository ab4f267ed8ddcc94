"""What a click in the browser does to a panel: the messages of its page, by their kind."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any, Protocol

from workbench.errors import WorkbenchError
from workbench.experiments.session.session import Session
from workbench.viz.panel.answers import Answer, Answers
from workbench.viz.panel.job_view import failed
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.settings.toggled import toggled
from workbench.viz.panel.tabs.contents import CAPTURED_STEPS, said
from workbench.viz.panel.words import sentence

_WRITING = "Writing the report"
_MEASURING = "Measuring this machine’s peaks, about 5 s"
_MOVED = "The boundary is moved. Choose Moved under Stage, then Run."


class Panel(Protocol):
    """What clicks change, and whom they ask: `Workbench`, which says what each of these is."""

    session: Session
    optimizations: Any
    cut: Any
    job: Any
    status: Any

    def take_values(self, values: Any) -> None: ...

    def run(self) -> Any: ...

    def run_when_free(self) -> Any: ...

    def draw_shape(self) -> None: ...

    def find_best(self) -> Any: ...

    def describe_run(self, number: int, **words: str) -> Any: ...

    def delete_run(self, number: int) -> Any: ...

    def undo(self) -> Any: ...

    def redo(self) -> Any: ...

    def cancel(self) -> None: ...

    def report(self) -> Any: ...

    def measure_peaks(self) -> None: ...

    def send(self, content: Any, buffers: Any = None) -> None: ...


# What a message does.
_Act = Callable[[Panel, Answers, dict[str, Any]], Any]


def clicked(panel: Panel, answers: Answers, message: Any) -> None:
    """Does what a page asks for; what goes wrong then stands in the panel.

    Args:
      panel: whose page it is.
      answers: what the page is sent of its runs.
      message: its "kind" and what that needs; one that no page of this version sends is ignored.
        What measures has the "values" of the page's toggles, which may not have come yet.
    """
    act = _ACTS.get(str(message.get("kind") if isinstance(message, dict) else None))
    if act is None:
        return
    try:
        values = message.get("values")
        panel.take_values(values if isinstance(values, dict) else {})
        act(panel, answers, message)
    except WorkbenchError as error:
        _say_error(panel, error)


def _answered(make: Callable[[Answers, dict[str, Any]], Answer], refused: str) -> _Act:
    """Sends a page what it waits for, or why it cannot be had.

    Args:
      make: the answer to a message.
      refused: the name under which an answer has the reason.
    """

    def act(panel: Panel, answers: Answers, message: dict[str, Any]) -> None:
        try:
            panel.send(*make(answers, message))
        except Exception as error:
            words = sentence(str(error) or type(error).__name__)
            reason = said(words) if refused == "html" else words
            panel.send({"kind": message["kind"], "id": message.get("id"), refused: reason}, [])
            if not isinstance(error, WorkbenchError):
                raise

    return act


def _say_error(panel: Panel, error: Exception) -> None:
    """Shows what went wrong; beside the progress of a run that goes on, in the status."""
    if panel.job.get("running"):
        panel.status = str(error)
    else:
        panel.job = dataclasses.asdict(failed(error))


def _cut(panel: Panel, answers: Answers, message: dict[str, Any]) -> None:
    for answer in answers.cuts(message):
        panel.send(answer)


def _moved(panel: Panel, answers: Answers, message: dict[str, Any]) -> None:
    """Keeps where the line was moved to, which can be chosen from then on."""
    first = not panel.cut
    cut, why = answers.move(message)
    panel.status = why or _MOVED
    panel.cut = cut or panel.cut
    if cut and first:
        panel.send({"kind": "flash", "group": "stage"})


def _capture(panel: Panel, _: Answers, message: dict[str, Any]) -> None:
    """Runs the setting of a run again, with a trace."""
    session = panel.session
    session.require_free()
    panel.optimizations = session.run_numbered(int(message["run"])).optimizations
    session.trace_steps = session.trace_steps or CAPTURED_STEPS
    panel.run()


def _try(panel: Panel, _: Answers, message: dict[str, Any]) -> None:
    """Measures the setting of a run with the toggle that one of its findings names."""
    session = panel.session
    before = setting_of(session.run_numbered(int(message["run"])).optimizations)
    setting, groups = toggled(session, before, str(message["toggle"]))
    panel.optimizations = setting.optimizations()
    for group in groups:
        panel.send({"kind": "flash", "group": group})
    panel.run_when_free()


def _report(panel: Panel, _: Answers, __: dict[str, Any]) -> None:
    _on_a_thread(panel, panel.report, _WRITING, "workbench-report")


def _peaks(panel: Panel, _: Answers, __: dict[str, Any]) -> None:
    panel.session.require_free()
    _on_a_thread(panel, panel.measure_peaks, _MEASURING, "workbench-peaks")


def _on_a_thread(panel: Panel, act: Callable[[], Any], words: str, name: str) -> None:
    """Does something on a thread, so that the kernel stays free; the status says so meanwhile."""
    before, panel.status = panel.status, words

    def restore() -> None:
        # A run may have begun or ended meanwhile, and has said so.
        if panel.status == words:
            panel.status = before

    def work() -> None:
        try:
            act()
        except Exception as error:
            restore()
            _say_error(panel, error)
            if not isinstance(error, WorkbenchError):
                raise
        else:
            restore()

    threading.Thread(target=work, name=name, daemon=True).start()


_ACTS: dict[str, _Act] = {
    "run": lambda panel, *_: panel.run(),
    "cancel": lambda panel, *_: panel.cancel(),
    "content": _answered(Answers.tab, "html"),
    "figure": _answered(Answers.figure, "error"),
    "cut": _cut,
    "moved": _moved,
    "try": _try,
    "run_when_free": lambda panel, *_: panel.run_when_free(),
    "shape": lambda panel, *_: panel.draw_shape(),
    "capture": _capture,
    "describe_run": lambda panel, _, said: panel.describe_run(int(said["run"]), **said["words"]),
    "delete_run": lambda panel, _, said: panel.delete_run(int(said["run"])),
    "undo": lambda panel, *_: panel.undo(),
    "redo": lambda panel, *_: panel.redo(),
    "find_best": lambda panel, *_: panel.find_best(),
    "report": _report,
    "peaks": _peaks,
}
