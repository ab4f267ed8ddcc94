"""Tables of a report of many variants: whole words, every column, the verdict on any screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.comparisons import every_toggle_comparison, planned_comparison
from tests.ui.pages import each_width, open_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.viz.report import write_report

# Words outside of drawings that stand on two lines. A name may break where its parts end, after a
# hyphen or a scope.
BROKEN_WORDS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest(".wbb-sides")) continue;
    for (const word of node.data.matchAll(/[^\\s\\-–\\/_…().,]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
CUT_TABLES = """() => [...document.querySelectorAll("table")]
  .filter((table) => table.checkVisibility() && table.parentElement.scrollWidth
      > table.parentElement.clientWidth)
  .map((table) => table.caption.innerText)"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any) -> str:
    """A report of every toggle, and one with a plan."""
    path = tmp_path_factory.mktemp("tables") / "report.html"
    every = every_toggle_comparison(dlrm_trace(4, producers=0), dlrm_trace(4))
    return write_report([every, planned_comparison()], path).as_uri()


def opened(watched: Watched, address: str, width: int) -> Any:
    """The page at a width, with every fold open; read anew only where it is another page."""
    watched.page.set_viewport_size({"width": width, "height": 900})
    if watched.page.url != address:
        open_page(watched.page, address)
    watched.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    return watched.page


@each_width
def test_no_word_is_broken(shared: Watched, address: str, width: int) -> None:
    assert opened(shared, address, width).evaluate(BROKEN_WORDS) == []


def test_every_column_is_in_sight_on_a_laptop(shared: Watched, address: str) -> None:
    assert opened(shared, address, 1280).evaluate(CUT_TABLES) == []


@each_width
def test_every_ratio_and_verdict_is_on_the_screen(
    shared: Watched, address: str, width: int
) -> None:
    table = opened(shared, address, width).locator(".wbr-throughput").first
    cells = table.locator("tbody :is(th, .wbr-ratio, .wbr-says)").all()
    assert len(cells) == 24
    for cell in cells:
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_rows_of_a_narrow_page_are_cards_and_still_a_table(shared: Watched, address: str) -> None:
    page = opened(shared, address, 390)
    row = page.get_by_role("row", name="Fused V1").first
    name, verdict = row.get_by_role("rowheader"), row.locator(".wbr-says")
    plot = row.locator(".wbr-plot")
    assert name.bounding_box()["y"] == verdict.bounding_box()["y"]
    assert plot.bounding_box()["y"] > name.bounding_box()["y"]
    assert plot.bounding_box()["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_what_trains_differently_says_so_at_every_width(shared: Watched, tmp_path: Path) -> None:
    whole = every_toggle_comparison()
    failed = [
        check if check.label != "fused V1" else type(check)(**{**vars(check), "passed": False})
        for check in whole.equivalence
    ]
    changed = type(whole)(**{**vars(whole), "equivalence": tuple(failed)})
    address = write_report(changed, tmp_path / "report.html").as_uri()
    for width in (1280, 800, 390):
        row = opened(shared, address, width).get_by_role("row", name="Fused V1").first
        assert row.get_by_text("trains differently").is_visible()


def test_paper_holds_every_table(shared: Watched, address: str) -> None:
    """One that is wider would make all that is printed smaller: a page of A4 has 718 px."""
    page = opened(shared, address, 718)
    page.emulate_media(media="print")
    width = page.evaluate("document.documentElement.scrollWidth")
    page.emulate_media(media="screen")
    assert width == 718
