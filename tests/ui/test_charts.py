"""A figure in a browser without a network: its marks, its words, its buttons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.comparisons import planned_comparison
from tests.ui.pages import rgb
from tests.ui.watched import Watched
from workbench.viz.charts.theme import DARK, LIGHT, Theme

# Left and right end of each bar of the plot, and where the axis has 0.
BARS = """() => [...document.querySelectorAll(".bars .point path")].map((bar) => {
  const { left, right } = bar.getBoundingClientRect();
  return [left, right];
})"""
FILL = """() => getComputedStyle(document.querySelector(".bars .point path"))
  .fill.replace(/[^0-9,]/g, "")"""
BUTTONS = "() => [...document.querySelectorAll('.modebar-btn')].map((one) => one.dataset.title)"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_comparison(watched: Watched, tmp_path: Path, theme: Theme) -> None:
    page: Any = watched.page
    planned_comparison().plot(theme=theme.name).write_html(tmp_path / "figure.html")
    page.goto((tmp_path / "figure.html").as_uri())
    page.wait_for_selector(".bars .point path")
    ends = page.evaluate(BARS)
    widths = [right - left for left, right in ends]
    assert len({round(left) for left, _ in ends}) == 1
    assert [width / widths[0] for width in widths] == pytest.approx(
        [1, 72.8 / 39.8, 80.1 / 39.8], rel=0.01
    )
    assert page.evaluate(FILL) == rgb(theme.fill)
    # A whisker on each bar, and a diamond on the last alone.
    assert page.locator(".bars .errorbar").count() == 3
    assert page.locator(".scatterlayer .point").count() == 1
    assert "1.83× (1.80–1.86) ▲ faster" in page.locator(".infolayer").text_content()
    assert not [title for title in page.evaluate(BUTTONS) if "cloud" in title.lower()]
    assert watched.outside() == [] and watched.errors == []


def test_a_hover_card_has_the_numbers(watched: Watched, tmp_path: Path) -> None:
    page: Any = watched.page
    planned_comparison().plot().write_html(tmp_path / "figure.html")
    page.goto((tmp_path / "figure.html").as_uri())
    page.wait_for_selector(".bars .point path")
    left, right = page.evaluate(BARS)[0]
    bar = page.locator(".bars .point path").first.bounding_box()
    page.mouse.move((left + right) / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_selector(".hoverlayer .hovertext")
    assert "39.8\u00a0steps/s (39.4–40.2)" in page.locator(".hoverlayer").text_content()
