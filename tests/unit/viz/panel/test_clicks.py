"""What a page asks for: it is answered, refused or done as a whole, also while a run goes on."""

from __future__ import annotations

import threading

import pytest

from tests.builders.panel_sessions import held_learning, panel_session
from tests.builders.replays import every_replay_holds
from tests.builders.sessions import (
    OFF,
    PROGRAM,
    STAGE,
    boundary,
    fake_compare,
    learned,
    measured,
)
from tests.builders.small_models import MODEL
from workbench.errors import OptionError, RunError
from workbench.experiments.session import session as engine
from workbench.experiments.session import setting_predictions
from workbench.experiments.worker.wire.cancellation import require_not_cancelled
from workbench.experiments.worker.wire.messages import DescribedGraph
from workbench.viz.panel import workbench as module
from workbench.viz.panel.clicks import clicked
from workbench.viz.panel.job_view import NOTHING, running
from workbench.viz.panel.tabs.contents import LENS
from workbench.viz.panel.workbench import Workbench


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(Workbench, "send", lambda _, content, __=None: messages.append(content))
    return messages


@pytest.fixture
def panel(monkeypatch, sent):
    return Workbench(panel_session(monkeypatch))


class Held:
    """A `compare` that waits until it is let go; `calls` notes what it was asked for."""

    def __init__(self):
        self.calls, self.begun, self.go_on = [], threading.Event(), threading.Event()
        self._measure = fake_compare(self.calls, traced=True)

    def __call__(self, *given, **options):
        self.begun.set()
        while not self.go_on.wait(0.01):
            require_not_cancelled()
        return self._measure(*given, **options)


@pytest.fixture
def held(monkeypatch, sent):
    made = Held()
    monkeypatch.setattr(engine, "compare", made)
    monkeypatch.setattr(setting_predictions, "learned_graphs", lambda *_: learned())
    every_replay_holds(monkeypatch)
    yield made
    made.go_on.set()


def test_a_run_has_the_setting_that_its_page_shows(held):
    panel = Workbench(PROGRAM)
    held.go_on.set()
    values = {"stage": "own", "capacity": 2, "executor": "inline", "stop_when_clear": True}
    clicked(panel, None, {"kind": "run", "values": values})
    assert panel._job.wait(20)
    (call,) = held.calls
    (setting,) = call["toggles"]
    assert (setting.stage.capacity, setting.executor) == (2, "inline")
    assert call["stop_when_clear"] is True
    # Several toggles are one change.
    panel.undo()
    assert (panel.stage, panel.executor, panel.can_undo) == ("off", "normal", False)


@pytest.mark.parametrize("wrong", [{"fusion": "v9"}, {"stage": "moved"}, {"capacity": -1}])
def test_a_setting_that_cannot_be_is_not_run(held, wrong):
    panel = Workbench(PROGRAM)
    clicked(panel, None, {"kind": "run", "values": {"executor": "inline", **wrong}})
    assert panel.job["error"] and panel._job is None and held.calls == []
    assert (panel.executor, panel.fusion, panel.stage, panel.capacity) == (
        *("normal", "off", "off", 0),
    )


@pytest.mark.parametrize(
    "message", [{"kind": "run"}, {"kind": "find_best"}, {"kind": "capture", "run": 2}]
)
def test_a_start_that_is_refused_leaves_the_run_that_goes_on(held, message):
    session = engine.Session(PROGRAM, trace_steps=0)
    session.add(measured([OFF, STAGE]), [OFF, STAGE])
    panel = Workbench(session)
    panel.run()
    assert held.begun.wait(20)
    panel._progress("Measuring")
    before = panel.job, panel.news, panel.stage
    clicked(panel, None, message)
    assert "a run of 'tiny' goes on" in panel.status
    assert (panel.job, panel.news, panel.stage) == before and panel.job["running"]
    assert session.trace_steps == 0


def test_what_a_start_has_changed_comes_back_where_it_fails(panel, monkeypatch):
    def fails(*_, **__):
        raise OptionError("the program cannot have this")

    monkeypatch.setattr(panel.session, "start", fails)
    panel.news = {"pieces": [["what was", False]]}
    before = panel.job, panel.status, panel.news
    with pytest.raises(OptionError):
        panel.run()
    assert (panel.job, panel.status, panel.news) == before


def test_a_toggle_is_tried_beside_the_run_of_that_number(panel, monkeypatch):
    ran = []
    monkeypatch.setattr(Workbench, "run_when_free", lambda self: ran.append(self.optimizations))
    panel.delete_run(2)
    clicked(panel, panel._answers, {"kind": "try", "toggle": "fused_v2", "run": 3})
    assert [each.label() for each in ran] == ["fused V2 + inline executor"]
    clicked(panel, panel._answers, {"kind": "try", "toggle": "fused_v2", "run": 2})
    assert "There is no run 2" in panel.job["error"]


def test_a_page_that_waits_is_told_what_went_wrong(panel, sent):
    sent.clear()
    asked = {"kind": "content", "id": 7, "run": 9, "base": 1, "tab": "memory"}
    clicked(panel, panel._answers, asked)
    assert sent[0]["id"] == 7 and "There is no run 9; expected one of 1, 2, 3." in sent[0]["html"]
    clicked(panel, panel._answers, {**asked, "kind": "figure", "id": 8, "name": "runs"})
    assert (sent[1]["kind"], sent[1]["id"]) == ("figure", 8)
    assert sent[1]["error"].startswith("There is no run 9")
    # An error of Workbench's own is answered, and goes where errors go.
    with pytest.raises(KeyError):
        clicked(panel, panel._answers, {**asked, "id": 9, "run": 1, "tab": "none"})
    assert (sent[2]["id"], sent[2]["html"]) == (9, '<p class="wb-sentence">&#x27;none&#x27;.</p>')


