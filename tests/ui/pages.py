"""Report pages that hold nothing but timelines, or boundaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.viz.boundary.html import boundary_html
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style import assets
from workbench.viz.timeline.html import timeline_html
from workbench.viz.timeline.scale import on_one_scale
from workbench.viz.timeline.view import TimelineView

each_width = pytest.mark.parametrize(
    "width", [1280, pytest.param(800, marks=pytest.mark.slow), 390]
)
# rows of the canvas, px: the strip, then ruler and steps, then lanes of 26 and gaps of 4
STRIP = (6, 32)
FIRST_LANE = 78
COLORS = """(canvas, [top, bottom]) => {
  const { width } = canvas;
  const { data } = canvas.getContext("2d").getImageData(120, top, width - 120, bottom - top);
  const found = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const color = `${data[i]},${data[i + 1]},${data[i + 2]}`;
    found.set(color, (found.get(color) || 0) + 1);
  }
  return Object.fromEntries(found);
}"""
# A change is painted by the next frame, which is asked for before this one.
PAINTED_JS = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# The Table is summed when the window has rested for 120 ms: a timer of as long, begun later, is due
# after that one.
TABLE_IS_SUMMED_JS = "() => new Promise((done) => setTimeout(done, 120))"


def write_page(path: Path, *views: TimelineView) -> str:
    """Writes a page with these timelines and returns its address."""
    parts = "".join(timeline_html(view, f"timeline-{k}") for k, view in enumerate(views))
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Timelines</title>'
        "<style>:root{color-scheme:light dark}body{margin:16px;background:light-dark(#fff,#111)}"
        f"{assets.style()}</style></head><body>{parts}"
        f'<script type="module">{assets.report_script()}</script></body></html>',
        "utf-8",
    )
    return path.as_uri()


def write_pair_page(path: Path, before: TimelineView, after: TimelineView) -> str:
    """Writes a page with two linked timelines and returns its address.

    Its script leaves them in `window.views`, and `sumsOf` in `window.sumsOf`.
    """
    sides = "".join(
        f'<div class="wb-side" data-wb-side="{name}"><h3>{name}</h3>'
        f"{timeline_html(view, f'pair-{k}')}</div>"
        for k, (name, view) in enumerate(
            zip(("Plain", "Staged"), on_one_scale([before, after]), strict=True)
        )
    )
    script = assets.report_script().replace(
        "\nmountReport();", "\nwindow.sumsOf = sumsOf;\nwindow.views = await mountReport();"
    )
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pair</title>'
        "<style>:root{color-scheme:light dark}body{margin:16px;background:light-dark(#fff,#111)}"
        f'{assets.page_style()}</style></head><body class="wb"><main>'
        f'<div class="wb-pair" data-wb-pair>{sides}</div></main>'
        f'<script type="module">{script}</script></body></html>',
        "utf-8",
    )
    return path.as_uri()


def write_boundary_page(path: Path, *views: BoundaryView) -> str:
    """Writes a page with these boundaries and returns its address."""
    parts = "".join(boundary_html(view, f"boundary-{k}") for k, view in enumerate(views))
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Boundaries</title>'
        "<style>:root{color-scheme:light dark}body{margin:16px;background:light-dark(#fff,#111)}"
        f"{assets.boundary_style()}</style></head><body>{parts}"
        f'<script type="module">{assets.report_script()}</script></body></html>',
        "utf-8",
    )
    return path.as_uri()


_DRAWN = "[data-wb-timeline], [data-wb-boundary]"


def open_page(page: Any, address: str) -> Any:
    """Goes there, waits until all of it is painted, and returns the first timeline or boundary."""
    page.goto(address)
    await_drawn(page)
    return page.locator(_DRAWN).first


def await_drawn(page: Any) -> None:
    """Waits until each timeline and boundary is painted that is not folded away."""
    page.wait_for_function(
        f"() => [...document.querySelectorAll('{_DRAWN}')]"
        ".filter(root => !root.closest('details:not([open])'))"
        ".every(root => root.dataset.wbReady === 'true')",
        timeout=30_000,
    )


def picture_of(canvas: Any) -> str:
    """The pixels of a canvas as a data URL, once all that changed is painted."""
    canvas.evaluate(PAINTED_JS)
    pixels: str = canvas.evaluate("canvas => canvas.toDataURL()")
    return pixels


def colors_of(timeline: Any, top: int, bottom: int) -> dict[str, int]:
    """How many pixels of each colour a band of the canvas has, right of the lane names.

    They are counted once all that changed is painted.
    """
    canvas = timeline.locator("canvas.wb-lanes")
    canvas.evaluate(PAINTED_JS)
    found: dict[str, int] = canvas.evaluate(COLORS, [top, bottom])
    return found


def rgb(color: str) -> str:
    """ "#rrggbb" as the canvas tells it."""
    return ",".join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))


def range_in_view(timeline: Any) -> tuple[float, float]:
    """The window in ms, as the caption of the Table tells it."""
    button = timeline.get_by_role("button", name="Table")
    if button.get_attribute("aria-pressed") == "false":
        button.click()
    timeline.page.evaluate(TABLE_IS_SUMMED_JS)
    words = timeline.locator(".wb-inview caption").inner_text()
    low, high = words.removeprefix("In view, ").split("\u00a0ms")[0].split("–")
    return tuple(float(text.replace("\u2009", "")) for text in (low, high))  # type: ignore[return-value]


def drag_in(canvas: Any, start: float, end: float, y: float, key: str = "") -> None:
    """Drags in a canvas from one x to another, in px from its corner, while a key is held."""
    mouse, keyboard = canvas.page.mouse, canvas.page.keyboard
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    if key:
        keyboard.down(key)
    mouse.move(box["x"] + start, box["y"] + y)
    mouse.down()
    mouse.move(box["x"] + end, box["y"] + y, steps=4)
    mouse.up()
    if key:
        keyboard.up(key)
