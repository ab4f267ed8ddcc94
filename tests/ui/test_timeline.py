"""The timeline in a browser: paints, zooms, picks, searches, and asks the network for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ui.pages import (
    FIRST_LANE,
    STRIP,
    colors_of,
    each_width,
    open_page,
    picture_of,
    range_in_view,
    rgb,
    write_page,
)
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.core.graph.op_families import COPY, INPUT, LOOKUP
from workbench.viz.style.colors import FAMILIES
from workbench.viz.timeline.view import TimelineView, timeline_view

LANE = 30  # px from one lane to the next


@pytest.fixture(scope="module")
def view() -> TimelineView:
    return timeline_view(dlrm_trace(24))


@pytest.fixture
def timeline(watched: Watched, view: TimelineView, tmp_path: Path) -> Any:
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    yield found
    assert watched.errors == []
    assert watched.outside() == []


def canvas(timeline: Any) -> Any:
    return timeline.locator("canvas.wb-lanes")


def at(timeline: Any, x: float, y: float) -> tuple[float, float]:
    box = canvas(timeline).bounding_box()
    return box["x"] + x, box["y"] + y


def lane_top(view: TimelineView, kind: str) -> int:
    """Top of the first lane of a kind; a group ends with 8 px, a buffer is 12 px taller."""
    y = FIRST_LANE
    for k, lane in enumerate(view.lanes):
        if k and lane.group != view.lanes[k - 1].group:
            y += 8
        if lane.kind == kind:
            return y
        y += LANE + (12 if lane.kind == "buffer" else 0)
    raise AssertionError(f"no lane of kind {kind}")


def test_every_lane_is_painted(timeline: Any, view: TimelineView) -> None:
    prefetch, threads = lane_top(view, "prefetch"), lane_top(view, "inter_op")
    assert colors_of(timeline, *STRIP)
    assert rgb(FAMILIES[INPUT].light) in colors_of(timeline, prefetch, prefetch + 26)
    assert rgb(FAMILIES[LOOKUP].light) not in colors_of(timeline, prefetch, prefetch + 26)
    for thread in range(4):
        top = threads + thread * LANE
        assert rgb(FAMILIES[LOOKUP].light) in colors_of(timeline, top, top + 26)
    main = colors_of(timeline, FIRST_LANE, FIRST_LANE + 26)
    assert len(main) > 5
    buffer = colors_of(timeline, lane_top(view, "buffer"), lane_top(view, "buffer") + 38)
    assert len(buffer) > 2


def test_the_answer_stands_first(timeline: Any) -> None:
    words = timeline.locator(".wb-sentence").inner_text()
    assert words.startswith("A step takes ")
    assert words.endswith(" in the median.")


def test_keys_move_the_window(timeline: Any) -> None:
    low, high = range_in_view(timeline)
    canvas(timeline).focus()
    for key, wider, later in [
        *(("w", -1, 0), ("s", 1, 0), ("a", 0, -1), ("d", 0, 1), ("ArrowLeft", 0, -1)),
        *(("ArrowRight", 0, 1), ("]", 0, 1), ("[", 0, -1), ("0", 1, 0)),
    ]:
        for _ in range(4 if key in "[]" else 1):
            timeline.page.keyboard.press(key)
        new_low, new_high = range_in_view(timeline)
        assert sign(new_high - new_low - (high - low)) == wider, key
        if not wider:
            assert sign(new_low - low) == later, key
        low, high = new_low, new_high


def sign(value: float) -> int:
    """-1, 0 or 1; 0 up to what the caption's rounding makes, in ms."""
    return 0 if abs(value) < 0.15 else 1 if value > 0 else -1


def test_f_fits_the_step_and_then_the_selection(timeline: Any, view: TimelineView) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("f")
    low, high = range_in_view(timeline)
    step = view.steps.iloc[12]
    assert high - low == pytest.approx(step["dur_ns"] / 1e6 * 1.12, rel=0.02)
    y = lane_top(view, "prefetch") + 10
    timeline.page.mouse.click(*at(timeline, 600, y))
    canvas(timeline).focus()
    timeline.page.keyboard.press("f")
    assert range_in_view(timeline) != pytest.approx((low, high))


def test_keys_do_nothing_without_focus(timeline: Any) -> None:
    before = range_in_view(timeline)
    timeline.page.keyboard.press("w")
    assert range_in_view(timeline) == before


def test_click_selects_and_the_text_below_describes(timeline: Any, view: TimelineView) -> None:
    about = timeline.locator(".wb-about")
    assert "zoom" in about.inner_text()
    y = lane_top(view, "prefetch") + 10
    timeline.page.mouse.click(*at(timeline, 600, y))
    words = about.inner_text()
    assert "ReadLines" in words
    assert "Family Input, decode" in words
    assert "Duration" in words
    assert "For step" in words
    assert "Dispatch" in words
    timeline.page.keyboard.press("Escape")
    assert "ReadLines" not in about.inner_text()


