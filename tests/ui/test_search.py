"""The result of a search in a browser: at any width, in both themes, on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.searches import search
from tests.ui.pages import each_width
from tests.ui.watched import Watched
from workbench.viz.outlets import html_of

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("search") / "page.html"
    shown = html_of(search())
    page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{shown}', "utf-8")
    return page.as_uri()


@each_width
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_setting_is_there_and_nothing_runs_over_the_edge(
    watched: Watched, searched: str, width: int, theme: Any
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(searched)
    assert page.locator(".wbs-list tbody tr:visible").count() == 5
    assert page.evaluate(SIDEWAYS) == 0
    assert page.get_by_text("Measure it again").is_visible()


def test_the_best_stands_right_of_one_and_the_slow_one_left(
    watched: Watched, searched: str
) -> None:
    watched.page.goto(searched)
    middle = "element => { const b = element.getBoundingClientRect(); return b.x + b.width / 2; }"
    rows = watched.page.locator(".wbs-list tbody tr")

    def places(number: int) -> tuple[float, float]:
        row = rows.nth(number)
        mark = row.locator(".wbq-bar circle").evaluate(middle)
        return mark, row.locator(".wbq-one").evaluate(middle)

    best, one = places(0)
    assert best > one
    slow, one = places(3)
    assert slow < one


def test_paper_has_the_code_in_whole(watched: Watched, searched: str) -> None:
    page = watched.page
    page.goto(searched)
    page.emulate_media(media="print")
    code = page.locator(".wbs-code pre").first
    assert "fused_embeddings" in code.inner_text()
    assert code.evaluate("element => element.scrollWidth <= element.clientWidth + 1")
