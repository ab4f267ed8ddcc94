"""The panel in a browser without a kernel: tabs, toggles, runs, one selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.sessions import measured
from tests.ui.pages import range_in_view
from tests.ui.panel_pages import (
    made_up_session,
    open_panel,
    show_tab,
    write_panel_page,
)
from tests.ui.watched import Watched
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.experiments.program.function_program import FunctionProgram
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.tabs.contents import TABS

FUNCTION = FunctionProgram(name="step", make=lambda: (None, None))
# What each tab shows of the first run of the session, by a part of it.
SHOWN = {
    "two_runs": ".wb-sentence",
    "throughput": "table.wbp-runs",
    "timeline": "canvas.wb-lanes",
    "boundary": "[data-box]",
    "path": ".wbc-fall",
    "findings": ".wb-view",
    "lens": ".wb-sentence",
    "memory": ".wb-sentence",
    "limit": ".wb-sentence",
    "what_if": "table",
}


@pytest.fixture(scope="module")
def session() -> Any:
    return made_up_session()


@pytest.fixture(scope="module")
def addresses(session: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The panel of a session, and that of a function."""
    home: Path = tmp_path_factory.mktemp("panel")
    return {
        "first": write_panel_page(home / "first.html", session),
        "function": write_panel_page(home / "function.html", session, program=FUNCTION),
    }


@pytest.fixture
def panel(watched: Watched, addresses: dict[str, str]) -> Any:
    yield open_panel(watched.page, addresses["first"])
    assert watched.errors == []
    assert watched.outside() == []


def choose(panel: Any, group: str, label: str) -> None:
    """Clicks one option of a toggle."""
    panel.locator(f"[data-group={group}] label", has_text=label).click()


def open_fold(panel: Any, section: str = "workbench") -> None:
    panel.locator(f"[data-section={section}] .wbp-more > summary").click()


def summary(panel: Any) -> str:
    return str(panel.locator(".wbp-strip").inner_text()).replace("\u00a0", " ")


def test_every_tab_opens_by_a_click(panel: Any) -> None:
    assert list(SHOWN) == list(TABS)
    for key, part in SHOWN.items():
        pane = show_tab(panel, key)
        pane.locator(part).first.wait_for()
        assert panel.locator("[role=tabpanel]:visible").count() == 1
        assert panel.locator("[aria-selected=true]").inner_text() == TABS[key]


def test_arrow_keys_go_from_tab_to_tab(panel: Any) -> None:
    keys = panel.page.keyboard
    panel.locator("[data-tab=two_runs]").focus()
    for key in [*list(TABS)[1:], "two_runs"]:
        keys.press("ArrowRight")
        assert panel.locator(":focus").get_attribute("data-tab") == key
        panel.locator(f"[data-pane={key}]").locator(SHOWN[key]).first.wait_for()
    keys.press("ArrowLeft")
    assert panel.locator(":focus").get_attribute("data-tab") == "what_if"
    keys.press("Home")
    assert panel.locator(":focus").get_attribute("data-tab") == "two_runs"
    keys.press("End")
    assert panel.locator(":focus").get_attribute("data-tab") == "what_if"


def test_a_toggle_changes_prediction_and_code_at_once(panel: Any) -> None:
    assert "steps/s, measured, the baseline" in summary(panel) and "40.0" in summary(panel)
    choose(panel, "stage", "SmartStage")
    said = summary(panel)
    assert "steps/s, predicted" in said and "all off" in said
    chips = panel.locator("[data-group=stage] .wbp-chips").inner_text()
    assert "predicted +" in chips and "not run" in chips
    panel.get_by_role("button", name="Copy as Python").click()
    code = panel.get_by_label("Text to copy")
    assert "wb.SmartStageOptions()" in code.inner_text()
    # another setting has another code, and what is known of it
    choose(panel, "stage", "Mine")
    assert code.is_hidden()
    open_fold(panel)
    panel.get_by_role("button", name="Threads: more", exact=True).click()
    panel.get_by_role("button", name="Capacity: more").click()
    assert "60.0" in summary(panel) and "1.50× all off" in summary(panel)
    assert "measured +50" in panel.locator("[data-group=stage] .wbp-chips").inner_text()


def test_a_setting_that_is_not_stored_says_so(panel: Any) -> None:
    open_fold(panel)
    panel.get_by_role("button", name="Intra-op threads: more").click()
    assert "This setting is not stored in the page." in summary(panel)
    assert panel.get_by_role("button", name="Copy as Python").is_disabled()
    panel.get_by_role("button", name="Intra-op threads: less").click()
    assert "40.0" in summary(panel)


