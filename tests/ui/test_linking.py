"""Views that show one selection: picked in one, by mouse or by keyboard, marked in the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.views import FRAGMENTS
from tests.ui.watched import Watched
from workbench.viz.style import assets, bundle

LINKED = ("critical path", "findings", "alignment", "embedding lens", "memory")
# What a panel does with it: one selection for all panes; the one it came from stays where it is.
LINK = """
const told = (window.told = []);
const panes = [...document.querySelectorAll(".pane")];
const life = (window.life = new AbortController());
const all = (mark, from) => (name) => {
  told.push(name);
  window.marked = panes.map((pane) => mark(pane, name, { reveal: pane !== from }));
};
for (const pane of panes) {
  const { signal } = life;
  linkPane(pane, { onNode: all(markNode, pane), onTable: all(markTable, pane), signal });
}
"""
TINTED = """(one) => {
  const row = one.closest("tr, li, code");
  const ground = (at) => getComputedStyle(at).backgroundColor;
  return ground(row) !== "rgba(0, 0, 0, 0)" || ground(one) !== "rgba(0, 0, 0, 0)";
}"""


@pytest.fixture
def page(watched: Watched, tmp_path: Path) -> Any:
    views = "".join(
        f'<section class="pane" aria-label="{name}">{FRAGMENTS[name]()}</section>'
        for name in LINKED
    )
    script = bundle.joined(["shared/linking.js"], LINK)
    (tmp_path / "page.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<style>{assets.views_style()}</style>"
        f'<body><div class="wb" style="width:800px">{views}</div><script>{script}</script>',
        "utf-8",
    )
    watched.page.goto((tmp_path / "page.html").as_uri())
    yield watched.page
    assert watched.errors == []


def told(page: Any) -> list[str]:
    return list(page.evaluate("told"))


def marked(page: Any) -> list[str]:
    return list(page.locator(".wb-linked:not([aria-hidden] *)").all_inner_texts())


def test_a_click_is_told_with_the_full_name_and_marks_it_everywhere(page: Any) -> None:
    bar = page.locator(".wbc-fall [data-node]").first
    name = bar.get_attribute("data-node")
    bar.click()
    assert told(page) == [name]
    assert len(marked(page)) >= 2
    assert page.evaluate("marked[0]") is True and page.evaluate("marked[3]") is False
    for one in page.locator(".wb-linked").all():
        assert one.get_attribute("data-node") == name
        assert one.evaluate(TINTED)
    pressed = page.locator("[aria-pressed=true]")
    assert pressed.count() == len(marked(page))
    # once more: it goes
    bar.click()
    assert told(page) == [name, ""]
    assert marked(page) == [] and pressed.count() == 0


def test_the_bar_itself_may_be_clicked(page: Any) -> None:
    bar = page.locator(".wbc-fall").first.locator(".wbc-plot [data-node]").last
    bar.click()
    assert told(page) == [bar.get_attribute("data-node")]
    assert bar.get_attribute("role") is None


def test_every_list_is_one_tab_stop_with_arrows_inside(page: Any) -> None:
    names = page.locator(".wbm-nodes [data-node]")
    focusable = ".wbm-nodes [tabindex='0']"
    assert names.count() > 1 and page.locator(focusable).count() == 1
    page.locator(focusable).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = names.nth(1)
    assert told(page) == [second.get_attribute("data-node")]
    assert page.evaluate("document.activeElement.dataset.node") == told(page)[0]
    assert page.locator(focusable).count() == 1
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert told(page)[1:] == [names.first.get_attribute("data-node")]
    assert names.first.get_attribute("role") == "button"


def test_tables_are_told_apart_from_nodes(page: Any) -> None:
    table = page.locator("[data-table][role=button]").first
    table.click()
    assert told(page) == [table.get_attribute("data-table")]
    assert page.locator("[data-node].wb-linked").count() == 0
    assert page.locator("[data-table].wb-linked").count() >= 1


def test_only_a_shown_pane_is_scrolled_and_only_where_that_is_asked(page: Any) -> None:
    page.set_viewport_size({"width": 900, "height": 300})
    name = page.locator(".wbm-nodes [data-node]").last.get_attribute("data-node")
    mark = "([name, reveal]) => markNode(panes[4], name, { reveal })"
    page.evaluate("scrollTo(0, 0)")
    assert page.evaluate(mark, [name, False]) is True
    assert page.evaluate("scrollY") == 0
    page.evaluate("panes[4].hidden = true")
    assert page.evaluate(mark, [name, True]) is True
    assert page.evaluate("scrollY") == 0
    page.evaluate("panes[4].hidden = false")
    page.evaluate(mark, [name, True])
    assert page.evaluate("scrollY") > 0
    assert page.evaluate(mark, ["nowhere", True]) is False


def test_the_end_of_its_signal_is_the_end_of_linking(page: Any) -> None:
    page.evaluate("life.abort()")
    page.locator(".wbc-fall [data-node]").first.click()
    assert told(page) == []


def test_without_the_script_nothing_claims_to_be_a_button(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(FRAGMENTS["critical path"](), "utf-8")
    watched.page.goto((tmp_path / "page.html").as_uri())
    assert watched.page.locator("[data-node]").count() > 0
    assert watched.page.locator("[data-node][role], [data-node][tabindex]").count() == 0
