"""The table of runs, its words and its order, and what the blocks say while they run."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.panel_pages import READY_JS, made_up_session, open_panel, show_tab, write_panel_page
from tests.ui.watched import Watched
from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.progress_line import ProgressLine, ProgressState
from workbench.experiments.measurement.schedule import PhaseState
from workbench.experiments.measurement.statistics import Interval
from workbench.viz.panel.job_view import NOTHING, running
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import assets

# A model whose kernel notes what it is sent and answers with the stored contents.
MODEL_JS = """
const stored = JSON.parse(document.getElementById("stored").textContent);
const heard = {};
window.sent = [];
const model = {
  get: (name) => stored.state[name],
  set: (name, value) => (stored.state[name] = value),
  save_changes() {},
  send(message) {
    window.sent.push(message);
    const { id, run, tab } = message;
    if (message.kind !== "content") return;
    const html = stored.contents[tab] || "";
    heard["msg:custom"]({ kind: "content", id, run, html, figures: [] }, []);
  },
  on: (name, callback) => (heard[name] = callback),
  off() {},
};
window.tell = (changes) => {
  Object.assign(stored.state, changes);
  heard.change();
};
renderPanel({ model, el: document.querySelector("main") });
"""


def _line(*ratios: float, low: float = 0.0, high: float = math.inf) -> ProgressLine:
    interval = Interval(value=statistics.geometric_mean(ratios), low=low, high=high)
    state = ProgressState(
        phase="Measure",
        phases=(
            PhaseState(title="Start", state="over", seconds=2.0),
            PhaseState(title="Measure", state="now", seconds=9.0),
        ),
        share=0.4,
        left_s=12.0,
        evidence=(Evidence(label="smart stage", ratios=ratios, rounds=6, interval=interval),),
        machine="The machine is busy: 1.3 of 2 cores in use by others; intervals will be wide.",
    )
    return ProgressLine(f"Block {2 * len(ratios) + 1} of 12, 12\u00a0s left", state)


@pytest.fixture(scope="module")
def panel_with_words() -> Workbench:
    """A panel whose runs have names, notes and a group."""
    panel = Workbench(made_up_session())
    panel.describe_run(2, name="Candidate <1>", note="quiet & cold")
    panel.describe_run(3, group="executors")
    return panel


@pytest.fixture
def live(watched: Watched, panel_with_words: Workbench, tmp_path: Path) -> Iterator[Any]:
    """That panel beside a kernel that notes what it is asked for."""
    panel = panel_with_words
    names = [name for name in panel.keys if name[0] != "_" and name != "layout"]
    state = {name: getattr(panel, name) for name in names}
    run, base = panel.runs[1], panel.runs[0]
    contents = {"throughput": panel._contents.of(run, base, "throughput").html}
    stored = {"state": {**state, "shown": 2}, "contents": contents}
    path = tmp_path / "live.html"
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Live</title>'
        f"<style>{assets.panel_style()}</style><main></main>"
        f'<script type="application/json" id="stored">{assets.json_script(stored)}</script>'
        f'<script type="module">{assets.panel_script()}{MODEL_JS}</script></html>',
        "utf-8",
    )
    watched.page.set_viewport_size({"width": 1300, "height": 1400})
    watched.page.goto(path.as_uri())
    watched.page.wait_for_function(READY_JS, timeout=30_000)
    yield watched.page
    assert watched.errors == []


def tell(page: Any, **changes: Any) -> None:
    page.evaluate("(changes) => window.tell(changes)", json.loads(json.dumps(changes)))


def sent(page: Any) -> list[dict[str, Any]]:
    messages = page.evaluate("() => window.sent")
    return [each for each in messages if each["kind"] != "content"]


def test_each_round_is_drawn_as_it_comes(live: Any) -> None:
    evidence = live.locator(".wbp-evidence")
    assert evidence.is_hidden()
    tell(live, job=dataclasses.asdict(running(_line(1.2, 1.4))))
    assert evidence.is_visible()
    assert evidence.locator(".wbp-dot").count() == 2
    assert evidence.locator(".wbp-range").count() == 0
    assert "Smart stage 1.30×, not clear yet" in " ".join(evidence.inner_text().split())
    tell(live, job=dataclasses.asdict(running(_line(1.2, 1.4, 1.3, low=1.02, high=1.65))))
    assert evidence.locator(".wbp-dot").count() == 3
    assert evidence.locator(".wbp-range").count() == 1
    words = " ".join(evidence.inner_text().split())
    assert "Smart stage 1.30× (1.02–1.65), faster" in words and "3 of 6 rounds" in words
    column = live.locator(".wbp-progress").inner_text().replace("\u00a0", " ")
    assert "phase 2 of 2, about 12 s left" in column
    assert "The machine is busy: 1.3 of 2 cores in use by others" in column
    tell(live, job=dataclasses.asdict(NOTHING))
    assert evidence.is_hidden()


def test_blocks_may_end_when_clear(live: Any) -> None:
    live.get_by_label("Stop when clear").check()
    tell(live, job=dataclasses.asdict(running(_line(1.2))))
    assert live.get_by_label("Stop when clear").is_checked()
    assert live.get_by_label("Stop when clear").is_disabled()


def test_a_run_gets_words_and_is_deleted_by_hand(live: Any) -> None:
    live.get_by_text("Name, group and note of run 2").click()
    name = live.get_by_label("Name", exact=True)
    assert name.input_value() == "Candidate <1>"
    assert live.get_by_label("Note").input_value() == "quiet & cold"
    name.fill("better")
    name.press("Tab")
    live.get_by_role("button", name="Delete this run").click()
    assert sent(live)[-2:] == [
        {"kind": "describe_run", "run": 2, "words": {"name": "better"}},
        {"kind": "delete_run", "run": 2},
    ]
    assert live.get_by_role("button", name="Redo").is_disabled()
    tell(live, can_undo=True, can_redo=True)
    live.get_by_role("button", name="Undo").click()
    assert sent(live)[-1] == {"kind": "undo"}


def test_the_keyboard_takes_back_but_not_what_is_typed(live: Any) -> None:
    live.locator("[data-tab=throughput]").focus()
    live.keyboard.press("Control+z")
    live.keyboard.press("Control+Shift+Z")
    assert [each["kind"] for each in sent(live)[-2:]] == ["undo", "redo"]
    live.get_by_text("Name, group and note of run 2").click()
    live.get_by_label("Name", exact=True).focus()
    before = len(sent(live))
    live.keyboard.press("Control+z")
    assert len(sent(live)) == before
    # Views have fields for a search.
    field = "Object.assign(document.createElement('input'), { type: 'search' })"
    live.evaluate(f"document.querySelector('.wbp').appendChild({field}).focus()")
    live.keyboard.press("Control+z")
    assert len(sent(live)) == before


def test_the_table_is_drawn_anew_when_words_change(live: Any) -> None:
    count = "() => window.sent.filter(({ tab }) => tab === 'throughput').length"
    before = live.evaluate(count)
    tell(live, edited=99)
    live.wait_for_function(f"({count})() > {before}")


def order(panel: Any) -> list[str]:
    return [row.get_attribute("data-run") for row in panel.locator("[data-run]").all()]


def test_a_page_without_a_kernel_sorts_its_runs(
    watched: Watched, panel_with_words: Workbench, tmp_path: Path
) -> None:
    session = panel_with_words.session
    panel = open_panel(watched.page, write_panel_page(tmp_path / "p.html", session, shown=2))
    pane = show_tab(panel, "throughput")
    assert order(pane) == ["1", "2", "3"]
    assert "Candidate <1>" in pane.inner_text() and "quiet & cold" in pane.inner_text()
    assert pane.locator(".wbp-group-row").inner_text() == "executors"
    head = pane.locator("[data-sort-by=rate]")
    head.get_by_role("button").click()
    # groups stay together
    assert (order(pane), head.get_attribute("aria-sort")) == (["2", "1", "3"], "descending")
    show_tab(panel, "memory")
    show_tab(panel, "throughput")
    assert order(pane) == ["2", "1", "3"]
    head.get_by_role("button").press("Enter")
    assert (order(pane), head.get_attribute("aria-sort")) == (["1", "2", "3"], "ascending")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "none"
    # what only a kernel keeps is not offered
    assert panel.locator(".wbp-edit").is_hidden()
    assert panel.get_by_label("Stop when clear").count() == 0
    assert watched.errors == []


def test_a_boundary_that_was_moved_speaks_of_where_it_is_now(
    watched: Watched, panel_with_words: Workbench, tmp_path: Path
) -> None:
    address = write_panel_page(tmp_path / "p.html", panel_with_words.session, shown=1)
    pane = show_tab(open_panel(watched.page, address), "boundary")
    sentence = pane.locator(".wb-sentence").first
    before = sentence.inner_text()
    handle = pane.locator("[role=slider]")
    handle.press("ArrowLeft")
    moved = sentence.inner_text().replace("\u00a0", " ")
    assert moved.startswith("You moved the line: ") and "Predicted: " in moved
    facts = pane.locator(".wbb-facts").inner_text().replace("\u00a0", " ")
    gain = moved.partition("Predicted: ")[2].partition(" of un-staged")[0]
    assert gain in facts
    handle.press("ArrowRight")
    assert sentence.inner_text() == before
    assert watched.errors == []
