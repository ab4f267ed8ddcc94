"""Two linked timelines: one scale, one cursor, one selection, and sums of a stretch of both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.pages import drag_in, each_width, open_page, write_pair_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.viz.style import colors, format
from workbench.viz.timeline.scale import on_one_scale
from workbench.viz.timeline.view import TimelineView, timeline_view

LANES_Y = 200  # px from the top of a canvas: inside of its lanes
WINDOWS = "views.map(({ state }) => [...state.window])"
# Of each timeline: the start of the step whose start stands above that of the other.
ORIGINS = "views.map(({ state: s }) => s.model.stepStart[s.step])"
# Pixels of the overlay in a column of the canvas that are not clear.
DRAWN_AT = """([side, x]) => {
  const { over } = views[side].parts;
  const { data } = over.getContext("2d").getImageData(Math.round(x), 60, 1, over.height - 60);
  let drawn = 0;
  for (let k = 3; k < data.length; k += 4) if (data[k]) drawn++;
  return drawn;
}"""


@pytest.fixture(scope="module")
def pair() -> tuple[TimelineView, ...]:
    return on_one_scale([timeline_view(dlrm_trace(16, producers=0)), timeline_view(dlrm_trace(16))])


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any, pair: tuple[TimelineView, ...]) -> str:
    return write_pair_page(tmp_path_factory.mktemp("pair") / "page.html", *pair)


@pytest.fixture
def page(watched: Watched, address: str) -> Any:
    open_page(watched.page, address)
    watched.page.wait_for_function("() => document.querySelector('[data-wb-linked]')")
    yield watched.page
    assert watched.errors == []
    assert watched.outside() == []


def canvas(page: Any, side: int) -> Any:
    return page.locator("canvas.wb-lanes").nth(side)


def drag(page: Any, side: int, start: float, end: float, y: float = LANES_Y, key: str = "") -> None:
    """Drags in a canvas from one x to another, in px from its left edge."""
    drag_in(canvas(page, side), start, end, y, key)


def test_both_have_one_scale_and_their_steps_begin_above_each_other(page: Any) -> None:
    (a, b), (origin_a, origin_b) = page.evaluate(WINDOWS), page.evaluate(ORIGINS)
    assert a[1] - a[0] == pytest.approx(b[1] - b[0])
    assert a[0] - origin_a == pytest.approx(b[0] - origin_b)


@pytest.mark.parametrize("side", [0, 1])
def test_what_moves_one_moves_the_other(page: Any, side: int) -> None:
    before = page.evaluate(WINDOWS)
    canvas(page, side).focus()
    for key in "wwd]":
        page.keyboard.press(key)
        (a, b), (origin_a, origin_b) = page.evaluate(WINDOWS), page.evaluate(ORIGINS)
        assert a[1] - a[0] == pytest.approx(b[1] - b[0])
        assert a[0] - origin_a == pytest.approx(b[0] - origin_b)
    assert page.evaluate(WINDOWS) != before


def test_the_cursor_stands_in_both_at_the_same_time_of_the_step(page: Any) -> None:
    canvas(page, 0).scroll_into_view_if_needed()
    box = canvas(page, 0).bounding_box()
    page.mouse.move(box["x"] + 431, box["y"] + LANES_Y)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    at = page.evaluate("views.map(({ state }) => state.cursor)")
    origins = page.evaluate(ORIGINS)
    assert at[0] - origins[0] == pytest.approx(at[1] - origins[1])
    lanes = page.evaluate("views.map(({ state }) => state.layout.height - 60)")
    for side in (0, 1):
        assert page.evaluate(DRAWN_AT, [side, 431]) > 0.9 * lanes[side]
    page.mouse.move(box["x"] + 431, box["y"] - 40)
    assert page.evaluate("views.map(({ state }) => state.cursor)") == [None, None]


@pytest.mark.parametrize("side", [0, 1])
def test_a_drag_sums_both_sides_as_python_does(
    page: Any, pair: tuple[TimelineView, ...], side: int
) -> None:
    canvas(page, 0).focus()
    page.keyboard.press("s")
    drag(page, side, 200, 1000)
    page.locator(".wb-pair > .wb-marked .wb-table").wait_for()
    ranges = page.evaluate("views.map(({ state }) => [...state.range])")
    origins = page.evaluate(ORIGINS)
    assert ranges[0][0] - origins[0] == pytest.approx(ranges[1][0] - origins[1])
    assert ranges[0][1] - origins[0] == pytest.approx(ranges[1][1] - origins[1])
    steps = [view.steps_in(*map(round, part)) for view, part in zip(pair, ranges, strict=True)]
    assert min(steps) > 1
    sums = [view.in_view(*map(round, part)) for view, part in zip(pair, ranges, strict=True)]
    by_family = [table.groupby("family")["total_ns"].sum() for table in sums]
    rows = page.locator(".wb-pair > .wb-marked tbody tr.wb-strong")
    shown = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()
    }
    assert len(shown) > 4
    for name, (before, after, _) in shown.items():
        number = colors.WAIT if name == "wait" else [f.name for f in colors.FAMILIES].index(name)
        wanted = [of.get(number, 0) / count for of, count in zip(by_family, steps, strict=True)]
        assert [before, after] == [format.duration(each) for each in wanted]
    caption = page.locator(".wb-pair > .wb-marked caption").inner_text()
    assert caption.startswith("Marked in both, ") and "Times are those of a step." in caption


def test_less_than_a_step_is_summed_as_it_is_and_says_so(page: Any) -> None:
    drag(page, 0, 400, 440)
    caption = page.locator(".wb-pair > .wb-marked caption")
    caption.wait_for()
    assert "Times are those of the stretch, which is less than a step." in caption.inner_text()
    canvas(page, 0).focus()
    page.keyboard.press("Escape")
    page.locator(".wb-pair > .wb-marked").wait_for(state="hidden")
    assert page.evaluate("views.map(({ state }) => state.range)") == [None, None]


def test_a_picked_op_is_selected_in_both(page: Any) -> None:
    field = page.get_by_role("searchbox").first
    field.fill("interact/concat")
    words = page.locator(".wb-found").first.inner_text()
    assert words.startswith("Plain: 32 spans") and "Staged: 32 spans" in words
    field.press("Enter")
    abouts = page.locator(".wb-about").all_inner_texts()
    assert all(words.startswith("interact/concat") for words in abouts)


def test_an_op_of_one_side_alone_says_so_on_the_other(page: Any) -> None:
    field = page.get_by_role("searchbox").first
    field.fill("ReadLines")
    field.press("Enter")
    canvas(page, 1).focus()
    page.keyboard.press("Enter")
    assert page.locator(".wb-about").nth(1).inner_text().startswith("ReadLines")
    assert page.locator(".wb-about").nth(0).inner_text().startswith("Plain has no op of this name.")


def test_one_legend_keeps_a_family_in_both(page: Any) -> None:
    legends = page.locator(".wb-legend")
    assert [legend.is_visible() for legend in legends.all()] == [True, False]
    legends.first.get_by_role("button", name="Lookup").click()
    kept = page.evaluate("views.map(({ state }) => state.kept && [...state.kept])")
    assert kept[0] == kept[1] and sum(kept[0]) == 1


@each_width
def test_the_page_never_scrolls_sideways(watched: Watched, address: str, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    open_page(watched.page, address)
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_mark_is_seen_in_either_theme(watched: Watched, address: str, scheme: Any) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    open_page(watched.page, address)
    watched.page.wait_for_function("() => document.querySelector('[data-wb-linked]')")
    drag(watched.page, 0, 300, 700)
    watched.page.locator(".wb-pair > .wb-marked").wait_for()
    watched.page.evaluate("() => new Promise(requestAnimationFrame)")
    tops = watched.page.evaluate("views.map(({ state }) => state.layout.height - 60)")
    for side in (0, 1):
        assert watched.page.evaluate(DRAWN_AT, [side, 500]) > 0.7 * tops[side]
        assert watched.page.evaluate(DRAWN_AT, [side, 900]) < 0.5 * tops[side]
