"""How the panel looks and is used: widths, themes, paper, keyboard, the user's own colors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ui.pages import each_width, open_page
from tests.ui.panel_pages import (
    SIDEWAYS_JS,
    made_up_session,
    open_panel,
    show_tab,
    write_panel_page,
    write_session_report,
)
from tests.ui.test_axe import AUDIT, AXE
from tests.ui.watched import Watched
from workbench.viz.panel.tabs.contents import TABS

# What a press of Tab finds in the panel: which it is, whether it shows its focus, its markup.
FOCUSED_JS = """(number) => {
  const one = document.activeElement;
  if (!one.closest(".wbp")) return null;
  one.dataset.met = one.dataset.met || number;
  const shown = one.closest(".wbp-seg label") || one;
  const { outlineStyle, outlineWidth } = getComputedStyle(shown);
  const ring = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return [one.dataset.met, ring, one.outerHTML.slice(0, 120)];
}"""
FOCUSABLE_JS = """(root) => {
  const all = root.querySelectorAll("button, input, select, [tabindex='0'], summary, a[href]");
  return [...all]
    .filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)
    .filter((one) => one.type !== "radio" || one.checked).length;
}"""
SYSTEM_JS = """() => {
  const one = document.createElement("i");
  one.style.cssText = "forced-color-adjust:none;background:Highlight";
  document.body.append(one);
  return getComputedStyle(one).backgroundColor;
}"""
# What stands beyond the right edge of the page, of what is shown.
CUT_JS = """() => {
  const width = document.documentElement.clientWidth;
  const all = document.querySelectorAll("main *");
  return [...all]
    .filter((one) => one.checkVisibility() && !one.matches(".wbp-hidden, .wbp-hidden *"))
    .filter((one) => one.getBoundingClientRect().right > width + 1)
    .map((one) => one.outerHTML.slice(0, 120));
}"""
# Names that are buttons on the screen are words on paper.
CONTROLS = "main :is(button:not(.wbp-link, .wbb-pick, .wbb-link), input, select)"
A4 = 718  # px between margins of 14 mm


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The panel as a page, and the report."""
    home: Path = tmp_path_factory.mktemp("looks")
    session = made_up_session()
    return {
        "panel": write_panel_page(home / "panel.html", session),
        "report": write_session_report(home / "report.html", session),
    }


@pytest.fixture
def panel(watched: Watched, addresses: dict[str, str]) -> Any:
    yield open_panel(watched.page, addresses["panel"])
    assert watched.errors == []


@pytest.mark.parametrize("name", ["panel", "report"])
@each_width
def test_nothing_scrolls_sideways(
    shared: Watched, addresses: dict[str, str], name: str, width: int
) -> None:
    page = shared.page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        if name == "panel":
            panel = open_panel(page, addresses[name])
            assert panel.get_attribute("data-wb-theme") == scheme
        else:
            open_page(page, addresses[name])
        for key in TABS if name == "panel" else ["-"]:
            if name == "panel":
                show_tab(panel, key)
            assert page.evaluate(SIDEWAYS_JS) == 0, (key, scheme)
    assert shared.errors == []


@pytest.mark.parametrize("key", TABS)
def test_all_is_reached_by_keyboard_with_a_visible_focus(panel: Any, key: str) -> None:
    show_tab(panel, key)
    wanted = panel.evaluate(FOCUSABLE_JS)
    panel.evaluate("() => document.activeElement.blur()")
    panel.page.mouse.click(1, 1)
    seen = set()
    for number in range(wanted + 5):
        panel.page.keyboard.press("Tab")
        found = panel.page.evaluate(FOCUSED_JS, str(number))
        if found is None:
            break
        assert found[1], found[2]
        seen.add(found[0])
    assert len(seen) == wanted


