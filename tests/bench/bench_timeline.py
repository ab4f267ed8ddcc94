"""Prints how long a page takes to write, and how fast it opens and zooms in headless Chromium.

    python -m tests.bench.bench_timeline           # all
    python -m tests.bench.bench_timeline --write   # without a browser
    python -m tests.bench.bench_timeline --pair    # two linked timelines, and sums, alone

Open counts from the file's address to the first full frame. Zoom is one frame: from the key to
the drawn canvas, without the wait for the screen. Peak is what writing needs beside the trace.
A frame of a pair is the script's time from the key until both timelines are drawn, over windows
that pan and zoom in turn. Sums are those of all spans of both timelines, as a drag asks for them.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.builders.traces import big_trace
from tests.ui.conftest import ARGUMENTS, NAMES
from tests.ui.pages import open_page, write_page, write_pair_page
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


# Milliseconds of script for each frame of two linked timelines; the shares take turns.
PAIR_FRAMES = """async ([shares, rounds]) => {
  const total = views[0].state.model.duration;
  const times = shares.map(() => []);
  for (let k = 0; k < rounds; k++) {
    for (const [s, share] of shares.entries()) {
      const low = total * (0.5 - share / 2) + ((k % 7) - 3) * total * share * 0.02;
      const begin = performance.now();
      views[k % 2].setWindow([low, low + total * share]);
      for (const view of views) view.drawNow();
      times[s].push(performance.now() - begin);
      await new Promise(requestAnimationFrame);
    }
  }
  return times;
}"""
# Milliseconds of the sums of a stretch over the whole of both timelines.
SUMS = """async (rounds) => {
  const sides = views.map(({ state: { model } }) => ({ model, range: [0, model.duration] }));
  const times = [];
  for (let k = 0; k < rounds; k++) {
    const begin = performance.now();
    sumsOf(sides);
    times.push(performance.now() - begin);
    await new Promise(requestAnimationFrame);
  }
  return times;
}"""
PAIR_EVENTS, PAIR_ROUNDS, SUM_ROUNDS = 500_000, 60, 41


def spread(times: Sequence[float]) -> str:
    """Median with its 95 % interval, and the 95th percentile, in ms."""
    ordered = sorted(times)
    count = len(ordered)
    # The order statistics around the middle that a binomial puts at 95 %.
    reach = 0.98 * count**0.5
    low = ordered[max(0, int(count / 2 - reach))]
    high = ordered[min(count - 1, int(count / 2 + reach))]
    late = ordered[min(count - 1, int(0.95 * count))]
    middle = statistics.median(ordered)
    return f"median {middle:.1f} ms ({low:.1f}–{high:.1f}), 95th percentile {late:.1f} ms"


def pair(browser: Any, folder: Path) -> None:
    """Measures two linked timelines, and the sums of all their spans."""
    traces = (big_trace(PAIR_EVENTS), big_trace(PAIR_EVENTS))
    address = write_pair_page(folder / "pair.html", *map(timeline_view, traces))
    page = browser.new_page(viewport={"width": 1400, "height": 1200})
    open_page(page, address)
    page.wait_for_function("() => window.views")
    page.evaluate(PAIR_FRAMES, [SHARES, 3])
    frames = page.evaluate(PAIR_FRAMES, [SHARES, PAIR_ROUNDS])
    print(f"a pair of {PAIR_EVENTS:,} events each, script time of a frame:")
    for share, times in zip(SHARES, frames, strict=True):
        print(f"  {share:>4.0%} in view: {spread(times)}")
    print(f"  all: {spread([time for times in frames for time in times])}")
    page.evaluate(SUMS, 3)
    print(f"sums of {2 * PAIR_EVENTS:,} events: {spread(page.evaluate(SUMS, SUM_ROUNDS))}")
    page.close()


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
    if "--pair" not in sys.argv:
        write()
    if "--write" in sys.argv:
        return
    path = next(filter(None, map(shutil.which, NAMES)))
    print(f"script {len(assets.script()) / 1e3:.0f} kB, style {len(assets.style()) / 1e3:.0f} kB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        for size in SIZES if "--pair" not in sys.argv else ():
            trace = big_trace(size)
            begin = time.perf_counter()
            view = timeline_view(trace)
            made = time.perf_counter() - begin
            page_path = Path(folder) / f"{size}.html"
            address = write_page(page_path, view)
            text = page_path.read_text().replace(
                "\nmountReport();", "\nwindow.views=await mountReport();"
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
        pair(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
