"""Prints how fast the timeline opens and zooms in headless Chromium, at two sizes.

    python -m tests.bench.bench_timeline

Open counts from the file's address to the first full frame. Zoom is one frame: from the key to
the drawn canvas, without the wait for the screen.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.builders.traces import big_trace
from tests.ui.conftest import ARGUMENTS, NAMES
from tests.ui.pages import open_page, write_page
from workbench.viz import assets
from workbench.viz.timeline import timeline_view

SIZES = (20_000, 1_000_000)
SHARES = (1.0, 0.5, 0.1, 0.01)
# the window is set through the page's own first view
FRAMES = """async (share) => {
  const view = window.views[0];
  const total = view.state.model.duration;
  const times = [];
  for (let k = 0; k < 9; k++) {
    const low = total * (0.5 - share / 2) + k * 1000;
    const begin = performance.now();
    view.setWindow([low, low + total * share]);
    view.drawNow();
    document.querySelector("canvas.wb-lanes").getContext("2d").getImageData(0, 0, 1, 1);
    times.push(performance.now() - begin);
    await new Promise(requestAnimationFrame);
  }
  return times.sort((a, b) => a - b)[4];
}"""


def main() -> None:
    """Measures both sizes and prints one line each."""
    path = next(filter(None, map(shutil.which, NAMES)))
    print(f"script {len(assets.script()) / 1e3:.0f} kB, style {len(assets.style()) / 1e3:.0f} kB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        for size in SIZES:
            trace = big_trace(size)
            begin = time.perf_counter()
            view = timeline_view(trace)
            made = time.perf_counter() - begin
            page_path = Path(folder) / f"{size}.html"
            address = write_page(page_path, view)
            text = page_path.read_text().replace(
                "\nmountAll();", "\nwindow.views=await mountAll();"
            )
            page_path.write_text(text)
            page = browser.new_page(viewport={"width": 1200, "height": 800})
            begin = time.perf_counter()
            open_page(page, address)
            opened = time.perf_counter() - begin
            frames = ", ".join(f"{s:.0%} {page.evaluate(FRAMES, s):.1f} ms" for s in SHARES)
            print(
                f"{size:>9,} events: view {made:.2f} s, file {len(text) / 1e6:.1f} MB, "
                f"open {opened:.2f} s, zoom frame at {frames}"
            )
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