class TestReport:
    @pytest.fixture
    def written(self, panel, monkeypatch):
        """Clicks Report, and waits until it was written, by `write` in the page's place."""

        def click(write):
            monkeypatch.setattr(module, "session_report_html", write)
            threads = []
            start = threading.Thread.start
            monkeypatch.setattr(
                threading.Thread, "start", lambda thread: (threads.append(thread), start(thread))
            )
            clicked(panel, panel._answers, {"kind": "report"})
            threads[-1].join(20)

        return click

    @pytest.fixture(autouse=True)
    def home(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)

    def test_it_leaves_what_is_said_of_a_run(self, panel, written):
        panel.job, panel.status = {**panel.job, "running": True}, "Running “All off”."
        written(lambda *_: "page")
        assert panel.status == "Running “All off”." and panel.saved.startswith("Report ")

    def test_what_is_said_meanwhile_stays(self, panel, written):
        def write(*_):
            panel.status = "Next: “SmartStage”."
            return "page"

        written(write)
        assert panel.status == "Next: “SmartStage”."

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    @pytest.mark.parametrize("error", [RunError("no room"), ValueError("no room")])
    def test_an_error_ends_it_and_is_said(self, panel, written, error):
        before = panel.status

        def fails(*_):
            raise error

        written(fails)
        assert (panel.status, panel.job["error"]) == (before, "No room")


def test_the_shape_comes_after_a_run_that_was_cancelled(held, monkeypatch):
    waits = threading.Event()

    def graph(program, baseline):
        while not waits.is_set():
            require_not_cancelled()
        return DescribedGraph(boundary=boundary(MODEL))

    monkeypatch.setattr(engine, "baseline_graph", graph)
    panel = Workbench(PROGRAM)
    panel.draw_shape()
    first = panel._preview.job
    job = panel.run()
    assert held.begun.wait(20)
    waits.set()
    panel.cancel()
    assert job.wait(20) and first.wait(20)
    assert panel._preview.job.wait(20) and panel._preview.job is not first
    assert "May run ahead" in panel.shape


def test_a_run_that_is_deleted_before_its_job_ends_leaves_no_job(held, monkeypatch):
    learning = held_learning(monkeypatch)
    held.go_on.set()
    panel = Workbench(PROGRAM)
    job = panel.run()
    assert learning.begun.wait(20)
    # By code, of which the panel is not told.
    panel.session.delete_run(1)
    panel._progress("Building the graphs")
    learning.go_on.set()
    assert job.wait(20)
    assert not panel.job["running"] and panel.status.startswith("Ready")
    assert (panel.runs, panel.run_list, panel.shown, panel.base) == ((), [], 0, 0)


def test_graphs_that_code_has_built_anew_are_drawn_anew(held):
    panel = Workbench(PROGRAM)
    held.go_on.set()
    assert panel.run().wait(20) and panel.learned == 1
    assert panel.run().wait(20) and panel.learned == 1
    off = panel.runs[-1]
    before = panel._contents.of(off, off, LENS)
    panel.session.learn_graphs(progress=False)
    assert panel.run().wait(20) and panel.learned == 2
    assert panel._contents.of(off, off, LENS) is not before


def test_a_job_ends_whatever_its_result_shows(held, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    panel = Workbench(PROGRAM)
    monkeypatch.setattr(panel, "_show_end", lambda _: 1 / 0)
    held.go_on.set()
    assert panel.run().wait(20)
    assert not panel.job["running"] and panel.status.startswith("Ready")


def test_the_kept_picture_is_not_drawn_while_a_run_goes_on(panel, monkeypatch):
    drawn = []

    class Handle:
        def update(self, bundle, **_):
            drawn.append(bundle)

    monkeypatch.setattr(panel._still, "_handle", Handle())
    monkeypatch.setattr(panel._still, "_bundle", dict)
    panel._show_job(running("Building the graphs"))
    panel._still._draw()
    assert drawn == []
    panel._show_job(NOTHING)
    panel._still._draw()
    assert len(drawn) == 1


def test_peaks_are_measured_on_a_click_and_what_rests_on_them_is_drawn_anew(panel, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def measures(progress):
        asked.set()
        go_on.wait(20)

    monkeypatch.setattr(module, "machine_peaks", measures)
    before = panel.status
    clicked(panel, panel._answers, {"kind": "peaks"})
    assert asked.wait(20) and panel.status.startswith("Measuring this machine’s peaks")
    seen = threading.Event()
    panel.observe(lambda _: seen.set(), "status")
    go_on.set()
    assert seen.wait(20) and (panel.status, panel.learned) == (before, 1)


def test_peaks_are_not_measured_beside_a_run(held, monkeypatch):
    monkeypatch.setattr(module, "machine_peaks", lambda **_: pytest.fail("measured beside a run"))
    panel = Workbench(PROGRAM)
    job = panel.run()
    assert held.begun.wait(20)
    clicked(panel, panel._answers, {"kind": "peaks"})
    assert "a run of 'tiny' goes on" in panel.status
    held.go_on.set()
    assert job.wait(20)