def test_zoom_to_it_and_clear_are_buttons(timeline: Any, view: TimelineView) -> None:
    timeline.page.mouse.click(*at(timeline, 600, lane_top(view, "prefetch") + 10))
    before = range_in_view(timeline)
    timeline.get_by_role("button", name="Zoom to it").click()
    assert range_in_view(timeline) != before
    timeline.get_by_role("button", name="Clear").click()
    assert "zoom" in timeline.locator(".wb-about").inner_text()
    assert timeline.page.evaluate("document.activeElement.className") == "wb-lanes"


def test_hover_card_stays_inside_and_goes_on_a_key(timeline: Any, view: TimelineView) -> None:
    card = timeline.locator(".wb-card")
    assert not card.is_visible()
    for x in (200, 1150):
        timeline.page.mouse.move(*at(timeline, x, lane_top(view, "prefetch") + 10))
        card.wait_for(state="visible")
        inner, outer = card.bounding_box(), timeline.locator(".wb-frame").bounding_box()
        assert inner["x"] >= outer["x"]
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        assert inner["width"] == 248
    assert "Input, decode" in card.inner_text()
    timeline.page.keyboard.press("Shift")
    assert not card.is_visible()


def test_search_counts_dims_and_walks(timeline: Any) -> None:
    field = timeline.get_by_role("searchbox")
    canvas(timeline).focus()
    timeline.page.keyboard.press("/")
    assert field.evaluate("e => e === document.activeElement")
    before = picture_of(canvas(timeline))
    field.fill("copyonread")
    status = timeline.locator(".wb-found")
    assert "24 spans, 2." in status.inner_text()
    assert status.inner_text().endswith("ms a step")
    assert picture_of(canvas(timeline)) != before
    field.press("Enter")
    first = timeline.locator(".wb-about").inner_text()
    assert "C3/CopyOnRead" in first
    field.press("Enter")
    assert timeline.locator(".wb-about").inner_text() != first
    field.fill("c99")
    assert status.inner_text() == "No op has “c99” in its name"
    field.press("Escape")
    assert field.input_value() == ""
    assert status.inner_text() == ""
    assert timeline.page.evaluate("document.activeElement.className") == "wb-lanes"


def test_wheel_zooms_only_with_focus_or_ctrl(timeline: Any) -> None:
    page = timeline.page
    page.add_style_tag(content="body{min-height:3000px}")
    low, high = range_in_view(timeline)
    page.mouse.move(*at(timeline, 600, 200))
    page.mouse.wheel(0, 120)
    page.wait_for_function("scrollY > 0")
    assert range_in_view(timeline) == (low, high)
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(*at(timeline, 600, 200))
    canvas(timeline).focus()
    page.mouse.wheel(0, -240)
    new_low, new_high = range_in_view(timeline)
    assert new_high - new_low < high - low
    canvas(timeline).blur()
    page.mouse.move(*at(timeline, 600, 200))
    page.keyboard.down("Control")
    page.mouse.wheel(0, 240)
    page.keyboard.up("Control")
    wide_low, wide_high = range_in_view(timeline)
    assert wide_high - wide_low > new_high - new_low


def test_a_drag_with_shift_pans_and_the_strip_moves_and_resizes_the_window(
    timeline: Any, view: TimelineView
) -> None:
    page = timeline.page

    def drag(start: tuple[float, float], end: tuple[float, float]) -> None:
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(*end, steps=4)
        page.mouse.up()

    low, high = range_in_view(timeline)
    page.keyboard.down("Shift")
    drag(at(timeline, 700, 200), at(timeline, 500, 200))
    page.keyboard.up("Shift")
    panned = range_in_view(timeline)
    assert panned[0] > low
    assert panned[1] - panned[0] == pytest.approx(high - low, abs=0.05)
    page.mouse.click(*at(timeline, 1000, 18))
    jumped = range_in_view(timeline)
    assert jumped[0] > panned[0]
    # the left grip stands where the window begins
    width = canvas(timeline).bounding_box()["width"] - 104
    whole = view.duration_ns / 1e6
    grip = 104 + jumped[0] / whole * width
    drag(at(timeline, grip, 18), at(timeline, grip - 200, 18))
    resized = range_in_view(timeline)
    assert resized[0] < jumped[0] - 10
    assert resized[1] == pytest.approx(jumped[1], abs=0.3)


def test_toggles_say_what_is_on(timeline: Any) -> None:
    over = timeline.locator("canvas.wb-over")
    flows = timeline.get_by_role("button", name="Flows")
    assert flows.get_attribute("aria-pressed") == "true"
    drawn = picture_of(over)
    flows.click()
    assert flows.get_attribute("aria-pressed") == "false"
    assert picture_of(over) != drawn
    gaps = timeline.get_by_role("button", name="Gaps")
    before = picture_of(canvas(timeline))
    gaps.click()
    assert picture_of(canvas(timeline)) != before


