"""The result of a served model in a browser: any width, both themes, keyboard, paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.builders.served_models import of_all_kinds
from tests.ui.pages import each_width
from tests.ui.watched import Watched
from workbench.viz.outlets import html_of

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MIDDLE = (
    "element => { const b = element.getBoundingClientRect(); return [b.x + b.width / 2, b.y]; }"
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: Any) -> str:
    page: Path = tmp_path_factory.mktemp("serving") / "page.html"
    content = html_of(of_all_kinds())
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{content}', "utf-8"
    )
    return page.as_uri()


@pytest.fixture(scope="module")
def report(tmp_path_factory: Any) -> str:
    folder: Path = tmp_path_factory.mktemp("serving")
    return wb.write_report(of_all_kinds(), folder / "report.html").as_uri()


@each_width
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_fit_their_page_and_words_keep_their_size(
    watched: Watched, shown: str, width: int, theme: Any
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(shown)
    assert page.evaluate(SIDEWAYS) == 0
    assert page.locator(".wbv-field").count() == 3
    size = page.locator(".wbv-field text").first.evaluate("e => getComputedStyle(e).fontSize")
    assert size == "11px"
    for field in page.locator(".wbv-field").all():
        box = field.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_more_requests_stand_to_the_right_and_a_longer_p99_higher(
    watched: Watched, shown: str
) -> None:
    watched.page.goto(shown)
    marks = watched.page.locator(".wbv-field").first.locator(".wbv-mark")
    assert marks.count() == 9

    def p99(number: int) -> list[float]:
        return marks.nth(number).locator("svg").nth(1).evaluate(MIDDLE)

    one, many = p99(0), p99(2)
    assert many[0] > one[0] and many[1] < one[1]
    fast = p99(5)
    assert fast[0] > many[0] and fast[1] > many[1]


def test_a_mark_says_its_numbers_by_keyboard_and_by_pointer(watched: Watched, shown: str) -> None:
    page = watched.page
    page.goto(shown)
    marks = page.locator(".wbv-field").first.locator(".wbv-mark")
    readout = marks.nth(1).locator(".wbv-readout")
    assert not readout.is_visible()
    marks.nth(0).focus()
    page.keyboard.press("Tab")
    assert readout.is_visible() and "8 clients" in (readout.text_content() or "")
    assert not page.locator(".wbv-hint").first.is_visible()
    box = marks.nth(4).locator(".wbv-touch").last.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert marks.nth(4).locator(".wbv-readout").is_visible()


def test_readouts_fit_a_narrow_page(watched: Watched, shown: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(shown)
    for mark in page.locator(".wbv-field").first.locator(".wbv-mark").all():
        mark.focus()
        box = mark.locator(".wbv-readout").bounding_box()
        assert box and box["x"] + box["width"] <= 390


def test_requests_of_both_settings_stand_on_one_scale(watched: Watched, shown: str) -> None:
    page = watched.page
    page.goto(shown)
    pictures = page.locator(".wbv-lanes")
    assert pictures.count() == 2
    boxes = [picture.locator(".wbv-rows > svg").last.bounding_box() for picture in pictures.all()]
    assert boxes[0] and boxes[1]
    assert boxes[0]["x"] == boxes[1]["x"] and boxes[0]["width"] == boxes[1]["width"]
    waits = [picture.locator(".wbv-wait").count() for picture in pictures.all()]
    assert waits[0] == 0 and waits[1] > 0


def test_the_report_prints_everything(watched: Watched, report: str) -> None:
    page = watched.page
    page.goto(report)
    page.emulate_media(media="print")
    folded = page.get_by_text("Every load of every setting").last
    assert folded.is_visible()
    assert page.locator(".wbv-hint").first.is_hidden()
    pdf = page.pdf(format="A4")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 6
