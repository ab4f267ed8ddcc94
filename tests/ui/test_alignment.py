"""Two aligned traces in a browser: bars on their side of zero, at any width, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.alignments import staged, unstaged
from tests.ui.pages import each_width, rgb
from tests.ui.watched import Watched
from workbench.core.analysis.alignment import align
from workbench.viz.outlets import html_of
from workbench.viz.style import colors

# Of the bar of a row: how far it reaches to either side of zero, in px, and its color.
BAR = """row => {
  const box = row.querySelector("rect").getBoundingClientRect();
  const zero = row.querySelector("line").getBoundingClientRect().left;
  const fill = getComputedStyle(row.querySelector("rect")).fill;
  return {left: zero - box.left, right: box.right - zero, fill: fill.replace(/[^0-9,]/g, "")};
}"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("alignment") / "page.html"
    shown = html_of(align(unstaged(), staged()))
    page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{shown}', "utf-8")
    return page.as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_the_stage_took_out_reaches_left_in_the_color_of_its_family(
    watched: Watched, address: str, theme: Any
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=theme)
    page.goto(address)
    bar = page.get_by_role("row", name="Input, decode").first.evaluate(BAR)
    assert bar["left"] > 100 and abs(bar["right"]) < 1
    assert bar["fill"] == rgb(getattr(colors.FAMILIES[0], theme))
    total = page.get_by_role("row", name="Step time").evaluate(BAR)
    assert total["left"] == pytest.approx(bar["left"], abs=1)


@each_width
def test_the_page_never_scrolls_sideways(watched: Watched, address: str, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(address)
    assert watched.page.evaluate(SIDEWAYS) <= 0
    differences = watched.page.locator(".wba-waterfall tbody td:nth-of-type(2)")
    for number in range(differences.count()):
        box = differences.nth(number).bounding_box()
        assert box is not None and box["x"] + box["width"] <= width