def test_table_lists_what_is_in_view(timeline: Any, view: TimelineView) -> None:
    canvas(timeline).focus()
    timeline.page.keyboard.press("0")
    range_in_view(timeline)
    rows = timeline.locator(".wb-inview tbody tr")
    wanted = view.in_view()
    assert rows.count() == len(wanted)
    assert rows.first.locator("td").first.inner_text() == wanted["op"].iloc[0]


def test_buttons_of_what_is_absent_are_absent(watched: Watched, tmp_path: Path) -> None:
    plain = timeline_view(dlrm_trace(6, producers=0))
    found = open_page(watched.page, write_page(tmp_path / "plain.html", plain))
    assert found.get_by_role("button", name="Flows").count() == 0
    assert found.get_by_role("button", name="Gaps").count() == 1


def test_a_node_called_script_is_text(watched: Watched, tmp_path: Path) -> None:
    name = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
    odd = timeline_view(dlrm_trace(4, producers=0, first_name=name), title=name)
    found = open_page(watched.page, write_page(tmp_path / "odd.html", odd))
    found.get_by_role("searchbox").fill("<script>")
    assert "4 spans" in found.locator(".wb-found").inner_text()
    found.get_by_role("searchbox").press("Enter")
    assert name in found.locator(".wb-about").inner_text()
    box = canvas(found).bounding_box()
    watched.page.mouse.move(box["x"] + box["width"] * 0.44, box["y"] + 130)
    assert watched.page.title() == "Timelines"
    assert found.locator("img").count() == 0
    assert watched.errors == []
    assert watched.outside() == []


def test_themes_follow_the_page(watched: Watched, view: TimelineView, tmp_path: Path) -> None:
    page = watched.page
    found = open_page(page, write_page(tmp_path / "page.html", view))
    threads = lane_top(view, "inter_op")
    light, dark = rgb(FAMILIES[COPY].light), rgb(FAMILIES[COPY].dark)
    assert light in colors_of(found, threads, threads + 120)
    page.emulate_media(color_scheme="dark")
    assert dark in colors_of(found, threads, threads + 120)
    assert light not in colors_of(found, threads, threads + 120)
    # a notebook's theme counts more than the system's
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert light in colors_of(found, threads, threads + 120)
    assert found.get_attribute("data-wb-theme") == "light"


def test_forced_colors_leave_patterns_and_codes(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    watched.page.emulate_media(forced_colors="active")
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    threads = lane_top(view, "inter_op")
    drawn = colors_of(found, threads, threads + 120)
    assert rgb(FAMILIES[COPY].light) not in drawn
    assert len(drawn) > 2
    assert watched.errors == []


def test_print_is_light_whatever_the_screen_shows(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    watched.page.emulate_media(color_scheme="dark")
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    threads = lane_top(view, "inter_op")
    assert rgb(FAMILIES[COPY].light) in colors_of(found, threads, threads + 120)
    watched.page.emulate_media(media="print")
    assert "ms of 2" in found.locator(".wb-range").inner_text()
    assert not found.locator(".wb-tools").is_visible()
    watched.page.emulate_media(media="screen")
    assert not found.locator(".wb-range").is_visible()
    watched.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert rgb(FAMILIES[COPY].dark) in colors_of(found, threads, threads + 120)


@each_width
def test_the_page_never_scrolls_sideways(
    watched: Watched, view: TimelineView, tmp_path: Path, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    frame = found.locator(".wb-frame")
    assert frame.evaluate("f => f.scrollWidth") >= 560


def test_it_says_what_it_is_to_those_who_do_not_see_it(timeline: Any) -> None:
    drawn = canvas(timeline)
    assert drawn.get_attribute("role") == "application"
    label = drawn.get_attribute("aria-label")
    assert label.startswith("Timeline of DLRM, staged. A step takes ")
    assert " W and S zoom" in label
    described = timeline.page.locator(f"#{drawn.get_attribute('aria-describedby')}")
    assert described.get_attribute("role") == "status"
    assert timeline.get_attribute("data-lm-suppress-shortcuts") == "true"
    for button in timeline.get_by_role("button").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24
        assert button.inner_text() or button.get_attribute("aria-label")


def test_two_timelines_live_on_one_page(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    plain = timeline_view(dlrm_trace(8, producers=0))
    open_page(watched.page, write_page(tmp_path / "two.html", plain, view))
    both = watched.page.locator("[data-wb-timeline]")
    assert both.count() == 2
    before = range_in_view(both.nth(1))
    canvas(both.nth(0)).focus()
    watched.page.keyboard.press("w")
    assert range_in_view(both.nth(1)) == before
    assert watched.errors == []


def test_damaged_data_says_so_and_leaves_the_picture(
    watched: Watched, view: TimelineView, tmp_path: Path
) -> None:
    address = write_page(tmp_path / "page.html", view)
    text = (tmp_path / "page.html").read_text()
    (tmp_path / "page.html").write_text(text.replace('"version":3', '"version":9'))
    watched.page.goto(address)
    watched.page.get_by_text("Timeline format 9; this page reads 3").wait_for()
    assert watched.page.locator("[data-wb-timeline] svg").is_visible()
