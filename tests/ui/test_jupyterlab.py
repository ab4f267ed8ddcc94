"""The timeline in a real JupyterLab: notebooks run, the widget paints, zooms and selects."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.builders.notebooks import NOTEBOOKS, small_notebook
from tests.ui.jupyter import LabServer
from tests.ui.lab import HERE, RUN_SECONDS, lab_runs, notebook_of
from tests.ui.pages import picture_of
from tests.ui.pixels import painted
from workbench.core.graph import op_families
from workbench.viz.style import colors

COLORS_JS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let i = 0; i < data.length; i += 4) {
    found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  }
  return found.size;
}"""


def use_timeline(page: Any, place: Any = None) -> str:
    """Waits for a timeline, zooms, selects a span; returns what is told.

    Args:
      page: the notebook's page.
      place: the frame that the timeline stands in; None where it is a widget.
    """
    root = (place or page).locator(".wb-timeline[data-wb-ready]").first
    root.wait_for(timeout=RUN_SECONDS * 1000)
    root.scroll_into_view_if_needed()
    canvas = root.locator("canvas.wb-lanes")
    colors = canvas.evaluate(COLORS_JS)
    assert colors > 8, f"the timeline shows {colors} colours; expected lanes full of spans"
    before = picture_of(canvas)
    canvas.focus()
    for _ in range(4):
        page.keyboard.press("w")
    assert picture_of(canvas) != before, "zooming changed nothing"
    # the main step's lane is filled from one step to the next
    canvas.click(position={"x": canvas.bounding_box()["width"] * 0.6, "y": 90})
    root.get_by_role("button", name="Zoom to it").wait_for(timeout=10_000)
    return str(root.locator(".wb-about").inner_text())


def synthetic_notebook(folder: Path, make: str, after: str) -> Path:
    """A notebook in the folder that shows a timeline of `make`, then runs `after`."""
    sources = [
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "from tests.builders.traces import big_trace\n"
        "from tests.ui.synthetic import dlrm_trace\n"
        "from workbench.viz.timeline.widget import TimelineWidget\n"
        f"timeline = TimelineWidget({make})\n"
        "timeline",
        after,
    ]
    return notebook_of(folder / "timeline.ipynb", sources)


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_timeline_lives_in_jupyterlab(lab_context: Any, lab_server: LabServer) -> None:
    after = "print('selected', timeline.selected, timeline.selected_event)"
    notebook = synthetic_notebook(lab_server.folder(), "dlrm_trace(steps=24)", after)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        told = use_timeline(lab.page)
        assert re.search(r"(run step|wait in take)", told), told
        assert "Duration" in told

        # the selection travels to the kernel
        lab.wait_until_done()
        lab.page.locator(".jp-Notebook .jp-CodeCell").nth(1).click()
        lab.page.keyboard.press("Shift+Enter")
        pattern = re.compile(r"selected \d+ -1")
        lab.page.locator(".jp-OutputArea-output", has_text=pattern).wait_for(timeout=30_000)
        assert lab.own_errors() == []

        # saved, the notebook stays small and keeps the still picture, hidden while the widget lives
        still = lab.page.locator(".wb-static")
        assert still.count() == 1
        assert not still.is_visible()
        saved = lab.saved()
        assert len(json.dumps(saved)) < 300_000
        kinds = saved["cells"][0]["outputs"][0]["data"]
        assert {"text/plain", "text/html"} == set(kinds)


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_large_trace_arrives_while_cells_still_run(
    lab_context: Any, lab_server: LabServer
) -> None:
    wait = "import pathlib, time\nwhile not pathlib.Path('seen').exists():\n    time.sleep(0.1)"
    notebook = synthetic_notebook(lab_server.folder(), "big_trace(200_000)", wait)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        assert "Duration" in use_timeline(lab.page)
        assert lab.page.evaluate("window.ran") is None
        (lab.path.parent / "seen").touch()
        lab.wait_until_done()
        assert lab.own_errors() == []
        assert len(json.dumps(lab.saved())) < 300_000


