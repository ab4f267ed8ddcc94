"""A page of many events opens, zooms and finds; how fast is printed by `make bench-timeline`."""

from __future__ import annotations

from pathlib import Path

from tests.builders.traces import big_trace
from tests.ui.pages import open_page, picture_of, write_page
from tests.ui.watched import Watched
from workbench.viz.timeline.view import timeline_view


def test_many_events_open_zoom_and_are_found(watched: Watched, tmp_path: Path) -> None:
    view = timeline_view(big_trace(300_000))
    address = write_page(tmp_path / "large.html", view)
    found = open_page(watched.page, address)
    canvas = found.locator("canvas.wb-lanes")
    before = picture_of(canvas)
    canvas.focus()
    watched.page.keyboard.press("w")
    assert picture_of(canvas) != before
    found.get_by_role("searchbox").fill("layer_7/")
    assert "spans" in found.locator(".wb-found").inner_text()
    assert watched.errors == []
