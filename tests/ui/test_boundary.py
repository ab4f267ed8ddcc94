"""The boundary in a browser: told at one look, opened, searched, by mouse and by keyboard alone."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.builders.plans import own_stage, predictions, stage_plan, towers, two_branches_planned
from tests.ui.pages import each_width, open_page, write_boundary_page
from tests.ui.watched import Watched
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import Edit
from workbench.viz.boundary.view import BoundaryView, boundary_view

NASTY = "<script>window.hit = 1</script></script><img src=x onerror='window.hit = 1'>"
# contrast of the words of an element against the first ground behind it
CONTRAST = """(root) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color, under = [255, 255, 255]) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = `rgb(${under.join(",")})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (parts) => {
    const [r, g, b] = parts.map((c) => {
      const share = c / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    const chain = [];
    for (let at = one; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    return chain.reduce((under, style) => rgb(style.backgroundColor, under), [255, 255, 255]);
  };
  const found = [];
  for (const one of root.querySelectorAll("*")) {
    const words = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!words || !one.getClientRects().length) continue;
    const under = ground(one);
    const both = [light(rgb(getComputedStyle(one).color, under)), light(under)];
    const [low, high] = both.sort((x, y) => x - y);
    found.push([`${one.className}: ${one.textContent.slice(0, 30)}`, (high + 0.05) / (low + 0.05)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def view() -> BoundaryView:
    made = dataclasses.replace(plan_stages(towers()), predictions=predictions(12.0, 8.0))
    return boundary_view(made)


@pytest.fixture
def boundary(watched: Watched, view: BoundaryView, tmp_path: Path) -> Any:
    found = open_page(watched.page, write_boundary_page(tmp_path / "page.html", view))
    open_folds(watched.page)
    yield found
    assert watched.errors == []
    assert watched.outside() == []


def open_folds(page: Any) -> None:
    page.evaluate(
        "() => document.querySelectorAll('.wbb-fold').forEach((one) => { one.open = true; })"
    )


def open_titles(root: Any) -> list[str]:
    return list(root.locator(".wbb-fold[open] > summary").all_inner_texts())


def box(boundary: Any, label: str) -> Any:
    return boundary.locator(".wbb-pick", has=boundary.page.get_by_text(label, exact=True))


def told(boundary: Any) -> str:
    (answer,) = boundary.locator(".wbb-why").all()
    return str(answer.inner_text())


def said(boundary: Any) -> str:
    return str(boundary.locator(".wbb-status").inner_text())


def rows(boundary: Any) -> list[str]:
    return list(boundary.locator(".wbb-refusals tbody th").all_inner_texts())


def causes(boundary: Any) -> list[str]:
    return list(boundary.locator(".wbb-causes tbody tr:visible th").all_inner_texts())


def tick(boundary: Any, title: str) -> Any:
    return boundary.get_by_role("checkbox", name=f"{title} runs ahead")


def pills(boundary: Any) -> list[str]:
    return list(boundary.locator(".wbb-pill").all_inner_texts())


def corners(boundary: Any) -> list[tuple[float, float]]:
    boxes = [each.bounding_box() for each in boundary.locator(".wbb-box").all()]
    return [(each["x"], each["y"]) for each in boxes]


def facts(boundary: Any) -> str:
    return " ".join(str(boundary.locator(".wbb-facts").inner_text()).split())


def test_one_look_shows_sides_buffers_and_reasons(boundary: Any) -> None:
    assert boundary.locator(".wbb-sides .wb-strong").all_inner_texts() == [
        "Stage “smart_stage_input”",
        "Stage “smart_stage”",
        "Compute side",
    ]
    assert "Through the buffer 4 tensors" in facts(boundary)
    assert sorted(pills(boundary)) == ["1", "1", "2"]
    near = [
        " ".join(mark.split()) for mark in boundary.locator(".wbb-box .wbb-mark").all_inner_texts()
    ]
    assert {"VA reads a variable", "ST stateful op", "CF inside control flow"} <= set(near)
    assert boundary.locator(".wbb-box").count() <= 60


def test_pills_stand_on_the_line_beside_their_readers(boundary: Any) -> None:
    line = boundary.locator(".wbb-line").bounding_box()
    reader = box(boundary, "net/lookup…lookup_1").bounding_box()
    middle = reader["y"] + reader["height"] / 2
    shown = [each.bounding_box() for each in boundary.locator(".wbb-pill").all()]
    assert all(
        each["x"] + each["width"] / 2 == pytest.approx(line["x"] + line["width"] / 2, abs=1.5)
        for each in shown
    )
    assert any(each["y"] + each["height"] / 2 == pytest.approx(middle, abs=2) for each in shown)


def test_dragging_the_line_moves_nothing_else(boundary: Any) -> None:
    before = corners(boundary)
    handle = boundary.get_by_role("slider", name="Boundary line")
    place = handle.bounding_box()
    page = boundary.page
    page.mouse.move(place["x"] + 18, place["y"] + 12)
    page.mouse.down()
    page.mouse.move(place["x"] + 18 - 180, place["y"] + 12, steps=4)
    page.mouse.up()
    assert handle.get_attribute("aria-valuetext") == "after tower_0…tower_1/split"
    assert corners(boundary) == before
    assert not tick(boundary, "tower_0…tower_1/hash").is_checked()
    assert "Through the buffer 6 tensors" in facts(boundary)
    assert boundary.locator(".wbb-said").inner_text() == "After tower_0…tower_1/split."


def test_past_the_last_place_the_line_says_why_and_goes_back(boundary: Any) -> None:
    handle = boundary.get_by_role("slider", name="Boundary line")
    place = handle.bounding_box()
    page = boundary.page
    page.mouse.move(place["x"] + 18, place["y"] + 12)
    page.mouse.down()
    page.mouse.move(place["x"] + 18 + 160, place["y"] + 12, steps=4)
    assert boundary.locator(".wbb-said").inner_text() == (
        "The line stops here. What is left depends on table_0…table_1 (2 × VariableV2): reads a "
        "variable."
    )
    assert 0 < handle.bounding_box()["x"] - place["x"] <= 26
    assert boundary.locator(".wbb-refused").count() == 1
    page.mouse.up()
    assert handle.bounding_box() == place
    assert boundary.locator(".wbb-refused").count() == 0


def test_a_tick_takes_along_what_it_needs_and_says_so(boundary: Any) -> None:
    tick(boundary, "tower_0…tower_1/split").click()
    assert boundary.locator(".wbb-said").inner_text() == (
        "Stays as well, because it depends on what stays: tower_0…tower_1/hash."
    )
    assert "Through the buffer 2 tensors" in facts(boundary)
    tick(boundary, "tower_0…tower_1/hash").click()
    assert boundary.locator(".wbb-said").inner_text() == (
        "Runs ahead as well, because what you chose depends on it: tower_0…tower_1/split."
    )
    tick(boundary, "next").click()
    assert pills(boundary) == []
    boundary.get_by_text("This cut as code").click()
    assert boundary.locator("code").inner_text() == 'plan = wb.plan(boundary, exclude=["next"])'


def test_smart_stages_edits_are_taken_and_left(boundary: Any) -> None:
    difference = boundary.locator(".wbb-diff")
    assert "This is SmartStage's cut." in difference.inner_text()
    tick(boundary, "tower_0…tower_1/split").click()
    assert difference.locator("tbody th").all_inner_texts() == [
        "tower_0…tower_1/split",
        "tower_0…tower_1/hash",
    ]
    difference.get_by_role("button", name="Reject").nth(1).click()
    difference.get_by_role("button", name="Accept", exact=True).click()
    assert "No other difference is left." in difference.inner_text()
    difference.get_by_role("button", name="Show 1 rejected").click()
    difference.get_by_role("button", name="Accept all").click()
    assert "This is SmartStage's cut." in difference.inner_text()
    assert tick(boundary, "tower_0…tower_1/hash").is_checked()


def test_without_a_kernel_a_page_predicts_the_places_of_the_line_alone(
    watched: Watched, tmp_path: Path
) -> None:
    plan = two_branches_planned()
    page = write_boundary_page(tmp_path / "page.html", boundary_view(plan))
    root = open_page(watched.page, page)
    assert "Predicted step ◇ " in facts(root)
    tick(root, "a/one").click()
    assert "Predicted step – not known here" in facts(root)
    note = root.locator(".wbb-note").inner_text()
    assert note.startswith("This page predicts the places of the line only; wb.widget(…)")


def test_the_first_refusal_is_told_without_a_click(boundary: Any) -> None:
    words = told(boundary)
    assert words.startswith("Why not staged?")
    assert "'table_0' is a variable." in words
    assert "net/lookup ← table_0" in words
    assert "Smallest change: Read a table or a constant instead of the variable" in words


def test_a_click_tells_why(boundary: Any) -> None:
    box(boundary, "noise").click()
    assert "It has state or effects of its own (RandomUniform)." in told(boundary)
    assert "SmartStageOptions(move=['noise'])" in told(boundary)
    pressed = boundary.locator(".wbb-pick[aria-pressed=true]")
    assert pressed.count() == 1
    assert "noise" in pressed.inner_text()
    assert said(boundary) == (
        "noise: It has state or effects of its own (RandomUniform). Smallest change: If 'noise' "
        "may run once for each batch, ahead of its step, name it in "
        "SmartStageOptions(move=['noise'])."
    )
    box(boundary, "tower_0…tower_1/hash").click()
    assert told(boundary).startswith("What happens to it?")
    assert "2 tensors travel: int64." in told(boundary)
    assert said(boundary).startswith("tower_0…tower_1/hash: Runs ahead of the step")
    box(boundary, "tower_0…tower_1/hash").click()
    assert boundary.locator(".wbb-why").count() == 0
    assert said(boundary) == ""


def test_the_answer_stands_at_the_click_and_in_view(
    watched: Watched, view: BoundaryView, tmp_path: Path
) -> None:
    watched.page.set_viewport_size({"width": 1200, "height": 420})
    root = open_page(watched.page, write_boundary_page(tmp_path / "page.html", view))
    open_folds(watched.page)
    row = root.get_by_role("button", name="net/dropped", exact=True)
    for pick, holder in ((box(root, "loop/Enter"), "div"), (row, "tr")):
        pick.scroll_into_view_if_needed()
        pick.click()
        (answer,) = root.locator(".wbb-why").all()
        clicked, shown = pick.bounding_box(), answer.bounding_box()
        # of a box under the picture, of a row under the row
        assert holder == "div" or 0 <= shown["y"] - (clicked["y"] + clicked["height"]) <= 12
        assert shown["y"] >= 0 and shown["y"] + shown["height"] <= 420
        assert answer.evaluate("e => e.tagName.toLowerCase()") == holder


def test_a_refusal_inside_a_box_is_told_inside_its_answer(boundary: Any) -> None:
    many = boundary_view(towers())
    several = dataclasses.replace(many.boxes[0], rows=(0, 1, 2))
    many = dataclasses.replace(many, boxes=(several, *many.boxes[1:]))
    page = boundary.page
    address = Path(page.url.removeprefix("file://")).with_name("several.html")
    root = open_page(page, write_boundary_page(address, many))
    box(root, many.boxes[0].label).click()
    assert "noise" in told(root)
    assert "RandomUniform" not in told(root)
    root.locator(".wbb-why").get_by_role("button", name="noise").click()
    assert "It has state or effects of its own (RandomUniform)." in told(root)
    assert page.evaluate("document.activeElement.textContent") == "noise"
    assert said(root).startswith("noise: It has state")


def test_tables_are_closed_until_they_are_asked_for(
    watched: Watched, view: BoundaryView, tmp_path: Path
) -> None:
    root = open_page(watched.page, write_boundary_page(tmp_path / "page.html", view))
    titles = root.locator(".wbb-fold > summary").all_inner_texts()
    causes, refused = "What holds them back", "Refused, and why"
    assert titles[-2:] == [causes, refused]
    assert open_titles(root) == []
    root.get_by_text(causes, exact=True).click()
    root.get_by_role("button", name="noise", exact=True).click()
    assert open_titles(root) == [causes, refused]
    root.get_by_text(refused, exact=True).click()
    root.page.keyboard.press("/")
    assert open_titles(root) == [causes, refused]


def test_causes_are_ranked_and_narrow_the_rows(boundary: Any) -> None:
    assert causes(boundary) == ["table_0…table_1", "noise", "loop/Enter"]
    first = boundary.locator(".wbb-causes tbody tr").first
    assert first.locator(".wb-right").all_inner_texts() == ["4", "2"]
    everything = rows(boundary)
    boundary.get_by_role("button", name="table_0…table_1", exact=True).click()
    assert rows(boundary) == ["net/lookup…lookup_1"]
    assert boundary.locator(".wb-found").inner_text() == "1 row"
    boundary.page.keyboard.press("ArrowDown")
    boundary.page.keyboard.press("Enter")
    assert rows(boundary) == ["noise", "net/dropped"]
    boundary.page.keyboard.press("Enter")
    assert rows(boundary) == everything


def test_the_input_is_drawn_before_what_reads_it(watched: Watched, tmp_path: Path) -> None:
    for width in (1280, 390):
        watched.page.set_viewport_size({"width": width, "height": 900})
        page = write_boundary_page(tmp_path / "page.html", boundary_view(towers()))
        root = open_page(watched.page, page)
        labels = ("next", "tower_0…tower_1/split", "tower_0…tower_1/hash", "net/lookup…lookup_1")
        places = [box(root, label).bounding_box() for label in labels]
        for before, after in itertools.pairwise(places):
            assert before["x"] + before["width"] < after["x"]


def test_what_is_inside_a_box_is_told_below(boundary: Any) -> None:
    box(boundary, "Does not depend on the input").click()
    inside = boundary.locator(".wbb-inside > li > .wb-mono").all_inner_texts()
    assert inside == ["it", "table_0…table_1", "keep_prob", "constant"]


def test_keyboard_alone_reaches_everything(boundary: Any) -> None:
    page = boundary.page
    # one stop for all boxes; arrows move inside it
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert "split" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Space")
    assert not tick(boundary, "tower_0…tower_1/split").is_checked()
    page.keyboard.press("Space")
    assert tick(boundary, "tower_0…tower_1/split").is_checked()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert told(boundary).startswith("What happens to it?")
    page.keyboard.press("Tab")
    handle = boundary.get_by_role("slider", name="Boundary line")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "slider"
    page.keyboard.press("Home")
    assert handle.get_attribute("aria-valuetext") == "nothing moves"
    page.keyboard.press("ArrowRight")
    assert handle.get_attribute("aria-valuetext") == "after next"
    page.keyboard.press("/")
    page.keyboard.type("joined")
    assert rows(boundary) == ["net/joined"]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "CSV"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "'loop/Enter' is v1 control flow" in told(boundary)
    assert page.evaluate("document.activeElement.dataset.row") is not None


def test_reasons_filter_and_search_narrows(boundary: Any) -> None:
    everything = rows(boundary)
    stateful = boundary.locator(".wbb-filter", has_text="stateful op")
    stateful.click()
    assert rows(boundary) == ["noise", "net/dropped"]
    assert boundary.locator(".wb-found").inner_text() == "2 rows"
    search = boundary.get_by_role("searchbox")
    search.fill("c99")
    assert boundary.locator(".wb-found").inner_text() == "No refused node has “c99” in its name"
    assert not boundary.locator(".wbb-refusals").is_visible()
    search.press("Escape")
    stateful.click()
    assert rows(boundary) == everything


def test_a_row_tells_why_and_keeps_its_focus(boundary: Any) -> None:
    boundary.get_by_role("button", name="net/joined", exact=True).click()
    assert told(boundary).startswith("Why not staged?\n")
    assert "'loop/Enter' is v1 control flow" in told(boundary)
    assert boundary.locator("tr.wbb-on").count() == 1
    boundary.page.keyboard.press("ArrowUp")
    boundary.page.keyboard.press("Enter")
    assert "'loop/Enter' is v1 control flow" not in told(boundary)


def test_predictions_are_hollow_and_the_chosen_one_is_named(boundary: Any) -> None:
    table = boundary.locator(".wbb-candidates")
    assert "predicted from a trace, not measured" in table.inner_text()
    assert "Widest, 1 thread (chosen)" in table.inner_text()
    bars = [bar.bounding_box()["width"] for bar in table.locator(".wbb-bar").all()]
    assert bars[1] / bars[0] == pytest.approx(2 / 3, abs=0.02)


@each_width
def test_it_never_scrolls_sideways(
    watched: Watched, view: BoundaryView, tmp_path: Path, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    own = boundary_view(plan_stages(own_stage(num_threads=2)))
    open_page(watched.page, write_boundary_page(tmp_path / "page.html", view, own))
    open_folds(watched.page)
    assert watched.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_both_themes(
    watched: Watched, view: BoundaryView, tmp_path: Path, scheme: str
) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    own = boundary_view(plan_stages(own_stage()))
    open_page(watched.page, write_boundary_page(tmp_path / "page.html", view, own))
    open_folds(watched.page)
    for root in watched.page.locator("[data-wb-boundary]").all():
        found = root.evaluate(CONTRAST)
        assert len(found) > 60
        assert [pair for pair in found if pair[1] < 4.5] == []


def test_targets_are_large_enough(boundary: Any) -> None:
    for button in boundary.get_by_role("button").all():
        if button.is_visible():
            size = button.bounding_box()
            assert min(size["width"], size["height"]) >= 20, button.inner_text()


def test_paper_is_light_and_has_every_row(watched: Watched, tmp_path: Path) -> None:
    many = boundary_view(towers())
    many = dataclasses.replace(many, rows=many.rows * 12)
    watched.page.emulate_media(color_scheme="dark")
    root = open_page(watched.page, write_boundary_page(tmp_path / "page.html", many))
    assert root.locator(".wbb-refusals tbody tr").count() == 20
    assert open_titles(root) == []
    watched.page.emulate_media(media="print", color_scheme="dark")
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert root.locator(".wbb-refusals tbody tr").count() == len(many.rows)
    assert root.evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)"
    assert not root.locator(".wb-search").is_visible()
    assert not root.locator(".wb-keys").is_visible()
    assert len(open_titles(root)) == root.locator(".wbb-fold").count()
    watched.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert open_titles(root) == []
    assert root.locator(".wbb-refusals tbody tr").count() == 20


def test_it_follows_a_change_of_theme(boundary: Any) -> None:
    ground = "e => getComputedStyle(e).backgroundColor"
    assert boundary.evaluate(ground) == "rgb(255, 255, 255)"
    boundary.page.emulate_media(color_scheme="dark")
    boundary.page.wait_for_function("document.querySelector('.wb').dataset.wbTheme === 'dark'")
    assert boundary.evaluate(ground) == "rgb(17, 17, 17)"


def test_nothing_that_a_user_wrote_runs(watched: Watched, tmp_path: Path) -> None:
    found = towers()
    names = tuple(NASTY if name == "noise" else name for name in found.view.names)
    view = dataclasses.replace(found.view, names=names)
    edits = (Edit(name=NASTY, reason=NASTY),)
    made = stage_plan(boundary=dataclasses.replace(found, view=view), edits=edits)
    page = write_boundary_page(tmp_path / "page.html", boundary_view(made))
    root = open_page(watched.page, page)
    assert NASTY.split("/")[0] in root.inner_text()
    assert watched.page.evaluate("window.hit") is None
    assert root.locator("img").count() == 0
    assert watched.errors == []


def test_without_scripts_the_still_picture_stands(
    browser: Any, view: BoundaryView, tmp_path: Path
) -> None:
    address = write_boundary_page(tmp_path / "page.html", view)
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(address)
    words = page.locator("body").inner_text()
    context.close()
    for part in ("4 tensors", "reads a variable", "Smallest change", "Widest, 1 thread (chosen)"):
        assert part in words