def test_no_key_leaks_out_of_the_panel(panel: Any) -> None:
    page = panel.page
    page.evaluate(
        "() => { window.leaked = []; addEventListener('keydown', (e) => leaked.push(e.key)); }"
    )
    assert panel.get_attribute("data-lm-suppress-shortcuts") == "true"
    panel.locator("[data-tab=throughput]").focus()
    assert page.evaluate("document.activeElement.dataset.lmSuppressShortcuts") == "true"
    for key in ("ArrowRight", "a", "b", "d", "x", "Enter", "Escape", "ArrowLeft"):
        page.keyboard.press(key)
    panel.locator("[data-group=stage] input:checked").focus()
    page.keyboard.press("ArrowRight")
    assert panel.locator("[data-group=stage] input:checked").get_attribute("value") == "own"
    assert page.evaluate("leaked") == []


def test_the_users_own_colors_show_the_toggles_state(
    watched: Watched, addresses: dict[str, str]
) -> None:
    watched.page.emulate_media(forced_colors="active")
    panel = open_panel(watched.page, addresses["panel"])
    ground = "(one) => getComputedStyle(one).backgroundColor"
    on, off = (
        panel.locator(f"[data-group=executor] label:has(input[value={value}])").evaluate(ground)
        for value in ("normal", "inline")
    )
    system = watched.page.evaluate(SYSTEM_JS)
    assert on == system != off
    for kind in ("predicted", "measured", "none"):
        mark = panel.locator(f".wbp-mark.wbp-{kind}").first
        if mark.count():
            assert mark.bounding_box()["width"] > 5


def test_reduced_motion_moves_nothing(watched: Watched, addresses: dict[str, str]) -> None:
    watched.page.emulate_media(reduced_motion="reduce")
    panel = open_panel(watched.page, addresses["panel"])
    group = panel.locator("[data-group=stage]")
    group.evaluate("(one) => one.classList.add('wbp-flash')")
    assert group.evaluate("(one) => getComputedStyle(one).animationName") == "none"
    watched.page.emulate_media(reduced_motion="no-preference")
    assert group.evaluate("(one) => getComputedStyle(one).animationName") == "wbp-flash"


def test_targets_are_large_enough(panel: Any) -> None:
    for one in panel.locator("button:visible, select:visible, .wbp-seg label:visible").all():
        box = one.bounding_box()
        assert min(box["width"], box["height"]) >= 20, one.evaluate("(it) => it.outerHTML")


@pytest.mark.parametrize("name", ["panel", "report"])
def test_on_paper_it_is_light_whole_and_without_controls(
    watched: Watched, addresses: dict[str, str], name: str
) -> None:
    page = watched.page
    page.emulate_media(color_scheme="dark")
    if name == "panel":
        show_tab(open_panel(page, addresses[name]), "path")
    else:
        open_page(page, addresses[name])
    page.set_viewport_size({"width": A4, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(CONTROLS).locator("visible=true").count() == 0
    assert page.evaluate(CUT_JS) == []
    ink = page.locator(".wb").first.evaluate("(one) => getComputedStyle(one).color")
    assert ink == "rgb(0, 0, 0)"
    if name == "report":
        for title in ("Appendix", "Why"):
            assert page.get_by_role("heading", name=title).first.is_visible()
        for title in ("Critical path", "Memory", "What if", "Files to take away"):
            assert page.locator("summary", has_text=title).first.is_visible()
        # what is drawn for the screen is a still picture here
        assert page.locator("canvas.wb-lanes:visible").count() == 0
        assert page.locator(".wb-paper:visible :is(svg, img)").count() >= 2


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed; `make ui` gets it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_audit_finds_nothing_serious(
    watched: Watched, addresses: dict[str, str], scheme: str
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=scheme)
    found = {}
    panel = open_panel(page, addresses["panel"])
    page.evaluate(f"() => {{ {AXE.read_text('utf-8')} }}")
    for key in TABS:
        show_tab(panel, key)
        found[key] = page.evaluate(AUDIT)
    page.set_viewport_size({"width": 390, "height": 900})
    panel.get_by_role("button", name="Edit toggles").click()
    found["narrow"] = page.evaluate(AUDIT)
    page.set_viewport_size({"width": 1200, "height": 900})
    open_page(page, addresses["report"])
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.evaluate(f"() => {{ {AXE.read_text('utf-8')} }}")
    found["report"] = page.evaluate(AUDIT)
    assert found == {key: [] for key in found}
