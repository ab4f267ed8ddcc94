"""A timeline and a boundary that are told of a node from elsewhere, and that tell of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.plans import towers
from tests.builders.traces import staged_trace
from tests.ui.pages import write_boundary_page, write_page
from tests.ui.watched import Watched
from workbench.core.planning.planner import plan_stages
from workbench.viz.boundary.view import boundary_view
from workbench.viz.timeline.view import timeline_view

TIMELINE = """
const id = "timeline-0";
const root = document.getElementById(id);
const header = JSON.parse(document.getElementById(`${id}-header`).textContent);
window.nodes = [];
window.spans = [];
inflate(fromBase64(document.getElementById(`${id}-data`).textContent)).then((data) => {
  const { signal } = new AbortController();
  const onSelect = (i) => spans.push(i);
  window.view = mount(root, header, data, { signal, onSelect, onNode: (name) => nodes.push(name) });
});
"""
BOUNDARY = """
window.nodes = [];
window.picked = [];
unpacked(fromBase64(document.getElementById("boundary-0-data").textContent)).then((content) => {
  const root = document.getElementById("boundary-0");
  const { signal } = new AbortController();
  const onSelect = (name) => picked.push(name);
  const onNode = (name) => nodes.push(name);
  window.view = mountBoundary(root, content, { signal, onSelect, onNode });
});
"""
ENDS = ("mountReport();\n",)


def opened(watched: Watched, path: Path, script: str) -> Any:
    """The page with what mounts everything replaced by one mount that can be asked."""
    text = path.read_text("utf-8")
    for end in ENDS:
        assert end in text
        text = text.replace(end, script)
    path.write_text(text, "utf-8")
    watched.page.goto(path.as_uri())
    watched.page.wait_for_function("() => window.view")
    return watched.page


@pytest.fixture
def timeline(watched: Watched, tmp_path: Path) -> Any:
    write_page(tmp_path / "page.html", timeline_view(staged_trace(6)))
    yield opened(watched, tmp_path / "page.html", TIMELINE)
    assert watched.errors == []


@pytest.fixture
def boundary(watched: Watched, tmp_path: Path) -> Any:
    write_boundary_page(tmp_path / "page.html", boundary_view(plan_stages(towers())))
    yield opened(watched, tmp_path / "page.html", BOUNDARY)
    assert watched.errors == []


def about(page: Any) -> str:
    return " ".join(page.locator(".wb-about").inner_text().split())


def test_a_node_from_elsewhere_is_selected_in_the_step_that_is_shown(timeline: Any) -> None:
    node = timeline.evaluate(
        "() => view.state.model.names.find("
        "(name, k) => k < view.state.model.header.nodeNames && name.includes('MatMul'))"
    )
    assert timeline.evaluate("(name) => view.selectNode(name)", node) is True
    words = about(timeline)
    assert words.startswith(node) and "in step 4" in words
    timeline.evaluate("view.moveStep(-2)")
    assert timeline.evaluate("(name) => view.selectNode(name)", node) is True
    assert "in step 2" in about(timeline)
    # who asked is not told what was asked
    assert timeline.evaluate("[nodes, spans]") == [[], []]


def test_it_is_brought_into_view_where_that_is_asked(timeline: Any) -> None:
    node = timeline.evaluate("view.state.model.names[0]")
    timeline.evaluate("view.setWindow([0, 1e6])")
    window = "[...view.state.window]"
    before = timeline.evaluate(window)
    timeline.evaluate("(name) => view.selectNode(name)", node)
    assert timeline.evaluate(window) == before
    timeline.evaluate("(name) => view.selectNode(name, { reveal: true })", node)
    low, high = timeline.evaluate(window)
    span = timeline.evaluate("view.state.model.start[view.state.selected]")
    assert low <= span <= high


def test_a_node_that_is_not_there_leaves_nothing_selected(timeline: Any) -> None:
    node = timeline.evaluate("view.state.model.names[0]")
    timeline.evaluate("(name) => view.selectNode(name)", node)
    assert timeline.evaluate("view.selectNode('nowhere')") is False
    assert timeline.evaluate("view.state.selected") == -1
    assert timeline.evaluate("view.selectNode('')") is False


def test_a_selected_span_tells_its_node(timeline: Any) -> None:
    timeline.evaluate("view.selectNode(view.state.model.names[0])")
    i = timeline.evaluate("view.state.selected")
    timeline.evaluate("(i) => view.select(i)", i)
    wait = timeline.evaluate(
        "view.state.model.name.findIndex((k) => k >= view.state.model.header.nodeNames)"
    )
    timeline.evaluate("(i) => view.select(i)", wait)
    timeline.locator("canvas.wb-lanes").press("Escape")
    assert timeline.evaluate("nodes") == [timeline.evaluate("view.state.model.names[0]"), "", ""]
    assert timeline.evaluate("spans") == [i, wait, -1]


def test_a_node_from_elsewhere_opens_the_box_that_holds_it(boundary: Any) -> None:
    assert boundary.evaluate("view.selectNode('keep_prob')") is True
    pressed = boundary.locator(".wbb-pick[aria-pressed=true]")
    assert "Does not depend on the input" in pressed.inner_text()
    assert boundary.locator(".wbb-here").all_inner_texts() == ["keep_prob"]
    assert boundary.evaluate("view.selectNode('noise')") is True
    assert "It has state or effects of its own" in boundary.locator(".wbb-why").inner_text()
    assert boundary.evaluate("view.selectNode('tower_1/hash')") is True
    assert "tower_0…tower_1/hash" in pressed.inner_text()
    assert boundary.evaluate("[nodes, picked]") == [[], []]


def test_the_picture_is_scrolled_to_the_box_and_the_page_is_not(boundary: Any) -> None:
    boundary.set_viewport_size({"width": 420, "height": 400})
    frame = boundary.locator(".wbb-flow")
    frame.evaluate("e => { e.scrollLeft = 0; }")
    boundary.evaluate("scrollTo(0, 0)")
    boundary.evaluate("view.selectNode('net/joined')")
    box = boundary.locator(".wbb-box.wbb-on").bounding_box()
    whole = frame.bounding_box()
    assert whole["x"] <= box["x"] and box["x"] + box["width"] <= whole["x"] + whole["width"]
    assert boundary.evaluate("scrollY") == 0
    boundary.evaluate("view.selectNode('net/joined', { reveal: true })")
    assert boundary.evaluate("scrollY") > 0


def test_a_node_that_is_nowhere_picks_nothing(boundary: Any) -> None:
    assert boundary.evaluate("view.selectNode('nowhere')") is False
    assert boundary.locator(".wbb-why").count() == 0
    assert boundary.locator("[aria-pressed=true]").count() == 0


def test_a_box_of_one_node_tells_it_and_a_group_tells_none(boundary: Any) -> None:
    def pick(label: str) -> None:
        boundary.locator(".wbb-pick", has=boundary.get_by_text(label, exact=True)).click()

    for label in ("noise", "noise", "tower_0…tower_1/hash"):
        pick(label)
    boundary.get_by_text("Refused, and why", exact=True).click()
    boundary.get_by_role("button", name="net/dropped", exact=True).click()
    assert boundary.evaluate("nodes") == ["noise", "", "", "net/dropped"]
    assert boundary.evaluate("picked") == ["noise", "", "tower_0…tower_1/hash", "net/dropped"]
