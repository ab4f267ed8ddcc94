"""A million events in a browser: they open, and a zoom frame stays far from a second.

The figures themselves are printed by `tests/bench/bench_timeline.py`; here only what no machine
should miss by far.
"""

from __future__ import annotations

from pathlib import Path

from tests.builders.traces import big_trace
from tests.ui.pages import open_page, write_page
from tests.ui.watched import Watched
from workbench.viz.timeline.view import timeline_view

FRAME_MS = """async () => {
  const canvas = document.querySelector("canvas.wb-lanes");
  canvas.focus();
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  press("0");
  await frame();
  const times = [];
  for (let k = 0; k < 6; k++) {
    const begin = performance.now();
    press(k % 2 ? "s" : "w");
    await frame();
    canvas.getContext("2d").getImageData(0, 0, 1, 1);
    times.push(performance.now() - begin);
  }
  return times.sort((a, b) => a - b)[3];
}"""


def test_a_million_events_open_and_zoom(watched: Watched, tmp_path: Path) -> None:
    view = timeline_view(big_trace(1_000_000))
    address = write_page(tmp_path / "large.html", view)
    found = open_page(watched.page, address)
    assert watched.page.evaluate(FRAME_MS) < 1000
    found.get_by_role("searchbox").fill("layer_7/")
    assert "spans" in found.locator(".wb-found").inner_text()
    assert watched.errors == []
