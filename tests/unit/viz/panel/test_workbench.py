"""The panel's widget: toggles as traits, what a click asks for, what a run leaves behind."""

from __future__ import annotations

import dataclasses
import re
import threading
import time

import pytest
from traitlets import TraitError

import workbench as wb
from tests.builders.panel_sessions import held_learning, linked_trace, panel_session
from tests.builders.replays import every_replay_holds
from tests.builders.searches import raced, search
from tests.builders.sessions import (
    OFF,
    PROGRAM,
    SMART,
    STAGE,
    boundary,
    fake_compare,
    learned,
    measured,
    with_trace,
)
from tests.builders.small_models import MODEL
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, RunError
from workbench.experiments.session import session as engine
from workbench.experiments.session import setting_predictions
from workbench.experiments.worker.wire.cancellation import require_not_cancelled
from workbench.experiments.worker.wire.messages import DescribedGraph
from workbench.viz.panel import still
from workbench.viz.panel import workbench as module
from workbench.viz.panel.clicks import clicked
from workbench.viz.panel.tabs.contents import TABS
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import still as shown_still

MOVED = Optimizations(smart_stage=SmartStageOptions(exclude=("hash",)))


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(
        Workbench, "send", lambda _, content, buffers=None: messages.append((content, buffers))
    )
    return messages


@pytest.fixture
def panel(monkeypatch, sent):
    return Workbench(panel_session(monkeypatch))


def test_toggles_are_traits_to_set_and_observe(panel):
    seen = []
    panel.observe(lambda change: seen.append(change.new), "stage")
    panel.stage = "smart"
    assert seen == ["smart"]
    assert panel.optimizations == SMART
    assert panel.said["name"] == "SmartStage"
    panel.optimizations = STAGE
    assert (panel.stage, panel.capacity, panel.threads) == ("own", 1, 1)
    assert panel.said["source"] == "measured"


def test_a_value_that_is_none_is_refused(panel):
    with pytest.raises(Exception, match="any of \\['off', 'v1', 'v2', 'grouped', 'auto'\\]"):
        panel.fusion = "v9"


def test_it_shows_what_a_session_has(panel):
    assert [each["name"] for each in panel.run_list] == [
        *("All off", "My stage, 1 thread", "Inline executor")
    ]
    assert (panel.shown, panel.base) == (3, 1)


def test_the_browser_is_told_what_stands_against_the_baseline(panel):
    assert panel.view["of_all_runs"] == ["throughput", "findings", "what_if"]
    drawn_anew = ["throughput", "boundary", "findings", "lens", "limit", "what_if"]
    assert panel.view["of_graphs"] == drawn_anew
    assert [each["against_base"] for each in panel.run_list] == [
        ["throughput", "two_runs"],
        # Without a trace of its own the boundary has the times of the baseline.
        *[["throughput", "two_runs", "boundary"]] * 2,
    ]


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_is_sent_when_it_is_asked_for(panel, sent, tab):
    sent.clear()
    panel._on_message(panel, {"kind": "content", "id": 7, "run": 1, "base": 1, "tab": tab}, [])
    ((answer, buffers),) = sent
    assert (answer["kind"], answer["id"], answer["run"]) == ("content", 7, 1)
    assert len(buffers) == (tab in ("timeline", "boundary"))


def test_a_moved_boundary_is_answered_and_planned(panel, sent):
    with pytest.raises(OptionError, match="boundary of this run was not shown yet"):
        _ = panel.plan
    panel.shown = 1
    panel._on_message(
        panel, {"kind": "content", "id": 1, "run": 1, "base": 1, "tab": "boundary"}, []
    )
    sent.clear()
    panel._on_message(panel, {"kind": "cut", "run": 1, "leaves": []}, [])
    assert sent[-1][0]["final"] is True
    assert panel.plan.stages[0].moved == ("next", "parse", "hash")
    panel._on_message(panel, {"kind": "moved", "run": 1, "leaves": [0]}, [])
    assert panel.plan.stages[0].moved == ("next",)


