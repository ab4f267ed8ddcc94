"""Prints how long a page takes to write, and how fast it opens and zooms in headless Chromium.

    python -m tests.bench.bench_timeline           # both
    python -m tests.bench.bench_timeline --write   # without a browser

Open counts from the file's address to the first full frame. Zoom is one frame: from the key to
the drawn canvas, without the wait for the screen. Peak is what writing needs beside the trace.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.builders.traces import big_trace
from tests.ui.conftest import ARGUMENTS, NAMES
from tests.ui.pages import open_page, write_page
from workbench.viz.style import assets
from workbench.viz.timeline.html import timeline_html
from workbench.viz.timeline.view import timeline_view

WRITTEN = 2_000_000
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


def write() -> None:
    """Measures the writing of one large page, three times, and prints the fastest."""
    trace = big_trace(WRITTEN)
    before = resource.getrusage(resource.RUSAGE_SELF)
    times = []
    for _ in range(3):
        wall, user = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        page = timeline_html(timeline_view(trace), "timeline")
        after = resource.getrusage(resource.RUSAGE_SELF)
        times.append((after.ru_utime - user, time.perf_counter() - wall))
    user, wall = min(times)
    print(
        f"{WRITTEN:>9,} events: page of {len(page) / 1e6:.1f} MB written in {wall:.2f} s, "
        f"{user:.2f} s of user CPU, peak {(after.ru_maxrss - before.ru_maxrss) / 1e3:.0f} MB"
    )


def main() -> None:
    """Measures the writing, then both sizes in the browser, and prints one line each."""
    write()
    if "--write" in sys.argv:
        return
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
