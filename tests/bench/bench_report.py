"""Prints how large a report of ten settings is, and how fast it opens in headless Chromium.

    python -m tests.bench.bench_report

Open counts from the file's address until both linked timelines are drawn, in a new page each time.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench.bench_timeline import spread
from tests.builders.comparisons import every_toggle_comparison, variant
from tests.ui.conftest import ARGUMENTS, NAMES
from tests.ui.synthetic import dlrm_trace
from workbench.viz.report import write_report

ROUNDS = 15
DRAWN = "() => document.querySelector('[data-wb-linked]')"


def main() -> None:
    """Writes the report, opens it, and prints a line for each."""
    plain, staged = dlrm_trace(30, producers=0), dlrm_trace(30)
    every = every_toggle_comparison(plain, staged)
    more = tuple(variant(f"setting {n}", 41 + n, 1, trace=plain) for n in range(3))
    ratios = tuple(dataclasses.replace(every.ratios[0], label=each.label) for each in more)
    ten = dataclasses.replace(
        every, variants=(*every.variants, *more), ratios=(*every.ratios, *ratios)
    )
    executable = next(filter(None, map(shutil.which, NAMES)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        begin = time.perf_counter()
        path = write_report(ten, Path(folder) / "report.html")
        written = time.perf_counter() - begin
        print(
            f"{len(ten.variants)} variants: {path.stat().st_size / 1e6:.2f} MB in {written:.1f} s"
        )
        browser = driver.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        times = []
        for _ in range(ROUNDS):
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            begin = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_function(DRAWN)
            times.append(1e3 * (time.perf_counter() - begin))
            page.close()
        print(f"opened: {spread(times)}")
        browser.close()


if __name__ == "__main__":
    main()
