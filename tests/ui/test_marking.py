"""What a user marks in a timeline: stretches, boxes, families, names; and keys, files and links."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ui.pages import drag_in, open_page, picture_of, range_in_view, write_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.core.graph.op_families import FAMILY_NAMES, LOOKUP
from workbench.viz.style import format
from workbench.viz.timeline.view import TimelineView, timeline_view

LANES_Y = 200  # px from the top of the canvas: inside of the lanes
RULER_Y = 46


@pytest.fixture(scope="module")
def view() -> TimelineView:
    return timeline_view(dlrm_trace(16))


@pytest.fixture
def timeline(watched: Watched, view: TimelineView, tmp_path: Path) -> Any:
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    yield found
    assert watched.errors == []
    assert watched.outside() == []


def canvas(timeline: Any) -> Any:
    return timeline.locator("canvas.wb-lanes")


def drag(timeline: Any, start: float, end: float, y: float = LANES_Y, key: str = "") -> None:
    drag_in(canvas(timeline), start, end, y, key)


def marked(timeline: Any) -> Any:
    region = timeline.locator(".wb-marked")
    region.locator("caption").wait_for()
    return region


def test_a_drag_marks_a_stretch_and_sums_it(timeline: Any) -> None:
    before = range_in_view(timeline)
    drag(timeline, 300, 700)
    caption = marked(timeline).locator("caption").inner_text()
    width = canvas(timeline).bounding_box()["width"] - 104
    wanted = (before[1] - before[0]) * 400 / width
    assert float(re.search(r"Marked: ([\d.]+)", caption)[1]) == pytest.approx(wanted, rel=0.05)
    assert range_in_view(timeline) == before
    timeline.get_by_role("button", name="Clear the mark").click()
    timeline.locator(".wb-marked").wait_for(state="hidden")


def test_the_ends_of_a_mark_snap_to_what_is_near(timeline: Any, view: TimelineView) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("f")
    low, high = range_in_view(timeline)
    width = canvas(timeline).bounding_box()["width"] - 104
    step = view.steps.iloc[8]
    begin = (step["start_ns"] - view.origin_ns) / 1e6
    place = 104 + (begin - low) / (high - low) * width
    end = 104 + (begin + step["dur_ns"] / 1e6 - low) / (high - low) * width
    drag(timeline, place + 2, end - 2, y=LANES_Y)
    caption = marked(timeline).locator("caption").inner_text()
    assert f"Marked: {format.duration(step['dur_ns'])}" in caption
    assert "1\u00a0step" in caption


def other_caption(timeline: Any, than: str = "") -> str:
    """The caption of what is marked, once it is another one."""
    timeline.page.wait_for_function(
        "(than) => { const c = document.querySelector('.wb-marked caption');"
        " return c && c.innerText !== than; }",
        arg=than,
    )
    words: str = timeline.locator(".wb-marked caption").inner_text()
    return words


def test_m_marks_a_step_or_an_op_and_shift_m_measures_from_there_to_another(timeline: Any) -> None:
    page = timeline.page
    canvas(timeline).focus()
    page.keyboard.press("m")
    step = other_caption(timeline)
    assert "1\u00a0step. Times are those of a step." in step
    field = timeline.get_by_role("searchbox")
    field.fill("loss/SigmoidXent")
    field.press("Enter")
    canvas(timeline).focus()
    page.keyboard.press("m")
    op = other_caption(timeline, step)
    assert "less than a step" in op
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+M")
    both = other_caption(timeline, op)
    # from one op to the same op of the next step is about a step
    assert re.search(r", (0\.9\d|1|1\.\d+)\u00a0steps?\.", both), both


@pytest.mark.parametrize(("y", "key"), [(RULER_Y, ""), (LANES_Y, "Alt")])
def test_a_drawn_box_is_zoomed_into(timeline: Any, y: int, key: str) -> None:
    low, high = range_in_view(timeline)
    drag(timeline, 400, 600, y=y, key=key)
    new_low, new_high = range_in_view(timeline)
    width = canvas(timeline).bounding_box()["width"] - 104
    assert new_high - new_low == pytest.approx((high - low) * 200 / width, rel=0.08)
    assert low < new_low < new_high < high
    assert timeline.locator(".wb-marked").is_hidden()


def test_the_legend_is_a_filter_of_lanes_table_and_sums(timeline: Any, view: TimelineView) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("0")
    range_in_view(timeline)
    before = picture_of(canvas(timeline))
    lookup = timeline.locator(".wb-legend").get_by_role("button", name=FAMILY_NAMES[LOOKUP])
    lookup.click()
    assert lookup.get_attribute("aria-pressed") == "true"
    range_in_view(timeline)
    table = view.in_view()
    wanted = table[table["family"] == LOOKUP]["op"].tolist()
    assert timeline.locator(".wb-inview tbody td:first-child").all_inner_texts() == wanted
    assert picture_of(canvas(timeline)) != before
    lookup.click()
    range_in_view(timeline)
    assert timeline.locator(".wb-inview tbody tr").count() == len(table)
    assert picture_of(canvas(timeline)) == before


def test_the_name_of_an_op_is_copied(watched: Watched, timeline: Any) -> None:
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    field = timeline.get_by_role("searchbox")
    field.fill("C3/CopyOnRead")
    field.press("Enter")
    timeline.get_by_role("button", name="Copy name").click()
    timeline.get_by_role("button", name="Copied").wait_for()
    assert watched.page.evaluate("navigator.clipboard.readText()") == "C3/CopyOnRead"


def test_a_question_mark_lists_all_keys_and_closes_them(timeline: Any) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("?")
    keys = timeline.get_by_role("group", name="Keys of the timeline")
    words = keys.inner_text()
    for part in ("zoom in and out", "copy the name", "draw a box", "mark a stretch"):
        assert part in words
    timeline.page.keyboard.press("Escape")
    assert keys.is_hidden()
    assert timeline.page.evaluate("document.activeElement.className") == "wb-lanes"


def test_a_table_is_saved_as_csv(timeline: Any, view: TimelineView, tmp_path: Path) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("0")
    range_in_view(timeline)
    with timeline.page.expect_download() as caught:
        timeline.get_by_role("button", name="Save as CSV").click()
    caught.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["Op", "Family", "Spans", "Time in view", "Longest"]
    wanted = view.in_view()
    assert [row[0] for row in rows] == wanted["op"].tolist()
    assert [row[3] for row in rows] == [
        format.duration(total).replace("\u00a0", " ").replace("\u2009", " ")
        for total in wanted["total_ns"]
    ]


def test_a_link_shows_the_same_selection_in_another_window(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    address = write_page(tmp_path / "page.html", view, view)
    open_page(watched.page, address)
    second = watched.page.locator("[data-wb-timeline]").nth(1)
    field = second.get_by_role("searchbox")
    field.fill("C3/CopyOnRead")
    field.press("Enter")
    drag(second, 300, 700)
    marked(second)
    watched.page.wait_for_function("() => location.hash.includes('marked')")
    link, window = watched.page.url, range_in_view(second)
    words = second.locator(".wb-marked caption").inner_text()
    watched.page.goto("about:blank")
    open_page(watched.page, link)
    again = watched.page.locator("[data-wb-timeline]").nth(1)
    assert again.locator(".wb-about").inner_text().startswith("C3/CopyOnRead")
    assert marked(again).locator("caption").inner_text() == words
    assert range_in_view(again) == pytest.approx(window, abs=0.1)
    assert watched.page.locator("[data-wb-timeline]").nth(0).locator(".wb-marked").is_hidden()
    assert watched.errors == []


def test_a_damaged_link_opens_the_page_as_it_is(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    address = write_page(tmp_path / "page.html", view)
    for link in ("#at=nothing", "#at=timeline-0&window=9~1&marked=x~y&op=<b>&step=none", "#%%%"):
        watched.page.goto("about:blank")
        timeline = open_page(watched.page, address + link)
        assert timeline.locator(".wb-marked").is_hidden()
    assert watched.errors == []
