"""An embedding lens in a browser: bars of one scale, at any width, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.embedding_lenses import fused_trace, stock_trace
from tests.ui.pages import each_width, rgb
from tests.ui.watched import Watched
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.graph.op_families import GRADIENT, LOOKUP, UPDATE
from workbench.viz.outlets import html_of
from workbench.viz.style import colors

# Of each bar of the table: the pieces' widths in px, and their colors.
BARS = """() => {
  const piece = part => [
    part.getBoundingClientRect().width,
    getComputedStyle(part).backgroundColor.replace(/[^0-9,]/g, ""),
  ];
  return [...document.querySelectorAll(".wbl-plot")].map(plot => [...plot.children].map(piece));
}"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("lens") / "page.html"
    shown = html_of(make_lens(stock_trace(), fused_trace()))
    page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{shown}', "utf-8")
    return page.as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_have_the_colors_of_their_parts_and_one_scale(
    watched: Watched, address: str, theme: Any
) -> None:
    watched.page.emulate_media(color_scheme=theme)
    watched.page.goto(address)
    now, fused = watched.page.evaluate(BARS)
    fills = [rgb(getattr(colors.FAMILIES[i], theme)) for i in (LOOKUP, GRADIENT, UPDATE)]
    assert [fill for _, fill in now] == [fill for _, fill in fused] == fills
    # 50, 10 and 20 µs beside 25, 5 and 10.
    assert now[0][0] / fused[0][0] == pytest.approx(2, abs=0.1)
    assert now[0][0] / now[2][0] == pytest.approx(2.5, abs=0.1)


@each_width
def test_the_page_never_scrolls_sideways(watched: Watched, address: str, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(address)
    assert watched.page.evaluate(SIDEWAYS) <= 0
