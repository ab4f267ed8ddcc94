"""PDFs that Chromium prints: a report has three pages of news, and a kept panel is whole."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders.comparisons import every_toggle_comparison, planned_comparison, variant
from tests.builders.panel_sessions import panel_session
from tests.ui.pages import open_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.test_saved_notebook import ALIVE_JS
from tests.ui.watched import Watched
from workbench.viz.panel.workbench import Workbench
from workbench.viz.report import write_report
from workbench.viz.style import colors

pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")

SCALE = 2  # pixels per point
NEWS_PAGES = 3  # before the appendix
MOST_PAGES = 16  # at full size, of two experiments with twelve timelines


@pytest.fixture(scope="module")
def printed(shared: Watched, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A report of ten settings beside the baseline, and of another input, from a dark screen."""
    folder: Path = tmp_path_factory.mktemp("print")
    plain, staged = dlrm_trace(12, producers=0), dlrm_trace(12)
    every = every_toggle_comparison(plain, staged)
    more = tuple(variant(f"setting {n}", 41 + n, 1, trace=plain) for n in range(3))
    ratios = tuple(dataclasses.replace(every.ratios[0], label=each.label) for each in more)
    ten = dataclasses.replace(
        every, variants=(*every.variants, *more), ratios=(*every.ratios, *ratios)
    )
    address = write_report([ten, planned_comparison()], folder / "report.html").as_uri()
    shared.page.emulate_media(color_scheme="dark")
    open_page(shared.page, address)
    shared.page.pdf(path=folder / "report.pdf", format="A4", print_background=False)
    assert shared.errors == []
    assert shared.requests == [address]
    document = pdfium.PdfDocument(folder / "report.pdf")
    yield document
    document.close()


def pixels(page: Any) -> np.ndarray:
    """A page as [height, width, RGB]."""
    return np.asarray(page.render(scale=SCALE, rev_byteorder=True).to_numpy())[:, :, :3]


def below_headings(page: Any, words: str) -> list[tuple[float, np.ndarray]]:
    """What stands between each heading that begins with `words` and the next one, in pixels."""
    text = page.get_textpage()
    search, tops = text.search(words), []
    while found := search.get_next():
        tops.append(page.get_height() - text.get_charbox(found[0])[3])
    picture = pixels(page)
    ends = [*tops[1:], min(page.get_height(), tops[-1] + 220)] if tops else []
    return [picture[int(a * SCALE) : int(b * SCALE)] for a, b in zip(tops, ends, strict=True)]


def has(page: Any, words: str) -> bool:
    """Whether a page has these words."""
    return page.get_textpage().search(words).get_next() is not None


def painted(part: np.ndarray, family: int) -> int:
    """Pixels of a family's color."""
    color = colors.FAMILIES[family].light
    wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(part.astype(int) - wanted).max(axis=2) <= 2).sum())


def test_what_is_not_news_begins_on_the_fourth_page_at_the_latest(printed: Any) -> None:
    begins = [
        number
        for number, page in enumerate(printed)
        if "Appendix" in page.get_textpage().get_text_range()
    ]
    assert begins[0] <= NEWS_PAGES
    words = "".join(page.get_textpage().get_text_range() for page in list(printed)[: begins[0]])
    for part in ("2.30× as fast", "Next:", "Why", "Before All off", "After Stage", "Step time"):
        assert part in words.replace("\r\n", " ")


def test_every_timeline_has_its_spans_on_paper(printed: Any) -> None:
    frames = [part for page in printed for part in below_headings(page, "Timeline: ")]
    # nine of ten settings and the baseline, less the two that stand first
    assert len(frames) == 9
    pages = list(printed)[:NEWS_PAGES]
    frames += [below_headings(page, "After Stage")[0] for page in pages if has(page, "After Stage")]
    assert len(frames) == 10
    names = [family.name for family in colors.FAMILIES]
    for part in frames:
        # far more than the swatches of a legend, which are 10 px wide
        assert painted(part, names.index("Lookup")) > 3_000
        assert painted(part, names.index("Gradient")) > 3_000


def test_it_is_few_pages_of_black_on_white(printed: Any) -> None:
    assert len(printed) <= MOST_PAGES
    for page in printed:
        picture = pixels(page)
        assert (picture[0, 0] == 255).all()
        assert (picture.min(axis=2) > 250).mean() > 0.5


def test_a_kept_panel_is_whole_on_paper(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Workbench(panel_session(monkeypatch, traced=2))
    panel.shown, panel.tab = 2, "two_runs"
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html><body>{panel._still_bundle()['text/html']}</body>")
    watched.page.emulate_media(color_scheme="dark")
    watched.page.goto(page.as_uri())
    watched.page.wait_for_function(ALIVE_JS, arg=1, timeout=30_000)
    watched.page.pdf(path=tmp_path / "notebook.pdf", format="A4")
    names = [family.name for family in colors.FAMILIES]
    with contextlib.closing(pdfium.PdfDocument(tmp_path / "notebook.pdf")) as document:
        words = "".join(each.get_textpage().get_text_range() for each in document)
        assert "Step time" in words  # the end of the tab
        spans = sum(painted(pixels(each), names.index("Dense matmul")) for each in document)
    assert spans > 3_000