def test_a_moved_boundary_becomes_a_setting(panel, sent):
    def stage_options():
        return {each["value"]: each["refused"] for each in panel.view["groups"][0]["options"]}

    with pytest.raises(TraitError, match="no boundary was moved; move ops across the line"):
        panel.stage = "moved"
    assert "moved" not in stage_options()
    panel._on_message(
        panel, {"kind": "content", "id": 1, "run": 1, "base": 1, "tab": "boundary"}, []
    )
    panel._on_message(panel, {"kind": "moved", "run": 1, "leaves": [0, 1]}, [])
    assert sent[-1][0] == {"kind": "flash", "group": "stage"}
    assert panel.status == "The boundary is moved. Choose Moved under Stage, then Run."
    assert (panel.stage, panel.cut, stage_options()["moved"]) == ("off", "-hash", "")
    panel.stage = "moved"
    assert panel.optimizations == MOVED
    assert panel.said["name"] == "Moved boundary without hash"
    assert (panel.said["source"], panel.said["beside"][-7:]) == ("predicted", "all off")
    assert 'wb.SmartStageOptions(exclude=("hash",))' in panel.said["code"]
    panel.optimizations = SMART  # What was moved can be chosen again.
    panel.stage = "moved"
    assert panel.optimizations == MOVED


def test_the_line_of_your_own_stage_is_another_one(panel):
    panel._on_message(
        panel, {"kind": "content", "id": 1, "run": 2, "base": 1, "tab": "boundary"}, []
    )
    panel._on_message(panel, {"kind": "moved", "run": 2, "leaves": []}, [])
    assert panel.status.startswith("Moved: the line of a run with your own stage widens that stage")
    assert panel.cut == ""


def test_a_moved_boundary_that_ran_is_there_when_its_session_is_opened(panel, sent):
    panel.session.add(measured([Optimizations(), MOVED]), [Optimizations(), MOVED])
    again = Workbench(panel.session)
    assert again.run_list[-1]["name"] == "Moved boundary without hash"
    assert (again.stage, again.cut) == ("off", "-hash")


def test_a_findings_toggle_is_tried_beside_the_run_that_has_the_finding(panel, sent, monkeypatch):
    ran = []
    monkeypatch.setattr(Workbench, "run_when_free", lambda self: ran.append(self.optimizations))
    panel.fusion = "v2"
    panel._on_message(panel, {"kind": "try", "toggle": "cost_model_executor", "run": 2}, [])
    assert (panel.executor, panel.stage, panel.fusion) == ("cost_model", "own", "off")
    assert sent[-1][0] == {"kind": "flash", "group": "executor"}
    assert [each.label() for each in ran] == ["stage + cost model executor"]


def test_nonsense_from_a_page_is_passed_over(panel):
    for message in (None, 3, {}, {"kind": "rm -rf"}):
        panel._on_message(panel, message, [])


@pytest.fixture
def runs(monkeypatch, sent):
    monkeypatch.setattr(engine, "compare", fake_compare([], traced=True))
    monkeypatch.setattr(setting_predictions, "learned_graphs", lambda *_: learned())
    every_replay_holds(monkeypatch)


def test_a_run_is_kept_and_shown(runs, sent):
    panel = Workbench(PROGRAM)
    assert panel.said["source"] == ""
    panel.stage = "own"
    panel.threads = panel.capacity = 1
    job = panel.run(wait=True)
    assert not job.running
    assert [each["name"] for each in panel.run_list] == ["All off", "My stage, 1 thread"]
    assert (panel.shown, panel.base) == (2, 1)
    assert panel.job["running"] is False
    assert panel.said["source"] == "measured"
    # What a click would ask for is there before it.
    settings = next(content for content, _ in sent if content.get("kind") == "settings")
    assert len(settings["settings"]) > 5


