"""Views without style, and the one style sheet that holds the rules of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.builders.views import FRAGMENTS, OUTLETS
from workbench.viz.style import assets

# A view's own element, or anything in an element of the class "wb".
_SCOPED = re.compile(r"\.wb(-boundary|-timeline|-paper|-static)?(?![\w-])")
_BRACKETS = re.compile(r":[\w-]+\([^()]*\)")


def plain(sheet: str) -> str:
    """Without what lifts each rule above those of a page."""
    return re.sub(r":is\(\.wb,(#wb)+\)", ".wb", sheet)


def selectors(sheet: str) -> Iterator[str]:
    """What stands before the braces of the rules, media and container queries left out."""
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    for head in re.findall(r"([^{}]+)\{", sheet):
        if not head.strip().startswith("@"):
            while _BRACKETS.search(head):
                # a comma inside of brackets parts no selectors
                head = _BRACKETS.sub("", head)
            yield from (each.strip() for each in head.split(","))


def test_every_rule_is_about_what_stands_in_a_view() -> None:
    sheet = plain(assets.views_style())
    assert [each for each in selectors(sheet) if not _SCOPED.match(each)] == [
        # the canvas that a printed still picture stands in for
        "[data-wb-ready]"
    ]
    assert "@page" not in sheet and "max-width: 1200px" not in sheet


def test_no_width_is_that_of_the_window() -> None:
    queries = re.findall(r"@media[^{]*", assets.page_style() + assets.views_style())
    assert [query for query in queries if "width" in query] == []
    assert set(re.findall(r"@container (\w*)", assets.views_style())) == {"wb"}


def test_the_sheet_of_all_views_holds_each_once() -> None:
    sheet = plain(assets.views_style())
    for path in assets.STATIC.rglob("*.css"):
        text = path.read_text("utf-8")
        if path.parent.name not in ("report", "timeline", "panel"):
            assert sheet.count(text) == 1, path
    assert sheet.startswith(plain(assets.style()))


@pytest.mark.parametrize("name", FRAGMENTS)
def test_an_outlet_is_its_fragment_with_style(name: str) -> None:
    fragment, outlet = FRAGMENTS[name](), OUTLETS[name]()
    assert not re.search(r"<(style|script|link|html|body)\b", fragment)
    assert fragment.startswith('<div class="wb-view')
    assert outlet.startswith("<style>")
    assert outlet.endswith(f'</style><div class="wb">{fragment}</div>')


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_page_may_hold_it_twice(name: str) -> None:
    ids = re.findall(r' id="([^"]+)"', FRAGMENTS[name]())
    assert len(ids) == len(set(ids))
