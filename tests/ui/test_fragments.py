"""Views beside each other in one page: as wide as their frames, whatever else the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.views import FRAGMENTS, OUTLETS
from tests.ui.pages import each_width, rgb
from tests.ui.watched import Watched
from workbench.core.graph.op_families import COPY
from workbench.viz.style import assets, colors

# What notebooks say of plain elements: a reset, and text of theirs with room between its parts.
HOSTILE = """
*, ::before, ::after { border: 0 solid; }
h1, h2, h3, p, dl, dd, figure, ul, ol { margin: 0; padding: 0; }
h3 { font-size: inherit; font-weight: inherit; }
table { text-indent: 0; border-color: inherit; }
button { background: transparent; font: inherit; }
img, svg, canvas { display: block; vertical-align: middle; max-width: 100%; height: auto; }
summary { display: list-item; }
.host p { margin: 1em 0; line-height: 1.75; }
.host h3 { margin: 1em 0 .5em; font-size: 1.3em; line-height: 1.1; font-weight: 700; }
.host table { margin: 1em auto; font-size: 12px; table-layout: fixed; border: none; }
.host :is(td, th, tr) { padding: .5em; max-width: none; border: none; text-align: right; }
.host :is(td, th, tr) { line-height: normal; vertical-align: middle; white-space: normal; }
.host th { font-weight: bold; }
.host :is(ul, ol) { margin: 1em 0; padding-left: 2em; list-style: disc; }
.host li { margin: .5em 0; padding-left: .4em; }
.host dt { float: left; width: 20%; font-weight: bold; }
.host dd { margin-bottom: 1em; margin-left: 22%; }
.host code { padding: 1px 5px; background: #eee; font-size: 11px; }
.host figure { margin: 2em 0; }
.host :is(details, summary) { margin: 1em 0; padding: 4px; }
.host.shown table { margin-right: 0; margin-left: 0; }
.host.shown :is(td, th, tr) { text-align: right; }
.host.shown :is(ul, ol):not(.plain) { padding-left: 2em; }
.host.shown :is(h3, p):first-child { margin-top: 1em; }
.host.shown tbody tr:nth-child(even) { background: #eee; }
.host.shown p > code { background: #ddd; padding: 1px 5px; }
.host strong { font-weight: bold; }
.host i { font-style: normal; }
"""
OVER = """(root) => {
  const right = root.getBoundingClientRect().right + 0.5;
  const clips = (one) => getComputedStyle(one).overflowX !== "visible";
  const scrolls = (one) => one !== root && (clips(one) || scrolls(one.parentElement));
  const over = (one) => {
    const box = one.getBoundingClientRect();
    return box.width && box.right > right && !scrolls(one);
  };
  return [...root.querySelectorAll("*")].filter(over).map((one) => one.outerHTML.slice(0, 90));
}"""
PLACES = """(root) => [...root.querySelectorAll("*")].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  const { font, color, textAlign, backgroundColor } = getComputedStyle(one);
  const box = [x, y, width, height].map(Math.round);
  return [one.outerHTML.slice(0, 90), ...box, font, color, textAlign, backgroundColor];
})"""


def page_of(*names: str, width: int, hostile: bool = False) -> str:
    views = "".join(
        f'<section class="wb" style="width:{width}px">{FRAGMENTS[name]()}</section>'
        for name in names
    )
    # another view's output below, with a sheet of its own
    again = f"<style>{assets.views_style()}</style>" if hostile else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<style>{HOSTILE if hostile else 'body { margin: 8px; }'}</style>"
        '<body style="margin:8px;line-height:20px">'
        f'<div class="host shown"><style>{assets.views_style()}</style>{views}{again}</div>'
    )


@pytest.fixture
def shown(shared: Watched, tmp_path: Path) -> Any:
    def show(*names: str, **how: Any) -> Any:
        (tmp_path / "page.html").write_text(page_of(*names, **how), "utf-8")
        shared.page.set_viewport_size({"width": 1400, "height": 900})
        shared.page.goto((tmp_path / "page.html").as_uri())
        return shared.page.locator(".wb").all()

    return show


@each_width
def test_no_view_is_wider_than_its_frame_in_a_wide_window(shown: Any, width: int) -> None:
    views = shown(*FRAGMENTS, width=width)
    found = {name: view.evaluate(OVER) for name, view in zip(FRAGMENTS, views, strict=True)}
    assert found == {name: [] for name in FRAGMENTS}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_rules_of_the_page_do_not_change_a_view(shown: Any, name: str) -> None:
    (view,) = shown(name, width=800)
    plain = view.evaluate(PLACES)
    (view,) = shown(name, width=800, hostile=True)
    changed = [
        (before, after)
        for before, after in zip(plain, view.evaluate(PLACES), strict=True)
        if before != after
    ]
    assert changed == []


@pytest.mark.parametrize("page", ["data-jp-theme-light='%s'", "data-vscode-theme-kind='%s'"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_view_has_the_theme_of_its_notebook_not_of_the_system(
    shared: Watched, tmp_path: Path, page: str, theme: Any
) -> None:
    says = {"data-jp": {"light": "true", "dark": "false"}}.get(page[:7], {})
    body = page % says.get(theme, f"vscode-{theme}")
    markup = f"<!doctype html><body {body}><div>{OUTLETS['memory']()}</div>"
    (tmp_path / "page.html").write_text(markup, "utf-8")
    shared.page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    shared.page.goto((tmp_path / "page.html").as_uri())
    fill = shared.page.locator(".wbc-shares i").first.evaluate(
        "one => getComputedStyle(one).backgroundColor.replace(/[^0-9,]/g, '')"
    )
    shared.page.emulate_media(color_scheme="light")
    assert fill == rgb(getattr(colors.FAMILIES[COPY], theme))
