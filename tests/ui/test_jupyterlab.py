"""The timeline in a real JupyterLab: the notebook runs, the widget paints, zooms and selects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ui.jupyter import copied, jupyterlab
from tests.ui.watched import Watched

RUN_SECONDS = 180
# what JupyterLab itself writes to the console without network or with a fresh profile
LAB_NOISE = (
    r"favicon",
    r"api/contents/.*\.(ipynb_checkpoints|jupyter)",
    r"Failed to load resource.*(api/workspaces|lab/api/news|jupyterlab/announcements)",
    r"the server responded with a status of 404.*(/lsp/|/api/me|/lab/api/)",
)


def synthetic_notebook(path: Path) -> Path:
    """A notebook whose only output is a timeline of a synthetic trace."""
    here = Path(__file__).resolve().parents[2]
    source = [
        f"import sys\nsys.path.insert(0, {str(here)!r})\n",
        "from tests.ui.synthetic import dlrm_trace\n",
        "from workbench.viz.widget import TimelineWidget\n",
        "timeline = TimelineWidget(dlrm_trace(steps=24))\n",
        "timeline",
    ]
    after = ["print('selected', timeline.selected, timeline.selected_event)"]
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {
                "name": "python3",
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
            },
            "language_info": {"name": "python"},
        },
        "cells": [{**cell, "id": "one", "source": source}, {**cell, "id": "two", "source": after}],
    }
    path.write_text(json.dumps(notebook))
    return path


READY_JS = """() => {
  const session = window.jupyterapp?.shell?.currentWidget?.context?.sessionContext;
  return session?.isReady && session.session?.kernel?.status === "idle";
}"""


def run_all(page: Any, address: str) -> None:
    """Opens a notebook, waits for its kernel, and starts every cell."""
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell", timeout=90_000)
    page.wait_for_function(READY_JS, timeout=90_000)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")


def use_timeline(page: Any) -> str:
    """Waits for the first timeline of the page, zooms, selects a span; returns what is told."""
    page.wait_for_selector(".wb-timeline[data-wb-ready]", timeout=RUN_SECONDS * 1000)
    root = page.locator(".wb-timeline").first
    root.scroll_into_view_if_needed()
    canvas = root.locator("canvas.wb-lanes")
    colors = canvas.evaluate(COLORS_JS)
    assert colors > 8, f"the timeline shows {colors} colours; expected lanes full of spans"
    before = canvas.evaluate("c => c.toDataURL()")
    canvas.focus()
    for _ in range(4):
        page.keyboard.press("w")
    page.wait_for_timeout(200)
    assert canvas.evaluate("c => c.toDataURL()") != before, "zooming changed nothing"
    box = canvas.bounding_box()
    # the main step's lane is filled from one step to the next
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 90)
    root.get_by_role("button", name="Zoom to it").wait_for(timeout=10_000)
    return str(root.locator(".wb-about").inner_text())


COLORS_JS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let i = 0; i < data.length; i += 4) {
    found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  }
  return found.size;
}"""


def own_errors(errors: list[str]) -> list[str]:
    """What is left of the console's errors without JupyterLab's own noise."""
    return [text for text in errors if not any(re.search(p, text) for p in LAB_NOISE)]


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_timeline_lives_in_jupyterlab(browser: Any, tmp_path: Path) -> None:
    root = tmp_path / "notebooks"
    root.mkdir()
    name = copied(synthetic_notebook(tmp_path / "timeline.ipynb"), root)
    with jupyterlab(root, tmp_path / "scratch") as address:
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        watched = Watched(context.new_page())
        run_all(watched.page, address.format(name=name))
        told = use_timeline(watched.page)
        assert re.search(r"(run step|wait in take)", told), told
        assert "Duration" in told

        # the selection travels to the kernel
        watched.page.locator(".jp-Notebook .jp-CodeCell").nth(1).click()
        watched.page.keyboard.press("Shift+Enter")
        pattern = re.compile(r"selected \d+ -1")
        watched.page.locator(".jp-OutputArea-output", has_text=pattern).wait_for(timeout=30_000)
        assert own_errors(watched.errors) == []

        # saved, the notebook stays small and carries the still twins
        watched.page.keyboard.press("Control+s")
        watched.page.wait_for_timeout(1500)
        saved = (root / name).read_text()
        assert len(saved) < 300_000
        kinds = json.loads(saved)["cells"][0]["outputs"][0]["data"]
        assert {"text/plain", "text/html"} <= set(kinds)
        context.close()
