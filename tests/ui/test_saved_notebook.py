"""A saved notebook keeps its pictures: converted, opened again, in VS Code's rules and GitHub's.

Every route ends at what is painted, offline. The notebook is executed once, by nbconvert.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.jupyter import LabServer, run_jupyter
from tests.ui.lab import HERE, lab_shows, notebook_of
from tests.ui.pixels import painted
from tests.ui.watched import Watched
from workbench.core.graph import op_families
from workbench.viz.style import colors

ACCENT = "#1976d2"
LOOKUP, DENSE = colors.FAMILIES[op_families.LOOKUP].light, colors.FAMILIES[op_families.DENSE].light
# the least a picture must have of each color: a line of the buffer, some boxes or spans
TIMELINE = {LOOKUP: 100, DENSE: 100, colors.FAMILIES[op_families.INPUT].light: 100}
BOUNDARY = {ACCENT: 100, LOOKUP: 50, colors.FAMILIES[op_families.IDS].light: 50}
SOURCES = {
    "trace": "dlrm_trace(20)",
    "boundary": "towers()",
    "plan": "plan_stages(towers())",
    "comparison": "planned_comparison()",
    "widget": "wb.widget(dlrm_trace(4))",
    "boundary widget": "wb.widget(towers())",
}
PAINT_SECONDS = 20
EXPECTED = [TIMELINE, BOUNDARY, BOUNDARY, TIMELINE | BOUNDARY, TIMELINE, BOUNDARY]
IMPORTS = (
    f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
    "import workbench as wb\n"
    "from tests.builders.comparisons import planned_comparison\n"
    "from tests.builders.plans import towers\n"
    "from tests.ui.synthetic import dlrm_trace\n"
    "from workbench.core.planning.planner import plan_stages"
)
# outputs as VS Code puts them into its web view: markup first, then each script element again
VSCODE_CSP = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' https: http: data:; "
    "font-src 'self' https:; connect-src https:; child-src https: data:;"
)
VSCODE_JS = """(outputs) => {
  for (const markup of outputs) {
    const output = document.createElement("div");
    output.className = "output";
    document.body.append(output);
    output.innerHTML = markup;
    for (const old of output.querySelectorAll("script")) {
      const again = document.createElement("script");
      again.type = old.type;
      again.textContent = old.textContent;
      old.replaceWith(again);
    }
  }
}"""
GITHUB_JS = """(outputs) => {
  for (const markup of outputs) {
    const page = new DOMParser().parseFromString(markup, "text/html");
    page.querySelectorAll("script,style,iframe,svg,canvas,link").forEach((one) => one.remove());
    for (const one of page.querySelectorAll("*")) {
      for (const { name } of [...one.attributes]) {
        if (!["src", "alt", "href", "scope"].includes(name)) one.removeAttribute(name);
      }
    }
    const output = document.createElement("div");
    output.className = "output";
    output.append(...page.body.childNodes);
    document.body.append(output);
  }
}"""
ALIVE_JS = """(frames) => [...document.querySelectorAll("iframe")].length === frames &&
  [...document.querySelectorAll("iframe")].every((frame) =>
    frame.offsetHeight > 200 && frame.previousElementSibling.hidden)"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook as nbconvert leaves it, widget state included."""
    folder = tmp_path_factory.mktemp("saved")
    source = notebook_of(folder / "source.ipynb", [IMPORTS, *SOURCES.values()])
    run_jupyter(folder, "nbconvert", "--execute", "--to", "notebook", source, "--output", "saved")
    return folder / "saved.ipynb"


def outputs_of(path: Path) -> list[list[dict[str, Any]]]:
    """The data of the outputs of every cell behind the imports."""
    cells = json.loads(path.read_text("utf-8"))["cells"][1:]
    return [[output["data"] for output in cell["outputs"]] for cell in cells]


def html_of(path: Path) -> list[str]:
    return ["".join(data["text/html"]) for cell in outputs_of(path) for data in cell[:1]]


def assert_painted(element: Any, expected: dict[str, int], what: str) -> None:
    """Requires so many pixels of each color, once the page has had the time to draw them."""
    until = time.monotonic() + PAINT_SECONDS
    while True:
        found = painted(element)
        few = {
            color: found.get(color, 0)
            for color, least in expected.items()
            if found.get(color, 0) < least
        }
        if not few or time.monotonic() > until:
            break
        time.sleep(0.2)
    assert not few, f"{what} has {few} pixels of these colors; expected {expected}"


