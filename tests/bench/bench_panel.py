"""Prints how fast a panel opens over long traces, and how fast its timeline zooms, in Chromium.

    python -m tests.bench.bench_panel

The page is the widget with a kernel that answers at once: open counts from the file's address to
the first full frame of the timeline tab. Made is what Python needs for the answer. Zoom is one
frame, as in bench_timeline.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.bench.bench_timeline import FRAMES, SHARES, SIZES
from tests.builders.panel_sessions import panel_session
from tests.builders.traces import big_trace
from tests.ui.conftest import ARGUMENTS, NAMES
from workbench.viz.panel.tabs.contents import TIMELINE, Content
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import assets

MOUNTED = "const view = mount(root, content.timeline"
OPEN_JS = """
const stored = JSON.parse(document.getElementById("stored").textContent);
const data = new DataView(fromBase64(document.getElementById("data").textContent).buffer);
const heard = {};
const model = {
  get: (name) => stored.state[name],
  set: (name, value) => (stored.state[name] = value),
  save_changes() {},
  send({ id, run }) {
    heard["msg:custom"]({ kind: "content", id, run, timeline: stored.header }, [data]);
  },
  on: (name, callback) => (heard[name] = callback),
  off() {},
};
renderPanel({ model, el: document.querySelector("main") });
"""


def write_page(path: Path, panel: Workbench, content: Content) -> int:
    """Writes the page of a widget that shows a timeline; returns its length."""
    assert content.timeline is not None
    state: dict[str, Any] = {name: getattr(panel, name) for name in panel.keys if name[0] != "_"}
    state = {name: value for name, value in state.items() if _is_plain(value)}
    stored = assets.json_script({"state": state, "header": content.timeline.to_json_header()})
    data = base64.b64encode(content.timeline.columns.buffer()).decode("ascii")
    script = assets.panel_script().replace(MOUNTED, f"window.views = [];{MOUNTED}")
    script = script.replace(
        "return { drawn: true, select", "window.views.push(view);return { drawn: true, select", 1
    )
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<style>{assets.panel_style()}</style>"
        f'<main></main><script type="application/json" id="stored">{stored}</script>'
        f'<script type="text/plain" id="data">{data}</script>'
        f'<script type="module">{script}{OPEN_JS}</script>'
    )
    path.write_text(page, "utf-8")
    return len(page)


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def main() -> None:
    """Measures each size and prints a line."""
    path = next(filter(None, map(shutil.which, NAMES)))
    print(f"script {len(assets.panel_script().encode()) / 1e3:.0f} kB")
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        for size in SIZES:
            session = panel_session(patch, trace=big_trace(size))
            panel = Workbench(session)
            panel.shown, panel.tab = 1, TIMELINE
            begin = time.perf_counter()
            content = panel._contents.of(session.runs[0], session.runs[0], TIMELINE)
            made = time.perf_counter() - begin
            page_path = Path(folder) / f"{size}.html"
            length = write_page(page_path, panel, content)
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            begin = time.perf_counter()
            page.goto(page_path.as_uri())
            page.wait_for_selector("[data-pane=timeline] .wb-timeline[data-wb-ready]")
            opened = time.perf_counter() - begin
            frames = ", ".join(f"{s:.0%} {page.evaluate(FRAMES, s):.1f} ms" for s in SHARES)
            print(
                f"{size:>9,} events: made {made:.2f} s, page {length / 1e6:.1f} MB, "
                f"open {opened:.2f} s, zoom frame at {frames}"
            )
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