def test_only_a_stage_that_is_found_can_have_stale_lookups(panel: Any) -> None:
    open_fold(panel)
    more = panel.get_by_role("button", name="Steps stale: more")
    box = panel.locator(".wbp-step", has_text="Steps stale")
    for stage, can in (("Off", False), ("Mine", False), ("SmartStage", True)):
        choose(panel, "stage", stage)
        assert more.is_enabled() == can
        assert "exact" in box.inner_text()
        assert ("wbp-no-use" in box.get_attribute("class")) != can
    words = panel.locator("[data-group=stage-folded]").get_by_text("this is another training")
    assert words.is_hidden()
    more.click()
    assert "exact" not in box.inner_text()
    assert words.is_visible()
    # What it gives is not known from the exact stage.
    assert "This setting is not stored in the page." in summary(panel)


def test_numbers_of_a_stage_stand_below_each_other(panel: Any) -> None:
    choose(panel, "stage", "SmartStage")
    open_fold(panel)
    boxes = panel.locator("[data-group=stage-folded] .wbp-step .wbp-box")
    ends = [(box["x"] + box["width"], box["y"]) for box in map(_box, boxes.all())]
    assert len({round(right) for right, _ in ends}) == 1
    assert len({round(top) for _, top in ends}) == 3


def _box(one: Any) -> dict[str, float]:
    return dict(one.bounding_box())


def test_what_a_program_refuses_is_disabled_and_says_why(
    watched: Watched, addresses: dict[str, str]
) -> None:
    panel = open_panel(watched.page, addresses["function"])
    own = panel.locator("[data-group=stage] input[value=own]")
    assert own.is_disabled()
    open_fold(panel)
    by_key = {group.key: group for group in groups_of(FUNCTION)}
    stage, batch = by_key["stage"], by_key["batch_size"]
    reasons = [option.refused for option in stage.options if option.refused]
    assert [reason.split(":")[0] for reason in reasons] == ["Mine"]
    # The news is that it is greyed; why stands in a fold.
    told_why = panel.locator("[data-group=stage]").get_by_text(reasons[0])
    assert told_why.is_hidden()
    panel.locator("[data-group=stage] summary").click()
    assert told_why.is_visible()
    for button in panel.locator("[data-group=batch_size] button").all():
        assert button.is_disabled()
    assert batch.refused in panel.locator("[data-group=batch_size]").inner_text()
    # a reason is tied to what it is the reason of
    told = own.evaluate(
        "(one) => document.getElementById(one.getAttribute('aria-describedby')).textContent"
    )
    assert told == reasons[0]
    # nor has it thread pools, whether its stage is on or off
    for choice in ("Off", "SmartStage"):
        choose(panel, "stage", choice)
        assert panel.get_by_label("Thread pool of its own").is_disabled()
    assert stage.flag.refused in panel.locator("[data-group=stage-folded]").inner_text()


def test_a_moved_boundary_that_ran_can_be_chosen(watched: Watched, tmp_path: Path) -> None:
    session = made_up_session()
    moved = Optimizations(smart_stage=SmartStageOptions(exclude=("hash",)))
    session.add(measured([Optimizations(), moved]), [Optimizations(), moved])
    panel = open_panel(watched.page, write_panel_page(tmp_path / "page.html", session, cut="-hash"))
    choose(panel, "stage", "Moved")
    said = summary(panel)
    assert "steps/s, measured" in said and "50.0" in said
    panel.get_by_role("button", name="Copy as Python").click()
    code = panel.get_by_label("Text to copy").inner_text()
    assert 'wb.SmartStageOptions(exclude=("hash",))' in code
    choose(panel, "stage", "SmartStage")
    assert "50.0" not in summary(panel)
    assert watched.errors == []


def test_before_and_after_draws_both_runs_and_links_what_is_picked(panel: Any) -> None:
    panel.locator("table.wbp-runs").get_by_role("button", name="My stage").click()
    pane = show_tab(panel, "two_runs")
    pane.locator("[data-wb-pair] .wb-timeline[data-wb-ready]").nth(1).wait_for()
    assert pane.locator(".wb-side h3").all_inner_texts() == [
        "Before All off",
        "After My stage, 1 thread",
    ]
    field = pane.get_by_role("searchbox")
    field.fill("dense")
    field.press("Enter")
    abouts = pane.locator(".wb-about").all_inner_texts()
    assert all(words.startswith("dense") for words in abouts)
    marked = show_tab(panel, "path").locator(".wb-linked").first
    marked.wait_for()
    assert marked.inner_text() == "dense"