# `test_panel_live` has a panel in JupyterLab, `integration/package/test_notebooks` every notebook.
@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS * 2)
@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="the notebook trains with TensorFlow"
)
def test_the_first_notebook_shows_a_step(lab_context: Any, lab_server: LabServer) -> None:
    notebook = lab_server.folder() / NOTEBOOKS[0].name
    nbformat.write(small_notebook(NOTEBOOKS[0]), notebook)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        panel = lab.page.locator(".wbp[data-wb-ready]").first
        assert panel.locator("input[value=own]").is_checked()
        # code chose the tab
        assert "Duration" in use_timeline(lab.page, panel)
        # the second of the two timelines: every cell has run
        below = lab.page.locator(".jp-OutputArea iframe:not([title^=Workbench])").nth(1)
        below.scroll_into_view_if_needed()
        below.content_frame.locator(".wb-timeline[data-wb-ready]").wait_for(timeout=30_000)
        assert lab.own_errors() == []
        for cell in lab.saved()["cells"]:
            assert len(json.dumps(cell.get("outputs"))) < 300_000


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_figure_is_drawn_and_stored_without_its_library(
    lab_context: Any, lab_server: LabServer
) -> None:
    source = (
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "from tests.builders.comparisons import planned_comparison\n"
        "planned_comparison().plot()"
    )
    notebook = notebook_of(lab_server.folder() / "figure.ipynb", [source, source])
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        bars = lab.page.locator(".jp-OutputArea .js-plotly-plot .bars .point path")
        bars.first.wait_for(timeout=60_000)
        assert lab.own_errors() == []
        for cell in lab.saved()["cells"]:
            (output,) = cell["outputs"]
            assert "application/vnd.plotly.v1+json" in output["data"]
            # plotly adds a picture of it for other viewers; its library has 4.7 MB
            assert len(json.dumps(output)) < 300_000


THEME_JS = """(theme) =>
  window.jupyterapp.commands.execute("apputils:change-theme", { theme })"""
# JupyterLab fades a splash over the page while it changes the theme
DARK_JS = """(dark) => document.body.dataset.jpThemeLight === String(!dark) &&
  !document.getElementById("jupyterlab-splash") &&
  [...document.querySelectorAll("iframe")].every((frame) =>
    frame.contentDocument.body.dataset.wbTheme === (dark ? "dark" : "light"))"""


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_picture_follows_the_theme_of_the_notebook(
    lab_context: Any, lab_server: LabServer
) -> None:
    sources = [
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "from tests.builders.plans import towers\n"
        "from tests.ui.synthetic import dlrm_trace",
        "dlrm_trace(12)",
        "towers()",
    ]
    notebook = notebook_of(lab_server.folder() / "theme.ipynb", sources)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        page = lab.page
        # each picture whole on the screen: what is below its edge is Lab's own ground
        page.set_viewport_size({"width": 1280, "height": 2400})
        frames = page.locator(".jp-OutputArea iframe")
        for frame, kind in zip(frames.all(), ("timeline", "boundary"), strict=True):
            frame.content_frame.locator(f".wb-{kind}[data-wb-ready]").wait_for(timeout=30_000)
        for dark, theme in ((True, "JupyterLab Dark"), (False, "JupyterLab Light")):
            page.evaluate(THEME_JS, theme)
            page.wait_for_function(DARK_JS, arg=dark, timeout=30_000)
            for frame in frames.all():
                # the notebook's own ground, and the palette of the theme
                ground = page.evaluate(
                    "getComputedStyle(document.body).getPropertyValue('--jp-layout-color0').trim()"
                )
                found = painted(frame)
                most = max(found, key=found.__getitem__)
                assert most == {"#111": "#111111", "white": "#ffffff"}.get(ground, ground), theme
                family = colors.FAMILIES[op_families.LOOKUP]
                shown, other = (family.dark, family.light) if dark else (family.light, family.dark)
                assert found.get(shown, 0) > 50 > found.get(other, 0), theme
        assert lab.own_errors() == []


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_boundary_lives_in_jupyterlab(lab_context: Any, lab_server: LabServer) -> None:
    sources = [
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "from tests.builders.plans import two_branches_planned\n"
        "from workbench.viz.boundary.widget import BoundaryWidget\n"
        "boundary = BoundaryWidget(two_branches_planned())\n"
        "boundary",
        "print('selected', boundary.selected, 'moves', boundary.plan.stages[0].moved)",
        "boundary.selected = 'loss'",
    ]
    notebook = notebook_of(lab_server.folder() / "boundary.ipynb", sources)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        lab.page.wait_for_selector(".wb-boundary[data-wb-ready]", timeout=30_000)
        root = lab.page.locator(".wb-boundary").first
        root.scroll_into_view_if_needed()
        # what Python selects is told here, and what is picked here is known there
        assert "loss" in root.locator(".wbb-why").inner_text()
        root.get_by_role("button", name="noise").first.click()
        assert "It has state or effects of its own" in root.locator(".wbb-why").inner_text()
        # a cut that the page does not know: the kernel tells what it gives
        root.get_by_role("checkbox", name="a/one runs ahead").click()
        root.locator(".wbb-facts dd", has_text="◇").wait_for(timeout=30_000)
        assert "a/one" in root.locator(".wbb-diff").inner_text()
        lab.page.locator(".jp-Notebook .jp-CodeCell").nth(1).click()
        lab.page.keyboard.press("Shift+Enter")
        said = lab.page.locator(
            ".jp-OutputArea-output", has_text="selected noise moves ('next', 'b/two')"
        )
        said.wait_for(timeout=30_000)
        assert lab.own_errors() == []
        assert len(json.dumps(lab.saved())) < 200_000