@pytest.fixture
def offline(browser: Any) -> Iterator[Watched]:
    """A page of a notebook's width without network."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    yield Watched(context.new_page())
    context.close()


def test_every_output_has_html_or_a_widget_never_both(executed: Path) -> None:
    for name, outputs in zip(SOURCES, outputs_of(executed), strict=True):
        assert len(outputs) == (2 if "widget" in name else 1), name
        for data in outputs:
            kinds = set(data) - {"text/plain"}
            assert kinds in ({"text/html"}, {"application/vnd.jupyter.widget-view+json"}), name
    trace, boundary = outputs_of(executed)[:2]
    assert len(json.dumps(trace)) < 140_000
    assert len(json.dumps(boundary)) < 85_000


@pytest.mark.parametrize("how", ["saved", pytest.param("executed", marks=pytest.mark.slow)])
def test_a_converted_page_shows_every_picture(executed: Path, offline: Watched, how: str) -> None:
    source = executed if how == "saved" else executed.parent / "source.ipynb"
    again = ["--execute"] if how == "executed" else []
    run_jupyter(executed.parent, "nbconvert", "--to", "html", *again, source, "--output", how)
    page = offline.page
    page.goto((executed.parent / f"{how}.html").as_uri(), wait_until="domcontentloaded")
    page.wait_for_function(ALIVE_JS, arg=4, timeout=30_000)
    cells = page.locator(".jp-CodeCell").all()[1:]
    for cell, (name, expected) in zip(cells, zip(SOURCES, EXPECTED, strict=True), strict=True):
        shown = cell.locator("iframe" if "widget" not in name else ".wb-static").first
        assert_painted(shown, expected, name)
    # alive, not only drawn: a click says what the span is
    frame = page.frame_locator("iframe").first
    frame.locator("canvas.wb-lanes").click(position={"x": 600, "y": 90})
    assert "Duration" in frame.locator(".wb-about").inner_text()


def test_it_is_alive_by_the_rules_of_vscode(
    executed: Path, offline: Watched, tmp_path: Path
) -> None:
    page = offline.page
    view = tmp_path / "view.html"
    view.write_text(
        f'<meta http-equiv="Content-Security-Policy" content="{VSCODE_CSP}">'
        '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark">'
    )
    page.goto(view.as_uri())
    page.evaluate(VSCODE_JS, html_of(executed))
    page.wait_for_function(ALIVE_JS, arg=4, timeout=30_000)
    frame = page.locator("iframe").first
    found = painted(frame)
    # the theme of the editor, though the system prefers the light one
    assert found[colors.FAMILIES[op_families.LOOKUP].dark] >= 100
    assert found["#111111"] > found.get("#ffffff", 0)
    assert offline.errors == []


def test_a_still_image_survives_the_rules_of_github(executed: Path, offline: Watched) -> None:
    page = offline.page
    page.set_content("<!doctype html><body style='width: 980px'></body>")
    page.evaluate(GITHUB_JS, html_of(executed))
    for output, (name, expected) in zip(
        page.locator(".output").all(), zip(SOURCES, EXPECTED, strict=True), strict=True
    ):
        assert_painted(output, expected, name)
        # numbers and reasons stay beside the picture, as words
        assert output.locator("table").count() >= 1, name


@pytest.mark.timeout(300)
def test_opened_again_in_jupyterlab_it_shows_every_picture(
    lab_context: Any, executed: Path, lab_server: LabServer
) -> None:
    root = lab_server.folder()
    # as JupyterLab saves by default: without the state of widgets
    content = json.loads(executed.read_text("utf-8"))
    del content["metadata"]["widgets"]
    for name in ("trusted", "untrusted"):
        # a signature is one of the content, so they must differ
        content["metadata"]["name"] = name
        (root / f"{name}.ipynb").write_text(json.dumps(content))
    run_jupyter(lab_server.scratch, "trust", root / "trusted.ipynb")
    for name, alive in (("trusted", True), ("untrusted", False)):
        with lab_shows(lab_context, lab_server, root / f"{name}.ipynb") as watched:
            watched.page.set_viewport_size({"width": 1400, "height": 2600})
            panel = watched.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
            panel.locator(".jp-OutputArea-output").first.wait_for(timeout=90_000)
            _assert_cells_painted(panel.locator(".jp-CodeCell"), alive=alive)


def _assert_cells_painted(cells: Any, *, alive: bool) -> None:
    """No cell has run: neither a picture in a frame nor a still picture needs the kernel."""
    for number, (name, expected) in enumerate(zip(SOURCES, EXPECTED, strict=True), 1):
        cell = cells.nth(number)
        cell.scroll_into_view_if_needed()
        frame = cell.locator("iframe")
        if alive and "widget" not in name:
            frame.wait_for(timeout=30_000)
            tall = "frame => frame.offsetHeight > 200"
            cell.page.wait_for_function(tall, arg=frame.element_handle(), timeout=30_000)
            assert_painted(frame, expected, name)
        else:
            assert frame.count() == 0, name
            if alive:
                # the widget has no state, which the picture makes up for
                lost = cell.get_by_text("Error displaying widget: model not found")
                lost.wait_for(state="attached", timeout=60_000)
                lost.wait_for(state="hidden")
            assert_painted(cell.locator(".jp-OutputArea-output").first, expected, name)