@pytest.mark.parametrize(("looked_at", "opened"), [("throughput", "two_runs"), ("what_if",) * 2])
def test_the_first_run_beside_the_baseline_opens_before_and_after_once(
    runs, monkeypatch, looked_at, opened
):
    def compare(*arguments, **options):
        found = fake_compare([])(*arguments, **options)
        trace = linked_trace()
        traced = tuple(dataclasses.replace(each, trace=trace) for each in found.variants)
        return dataclasses.replace(found, variants=traced)

    monkeypatch.setattr(engine, "compare", compare)
    panel = Workbench(PROGRAM)
    panel.tab = looked_at
    panel.stage = "own"
    panel.run(wait=True)
    assert panel.tab == opened
    panel.tab = "throughput"
    panel.executor = "inline"
    panel.run(wait=True)
    assert panel.tab == "throughput"


def test_a_second_run_at_the_same_time_is_refused(runs, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def waits(*_, **__):
        begun.set()
        go_on.wait(20)
        raise RunError("over")

    monkeypatch.setattr(engine, "compare", waits)
    panel = Workbench(PROGRAM)
    first = panel.run()
    assert begun.wait(20)
    assert panel.job["running"]
    with pytest.raises(OptionError, match="a run of 'tiny' goes on"):
        panel.run()
    go_on.set()
    assert first.wait(20)


def test_a_run_that_is_tried_meanwhile_waits_and_comes_back_with_its_news(runs, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    measure = fake_compare([], traced=True)

    def waits(*given, **options):
        begun.set()
        assert go_on.wait(20)
        return measure(*given, **options)

    monkeypatch.setattr(engine, "compare", waits)
    panel = Workbench(PROGRAM)
    first = panel.run()
    assert begun.wait(20)
    panel.stage = "smart"
    assert panel.run_when_free() is None
    assert panel.status.startswith("Next: “SmartStage”")
    panel.stage = "off"
    go_on.set()
    assert first.wait(20)
    assert panel._job is not first and panel._job.wait(20)
    assert panel.stage == "smart" and panel.shown == 2
    assert "".join(text for text, _ in panel.news["pieces"]).startswith("SmartStage trains 1.75×")
    assert panel.news["more"].startswith("Predicted was ")


def test_a_run_that_is_cancelled_takes_along_what_waits_for_it(runs, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def waits(*_, **__):
        begun.set()
        go_on.wait(20)
        raise KeyboardInterrupt("Cancelled. Nothing was kept; no process is left.")

    monkeypatch.setattr(engine, "compare", waits)
    panel = Workbench(PROGRAM)
    first = panel.run()
    assert begun.wait(20)
    panel.stage = "smart"
    panel.run_when_free()
    panel.cancel()
    go_on.set()
    assert first.wait(20)
    assert panel._job is first and panel.runs == ()
    assert panel.job["words"] == "Cancelled. Nothing was kept; no process is left."


def test_the_result_is_there_before_the_predictions(runs, monkeypatch):
    seen = []
    panel = Workbench(PROGRAM)

    def learns(program, baseline, progress):
        progress("Building the graphs")
        seen.append((panel.shown, panel.news["pieces"], panel.learned))
        return learned()

    monkeypatch.setattr(setting_predictions, "learned_graphs", learns)
    panel.optimizations = STAGE
    panel.run(wait=True)
    ((shown, pieces, known),) = seen
    assert (shown, known) == (2, 0)
    assert "".join(text for text, _ in pieces).startswith("My stage, 1 thread trains 1.50× as fast")
    # What rests on predictions is drawn anew.
    assert panel.learned == 1


def test_a_search_ends_with_its_answer(runs, monkeypatch):
    best = search(
        raced(SMART, 1.75),
        raced(STAGE, 1.5),
        program=PROGRAM.name,
        comparison=with_trace(measured([OFF, SMART, STAGE])),
    )
    monkeypatch.setattr(engine, "find_best", lambda *_, **__: best)
    panel = Workbench(PROGRAM)
    assert panel.find_best().wait(20)
    news = panel.news
    assert "".join(text for text, _ in news["pieces"]).startswith("Best: smart stage, ")
    assert news["more"].startswith("Runners-up: stage 1.5")
    assert "settings measured in" in news["more"]
    assert panel.stage == "smart"
    assert "Outcome" in panel._contents.of(panel.runs[-1], panel.runs[0], "what_if").html


class TestShape:
    @pytest.fixture
    def built(self, monkeypatch):
        def graph(program, baseline):
            return DescribedGraph(boundary=boundary(MODEL))

        monkeypatch.setattr(engine, "baseline_graph", graph)

    def test_it_is_drawn_before_anything_has_run(self, built, sent):
        panel = Workbench(PROGRAM)
        clicked(panel, None, {"kind": "shape"})
        assert panel._preview.job.wait(20)
        assert "May run ahead" in panel.shape and "Ids, preprocess" in panel.shape
        # A page that is opened beside it needs no other child process.
        job = panel._preview.job
        clicked(panel, None, {"kind": "shape"})
        assert panel._preview.job is job

    def test_it_is_begun_as_soon_as_the_panel_is_displayed(self, built, monkeypatch, sent):
        for each in (still, shown_still):
            monkeypatch.setattr(each, "display", lambda *_, **__: None)
        panel = Workbench(PROGRAM)
        assert panel._preview.job is None
        panel._ipython_display_()
        assert panel._preview.job.wait(20)
        assert "May run ahead" in panel.shape

    def test_an_error_of_the_users_code_is_said_in_its_place(self, monkeypatch, sent):
        def fails(program, baseline):
            raise RunError("`train.py`, line 4: ValueError: <no> column")

        monkeypatch.setattr(engine, "baseline_graph", fails)
        panel = Workbench(PROGRAM)
        panel.draw_shape()
        assert panel._preview.job.wait(20)
        assert "The graph is not known yet: `train.py`, line 4" in panel.shape
        assert "<no>" not in panel.shape

    def test_a_session_that_ran_or_has_no_program_needs_none(self, panel, tmp_path):
        panel.draw_shape()
        assert panel._preview.job is None

    def test_a_run_does_not_wait_for_it(self, runs, monkeypatch):
        def waits(program, baseline):
            while True:
                require_not_cancelled()
                time.sleep(0.01)

        monkeypatch.setattr(engine, "baseline_graph", waits)
        panel = Workbench(PROGRAM)
        panel.draw_shape()
        job = panel._preview.job
        panel.run(wait=True)
        assert job.wait(20) and job.cancelled
        assert panel.shape == "" and panel.shown == 1


def test_an_error_of_the_users_code_stands_in_the_panel(runs, monkeypatch):
    def fails(*_, **__):
        error = RunError("`train.py`, line 41: ValueError: no")
        error.add_note("Traceback of the child process:\nTraceback …")
        raise error

    monkeypatch.setattr(engine, "compare", fails)
    panel = Workbench(PROGRAM)
    with pytest.raises(RunError, match="train.py"):
        panel.run(wait=True)
    assert panel.job["error"] == "`train.py`, line 41: ValueError: no"
    assert panel.job["details"] == "Traceback …"
    assert panel.runs == ()


def test_a_trace_that_is_missing_is_captured(runs):
    panel = Workbench(PROGRAM, trace_steps=0)
    assert repr(panel) == "Workbench(tiny)"
    panel.stage = "own"
    panel.run(wait=True)
    panel.stage = "off"
    panel._on_message(panel, {"kind": "capture", "run": 2}, [])
    assert panel._job.wait(20)
    assert panel.stage == "own"
    assert panel.session.trace_steps == 30
    assert panel.shown == 3


def test_a_child_that_died_says_what_to_do(runs, monkeypatch):
    words = (
        "The run ended without a result (signal 9, probably memory). "
        "Lower the batch or the capacity."
    )

    def dies(*_, **__):
        raise RunError(words)

    monkeypatch.setattr(engine, "compare", dies)
    panel = Workbench(PROGRAM)
    with pytest.raises(RunError):
        panel.run(wait=True)
    assert (panel.job["error"], panel.job["running"]) == (words, False)


def test_a_run_that_is_not_possible_is_said_at_once(runs):
    panel = Workbench(wb.FunctionProgram(name="f", make=lambda: (None, None)))
    panel.stage = "own"
    with pytest.raises(OptionError, match="is a FunctionProgram"):
        panel.run()
    assert not panel.job["running"]
    # The same by a click is words in the panel.
    panel._on_message(panel, {"kind": "run"}, [])
    assert "is a FunctionProgram" in panel.job["error"]


def test_a_panel_and_its_kept_picture_are_two_outputs(panel, monkeypatch):
    shown = []

    class Handle:
        def update(self, data, **_):
            shown.append(data)

    def display(data, **options):
        shown.append(data)
        return Handle() if options.get("display_id") else None

    for each in (still, shown_still):
        monkeypatch.setattr(each, "display", display)
    panel._ipython_display_()
    kept, live = shown
    assert kept.keys() == {"text/html", "text/plain"}
    assert kept["text/html"].startswith(f'<div class="{panel.still}">')
    assert "<iframe" in kept["text/html"]
    assert "All off" in kept["text/plain"]
    assert len(kept["text/html"]) < 300_000
    assert live.keys() == {"application/vnd.jupyter.widget-view+json"}


def test_the_report_holds_every_run_and_can_be_rerun(panel, tmp_path):
    path = panel.report(tmp_path / "report.html")
    page = path.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "wb-configuration" in page
    assert "results.parquet" in page
    assert panel.saved.startswith(f"Report {path}")
    assert wb.write_report(panel.session, tmp_path / "same.html").exists()


def test_the_report_says_what_to_do_and_has_nothing_that_needs_a_kernel(panel, tmp_path):
    page = panel.report(tmp_path / "report.html").read_text()
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "In a training program of your own:" in shown
    assert "batch = wb.staged(batch, wb.StageOptions())" in shown
    assert "Not run yet: " in shown
    for wrong in ('type="radio"', "kernel", "Run shown", "wbp-"):
        assert wrong not in shown


def test_a_report_of_the_panel_takes_what_its_tabs_show(panel, tmp_path, monkeypatch):
    known = []
    monkeypatch.setattr(
        module, "session_report_html", lambda _, contents: known.append(contents) or "page"
    )
    path = wb.write_report(panel, tmp_path / "report.html")
    assert path.read_text() == "page"
    assert known == [panel._contents]
    assert panel.saved.startswith(f"Report {path}")


def test_a_report_of_nothing_is_refused(sent):
    with pytest.raises(OptionError, match="nothing has run, so there is nothing to report"):
        Workbench(PROGRAM).report()


def test_saved_runs_are_shown_again(panel, tmp_path):
    panel.save(tmp_path / "runs")
    again = Workbench(wb.load_session(tmp_path / "runs"))
    assert again.run_list == panel.run_list
    assert "give the program" in again.status
    with pytest.raises(OptionError, match="loaded without its program"):
        again.run()


def test_optimizations_set_the_toggles():
    wish = Optimizations(fused_embeddings="v2", inter_op_threads=2)
    panel = Workbench(PROGRAM, wish)
    assert (panel.fusion, panel.inter_op_threads) == ("v2", 2)
    assert panel.optimizations == wish


class TestChoices:
    DIM = wb.Toggle("dim", [16, 32])

    @pytest.fixture
    def own(self, sent):
        return Workbench(PROGRAM, toggles=[self.DIM])

    def test_they_are_a_trait_to_set_and_observe(self, own):
        seen = []
        own.observe(lambda change: seen.append(change.new), "chosen")
        own.chosen = {"dim": 32, "grappler": "off", "xla": "off"}
        assert seen == [{"dim": "32", "grappler": "off"}]
        assert own.optimizations["dim"] == 32 and own.optimizations["grappler"] == "off"
        assert own.said["name"] == "Dim 32 + Grappler off"
        own.optimizations = Optimizations(chosen=(wb.toggles.XLA.at("clusters"),))
        assert own.chosen == {"xla": "clusters"} and own.optimizations["dim"] == 16

    @pytest.mark.parametrize(
        ("chosen", "words"),
        [
            ({"dim": 64}, "toggle 'dim' has no choice 64; expected one of 16, 32"),
            ({"width": 1}, r"no toggle 'width', only tf_data, .*, dim; give it: wb.Workbench\("),
        ],
    )
    def test_what_is_none_is_refused(self, own, chosen, words):
        with pytest.raises(TraitError, match=words):
            own.chosen = chosen
        assert own.chosen == {}

    def test_a_setting_with_a_toggle_that_is_not_there_is_refused(self, own):
        wish = Optimizations(chosen=(wb.Toggle("width", [1, 2]).at(2),))
        with pytest.raises(OptionError, match="the panel has no toggle 'width'"):
            own.optimizations = wish
        with pytest.raises(OptionError, match="the panel has no toggle 'width'"):
            Workbench(PROGRAM, wish)

    def test_the_column_has_a_part_for_them(self, own, panel):
        parts = [[group["section"] for group in each.view["groups"]] for each in (own, panel)]
        assert "own" in parts[0] and "own" not in parts[1]
        assert [title for _, title in own.view["sections"]] == [
            *("Workbench", "TensorFlow", "Your own")
        ]

    def test_a_session_has_its_own(self, sent):
        session = engine.Session(PROGRAM, toggles=[self.DIM])
        assert Workbench(session).view["groups"][-1]["toggle"] == "dim"
        with pytest.raises(OptionError, match="a session has toggles of its own; give them there"):
            Workbench(session, toggles=[self.DIM])

    def test_a_run_has_them_and_its_name_says_so(self, own, monkeypatch):
        calls = []
        monkeypatch.setattr(engine, "compare", fake_compare(calls))
        own.chosen = {"dim": 32, "grappler": "off"}
        own.run(wait=True)
        assert calls[0]["baseline"]["dim"] == 16
        (setting,) = calls[0]["toggles"]
        assert setting["dim"] == 32 and setting["grappler"] == "off"
        assert [each["name"] for each in own.run_list] == ["All off", "Dim 32 + Grappler off"]
        assert own.said["source"] == "measured" and own.shown == 2

    def test_what_cannot_be_is_said_where_it_is_run(self, own):
        own.chosen = {"caller_thread": "on"}
        own.executor = "inline"
        assert own.said["beside"].startswith("The program cannot have caller thread on and an exec")
        clicked(own, None, {"kind": "run"})
        assert "exclude each other" in own.job["error"] and not own.job["running"]

    def test_a_finding_switches_one_and_leaves_the_others(self, own, sent, monkeypatch):
        monkeypatch.setattr(engine, "compare", fake_compare([]))
        own.chosen = {"dim": 32}
        own.run(wait=True)
        own.chosen = {}
        clicked(own, None, {"kind": "try", "toggle": "grappler=off", "run": 2})
        assert own.chosen == {"dim": "32", "grappler": "off"}
        assert ({"kind": "flash", "group": "chosen.grappler"}, None) in sent
        assert own._job.wait(20) and own.shown == 3


class TestEdits:
    """Names, notes, groups and deletions of runs, and what takes changes back."""

    def test_a_page_describes_and_deletes_runs(self, panel):
        panel._on_message(panel, {"kind": "describe_run", "run": 2, "words": {"name": "mine"}}, [])
        assert panel.run_list[1]["name"] == "mine"
        assert panel.run_list[1]["own"] == {"name": "mine", "note": "", "group": ""}
        edited = panel.edited
        panel._on_message(panel, {"kind": "delete_run", "run": 3}, [])
        assert [each["number"] for each in panel.run_list] == [1, 2]
        assert (panel.shown, panel.base, panel.edited) == (2, 1, edited + 1)
        panel._on_message(panel, {"kind": "describe_run", "run": 9, "words": {}}, [])
        assert "There is no run 9" in panel.job["error"]

    def test_toggles_boundary_and_runs_are_taken_back_in_their_order(self, panel):
        assert not panel.can_undo
        panel.stage = "smart"
        panel.describe_run(2, note="odd")
        panel.fusion = "v2"
        panel.undo()
        assert (panel.fusion, panel.stage, panel.runs[1].note) == ("off", "smart", "odd")
        panel.undo()
        assert (panel.stage, panel.runs[1].note) == ("smart", "")
        panel.undo()
        assert panel.stage == "off" and not panel.can_undo and panel.can_redo
        panel.redo()
        panel.redo()
        panel.redo()
        assert (panel.fusion, panel.stage, panel.runs[1].note) == ("v2", "smart", "odd")
        panel.undo()
        panel.executor = "inline"
        assert not panel.can_redo

    def test_several_toggles_that_one_click_sets_are_one_change(self, panel):
        panel.optimizations = Optimizations(fused_embeddings="v2", inter_op_threads=2)
        panel.undo()
        assert (panel.fusion, panel.inter_op_threads) == ("off", 0)
        assert not panel.can_undo

    def test_a_moved_boundary_is_moved_back(self, panel):
        panel._on_message(
            panel, {"kind": "content", "id": 1, "run": 1, "base": 1, "tab": "boundary"}, []
        )
        panel._on_message(panel, {"kind": "moved", "run": 1, "leaves": [0, 1]}, [])
        panel.stage = "moved"
        panel.undo()
        assert (panel.stage, panel.cut) == ("off", "-hash")
        panel.undo()
        assert panel.cut == ""
        panel.redo()
        panel.redo()
        assert (panel.stage, panel.cut) == ("moved", "-hash")

    def test_a_measurement_stays_when_a_change_is_taken_back(self, panel):
        panel.delete_run(3)
        panel.session.add(measured([Optimizations(), SMART]), [Optimizations(), SMART])
        panel.undo()
        assert [run.number for run in panel.runs] == [1, 2, 3, 4]

    def test_the_table_has_names_notes_and_groups_as_text(self, panel):
        panel.describe_run(2, name="<b>bold</b>", note="a & b", group="mine")
        content = panel._contents.of(panel.runs[1], panel.runs[0], "throughput").html
        assert "&lt;b&gt;bold&lt;/b&gt;" in content and "a &amp; b" in content
        assert "<b>" not in content
        assert content.index('scope="rowgroup"') > content.index("Inline executor")
        assert "My stage, 1 thread" in content  # the setting stands below the name

    def test_they_are_in_the_report_and_in_a_saved_session(self, panel, tmp_path):
        panel.describe_run(2, name="candidate", note="on the quiet machine", group="stages")
        page = panel.report(tmp_path / "report.html").read_text()
        # the still picture of the page, which needs no script
        assert "candidate" in page and "on the quiet machine" in page
        panel.save(tmp_path / "runs")
        again = Workbench(wb.load_session(tmp_path / "runs"))
        assert again.run_list == panel.run_list


def test_what_was_measured_shows_while_the_rest_of_the_run_goes_on(runs, sent, monkeypatch):
    learning = held_learning(monkeypatch)
    panel = Workbench(PROGRAM)
    panel.stage = "own"
    job = panel.run()
    assert learning.begun.wait(20)
    panel._progress("Building the graphs")
    assert (len(panel.run_list), panel.shown, panel.job["running"]) == (2, 2, True)
    learning.go_on.set()
    assert job.wait(20)


def test_stopping_when_clear_is_a_trait_of_the_panel(runs, monkeypatch):
    calls = []
    monkeypatch.setattr(engine, "compare", fake_compare(calls))
    panel = Workbench(PROGRAM)
    panel.run(wait=True)
    panel.stop_when_clear = True
    panel.run(wait=True)
    assert [each["stop_when_clear"] for each in calls] == [False, True]
