"""The memory of a step in a browser: its curve and shares, at any width, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.memories import staged_trace
from tests.ui.pages import each_width, rgb
from tests.ui.watched import Watched
from workbench.core.analysis.memory.memory import memory
from workbench.core.graph.op_families import COPY
from workbench.viz.outlets import html_of
from workbench.viz.style import colors

# Where the line of the peak stands, as a fraction of the plot.
PEAK = """() => {
  const plot = document.querySelector(".wbm-plot").getBoundingClientRect();
  const line = document.querySelector(".wbm-peak").getBoundingClientRect();
  return (line.left - plot.left) / plot.width;
}"""
FIRST = """() => getComputedStyle(document.querySelector(".wbc-shares i"))
  .backgroundColor.replace(/[^0-9,]/g, "")"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("memory") / "page.html"
    shown = html_of(memory(staged_trace()))
    page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{shown}', "utf-8")
    return page.as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_peak_and_what_lives_there(watched: Watched, address: str, theme: Any) -> None:
    watched.page.emulate_media(color_scheme=theme)
    watched.page.goto(address)
    # 20 ns into a step of 50.
    assert watched.page.evaluate(PEAK) == pytest.approx(0.4, abs=0.01)
    assert watched.page.evaluate(FIRST) == rgb(getattr(colors.FAMILIES[COPY], theme))
    assert watched.page.get_by_role("img").get_attribute("aria-label").startswith("Bytes that live")


@each_width
def test_the_page_never_scrolls_sideways(watched: Watched, address: str, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(address)
    assert watched.page.evaluate(SIDEWAYS) <= 0