def test_options_of_a_stage_wait_for_one(panel: Any) -> None:
    open_fold(panel)
    more = panel.get_by_role("button", name="Capacity: more")
    assert more.is_disabled()
    choose(panel, "stage", "Mine")
    assert more.is_enabled()


def test_a_run_and_a_baseline_are_chosen_in_the_table(panel: Any) -> None:
    table = panel.locator("table.wbp-runs")
    sentence = panel.locator("[data-pane=throughput] .wb-sentence")
    assert "All off is the baseline" in sentence.inner_text()
    table.get_by_role("button", name="My stage").click()
    panel.locator("[data-run='2'].wbp-on").wait_for()
    assert "1.50× as fast" in sentence.inner_text()
    assert panel.get_by_label("Run shown").input_value() == "2"
    table.get_by_role("radio", name="Compare with run 3").check()
    panel.get_by_text("2.00× as fast").wait_for()
    assert "as inline executor" in sentence.inner_text()
    panel.get_by_label("Run shown").select_option("1")
    panel.locator("[data-run='1'].wbp-on").wait_for()
    assert table.get_by_role("radio", name="Compare with run 3").is_checked()
    assert "1.33×" in table.inner_text()


def test_what_is_not_in_the_page_is_said(panel: Any) -> None:
    panel.get_by_label("Run shown").select_option("3")
    assert "is not stored in the page" in show_tab(panel, "memory").inner_text()


def test_an_op_is_marked_in_every_view(panel: Any) -> None:
    path = show_tab(panel, "path")
    path.locator("[data-node=dense]:not([aria-hidden] *)").first.click()
    assert path.locator(".wb-linked[data-node=dense]").count() >= 1
    timeline = show_tab(panel, "timeline")
    assert "dense" in timeline.locator(".wb-about").inner_text()
    boundary = show_tab(panel, "boundary")
    assert "dense" in boundary.locator(".wbb-why").inner_text()
    boundary.locator("[data-box]", has_text="hash").first.click()
    assert "hash" in boundary.locator(".wbb-why").inner_text()
    assert "hash" in show_tab(panel, "timeline").locator(".wb-about").inner_text()
    assert show_tab(panel, "path").locator(".wb-linked[data-node=hash]").count() >= 1


def test_what_is_picked_in_the_timeline_stays_where_it_is(panel: Any) -> None:
    timeline = show_tab(panel, "timeline")
    canvas = timeline.locator("canvas.wb-lanes")
    canvas.focus()
    for _ in range(6):
        panel.page.keyboard.press("w")
    before = range_in_view(timeline)
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.6, "y": box["height"] - 20})
    name = timeline.locator(".wb-about").inner_text()
    assert "Duration" in name
    # marked there, at most: nothing moved
    assert range_in_view(timeline) == before
    panel.page.keyboard.press("Escape")
    assert show_tab(panel, "path").locator(".wb-linked").count() == 0


def test_toggles_fold_into_a_line_where_the_panel_is_narrow(
    watched: Watched, addresses: dict[str, str]
) -> None:
    watched.page.set_viewport_size({"width": 800, "height": 900})
    panel = open_panel(watched.page, addresses["first"])
    column, height = panel.locator(".wbp-left"), panel.bounding_box()["height"]
    assert column.is_hidden()
    edit = panel.get_by_role("button", name="Edit toggles")
    edit.click()
    assert column.is_visible()
    tops = {one.bounding_box()["x"] for one in column.locator(".wbp-group:visible").all()}
    assert len(tops) == 3
    # The panel is as high as before: the column has a part of it.
    assert panel.bounding_box()["height"] == height
    choose(panel, "executor", "Inline")
    assert "Inline executor" in summary(panel)
    panel.get_by_role("button", name="Hide toggles").click()
    assert column.is_hidden()


def test_controls_without_a_kernel_say_so(panel: Any) -> None:
    for name in ("Run again", "Find the best"):
        assert panel.get_by_role("button", name=name).is_disabled()
    assert panel.get_by_role("button", name="Report").count() == 0
    assert "The kernel is not connected. Views still work." in panel.inner_text()
