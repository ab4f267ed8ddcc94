"""Predictions in a browser: what opens, at any width, on paper, and the plot of a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.predictions import check, every_toggle
from tests.ui.pages import each_width
from tests.ui.watched import Watched
from workbench.core.what_if.calibration import Calibration
from workbench.viz.outlets import html_of, predictions_page

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Middle of a mark's svg, and of the line at 1×, in px.
MIDDLE = "element => { const b = element.getBoundingClientRect(); return b.x + b.width / 2; }"


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("predictions") / "page.html"
    page.write_text(predictions_page(every_toggle()), "utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("calibration") / "page.html"
    checks = [check(f"setting {n}", 0.9 + n / 30, 1.0 + n / 40) for n in range(20)]
    checks.append(check("stage", 1.4, 1.1, program="wdl"))
    shown = html_of(Calibration(checks=tuple(checks)))
    page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{shown}', "utf-8")
    return page.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_all_rows_open_in_their_order(watched: Watched, predicted: str, width: int) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(predicted)
    rows = page.locator(".wbq-list tbody tr:visible")
    assert rows.count() == 14
    page.get_by_text("Show all 27").click()
    assert rows.count() == 27
    names = [row.locator("th").inner_text() for row in rows.all()]
    assert names[1] == "Smart stage + fused V2" and names[-1] == "Inline executor"


def test_paper_has_every_row(watched: Watched, predicted: str) -> None:
    watched.page.goto(predicted)
    watched.page.emulate_media(media="print")
    assert watched.page.locator(".wbq-list tbody tr:visible").count() == 27
    assert not watched.page.get_by_text("Show all 27").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_faster_setting_stands_right_of_what_was_measured(
    watched: Watched, predicted: str, theme: Any
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=theme)
    page.goto(predicted)
    one = page.get_by_role("row", name="All off").locator(".wbr-shown").evaluate(MIDDLE)
    faster = page.get_by_role("row", name="Smart stage").first.locator(".wbr-predicted")
    slower = page.get_by_role("row", name="Inline executor").locator(".wbr-predicted")
    assert slower.evaluate(MIDDLE) < one < faster.evaluate(MIDDLE)
    line = page.get_by_role("row", name="Inline executor").locator(".wbq-one").evaluate(MIDDLE)
    assert line == pytest.approx(one, abs=1)


@each_width
@pytest.mark.parametrize("which", ["predicted", "calibrated"])
def test_the_page_never_scrolls_sideways(
    watched: Watched, request: Any, which: str, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(request.getfixturevalue(which))
    assert watched.page.evaluate(SIDEWAYS) <= 0


def test_words_of_the_plot_stay_in_it(watched: Watched, calibrated: str) -> None:
    page = watched.page
    page.goto(calibrated)
    plot = page.locator(".wbq-scatter").bounding_box()
    assert plot is not None
    for words in page.locator(".wbq-scatter text").all():
        box = words.bounding_box()
        assert box is not None and box["x"] >= plot["x"] - 1
        assert box["x"] + box["width"] <= plot["x"] + plot["width"] + 1
    assert page.locator(".wbq-name").all_text_contents() == ["wdl: stage"]
