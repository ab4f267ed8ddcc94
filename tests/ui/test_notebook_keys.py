"""Keys pressed inside a picture act on the picture, and never on the notebook around it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.jupyter import LabServer
from tests.ui.lab import HERE, RUN_SECONDS, lab_runs, notebook_of
from tests.ui.pages import picture_of

SOURCES = [
    f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
    "import workbench as wb\n"
    "from tests.builders.plans import towers\n"
    "from tests.ui.synthetic import dlrm_trace",
    "dlrm_trace(12)",
    "wb.widget(dlrm_trace(12))",
    "towers()",
    "wb.widget(towers())",
]
# what the pictures use, and what JupyterLab's command mode does with a cell
OWN = ["w", "s", "a", "d", "ArrowLeft", "ArrowRight", "[", "]", "f", "0", "Enter", "Escape"]
LABS = [
    *("d", "d", "0", "0", "i", "i", "x", "b", "a", "c", "v", "m", "y", "r", "z", "j", "k", "l"),
    *("o", "1", "ArrowUp", "ArrowDown", "Home", "End", "Space", "Delete", "Backspace"),
    *("Shift+M", "Shift+V", "Shift+L", "Shift+O", "Shift+J", "Shift+K"),
]
NOTEBOOK_JS = """() => {
  const { content, context } = window.jupyterapp.shell.currentWidget;
  const { kernel } = context.sessionContext.session;
  return {
    cells: content.widgets.map(({ model }) => [model.id, model.type, model.sharedModel.source]),
    counts: content.widgets.map(({ model }) => model.executionCount ?? null),
    hidden: content.widgets.map(({ inputHidden, outputArea }) =>
      [inputHidden, outputArea ? outputArea.model.length : 0]),
    active: content.activeCellIndex,
    selected: content.selectedCells.length,
    // busy for a moment when a picture tells it what is selected
    kernel: [kernel.id, ["idle", "busy"].includes(kernel.status)],
    numbers: document.querySelectorAll(".jp-mod-lineNumbers, .cm-lineNumbers").length,
    dialogs: document.querySelectorAll(".jp-Dialog").length,
    menus: document.querySelectorAll(".lm-Menu").length,
    launchers: document.querySelectorAll(".jp-NotebookPanel").length,
  };
}"""
# Of a picture whose twin in a frame, or in the page, is pressed every key.
FEW = ["d", "0", "x", "m", "ArrowDown", "Space", "Shift+M"]
INSIDE_JS = "(root) => root.contains(root.ownerDocument.activeElement)"


def press_all(page: Any, root: Any, one: Any, keys: list[str]) -> None:
    """Presses each key on the element and requires notebook and focus as they were before."""
    one.focus()
    before = page.evaluate(NOTEBOOK_JS)
    for key in keys:
        one.focus()
        page.keyboard.press(key)
        page.keyboard.press(key)
        assert page.evaluate(NOTEBOOK_JS) == before, f"{key!r} changed the notebook"
        assert root.evaluate(INSIDE_JS), f"{key!r} took the focus out of the picture"


def watch_timeline(page: Any, root: Any, keys: list[str]) -> None:
    """Every key leaves the notebook alone; those of the timeline move it."""
    canvas = root.locator("canvas.wb-lanes")
    canvas.scroll_into_view_if_needed()
    for key in ("w", "a", "ArrowRight", "]", "s", "f", "0"):
        before = picture_of(canvas)
        press_all(page, root, canvas, [key])
        assert picture_of(canvas) != before, f"{key!r} did not move the timeline"
    press_all(page, root, canvas, OWN + keys)
    canvas.focus()
    page.keyboard.press("/")
    search = root.locator(".wb-search")
    assert search.evaluate("one => one === one.ownerDocument.activeElement")
    search.press_sequentially("ddxbMatMul00")
    assert search.input_value() == "ddxbMatMul00"
    press_all(page, root, root.get_by_role("button", name="Gaps"), keys)
    assert page.evaluate(NOTEBOOK_JS)["dialogs"] == 0


def watch_boundary(page: Any, root: Any, keys: list[str]) -> None:
    """The same for the boundary: its boxes, its search and its rows."""
    picks = root.locator(".wbb-pick")
    picks.first.scroll_into_view_if_needed()
    last = root.get_by_role("button", name="Does not depend on the input").first
    press_all(page, root, picks.first, OWN + keys)
    # arrows move the focus, Enter tells why, Space ticks, and on the line arrows move it
    root.get_by_role("button", name="noise RandomUniform").focus()
    page.keyboard.press("Enter")
    assert "RandomUniform" in root.locator(".wbb-why").inner_text()
    last.focus()
    before = page.evaluate(NOTEBOOK_JS)
    # once more: nothing is behind the last box, and the focus stays
    page.keyboard.press("ArrowRight")
    picks.first.focus()
    page.keyboard.press("Space")
    assert not root.get_by_role("checkbox").first.is_checked()
    root.get_by_role("slider").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert "The line stops here." in root.locator(".wbb-said").inner_text()
    assert page.evaluate(NOTEBOOK_JS) == before
    assert root.evaluate(INSIDE_JS)
    press_all(page, root, root.locator("[data-row]").first, OWN + keys)
    press_all(page, root, root.locator("[data-reason]").first, keys)
    page.keyboard.press("/")
    search = root.locator(".wb-search")
    assert search.evaluate("one => one === one.ownerDocument.activeElement")
    search.press_sequentially("ddxb00")
    assert search.input_value() == "ddxb00"


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_no_key_in_a_picture_reaches_the_notebook(lab_context: Any, lab_server: LabServer) -> None:
    notebook = notebook_of(lab_server.folder() / "keys.ipynb", SOURCES)
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        page = lab.page
        cells = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
        for number, watch, kind, keys in (
            (1, watch_timeline, ".wb-timeline", LABS),
            (2, watch_timeline, ".wb-timeline", FEW),
            (3, watch_boundary, ".wb-boundary", FEW),
            (4, watch_boundary, ".wb-boundary", LABS),
        ):
            cell = cells.nth(number)
            cell.scroll_into_view_if_needed()
            framed = number in (1, 3)
            root = (cell.frame_locator("iframe") if framed else cell).locator(
                f"{kind}[data-wb-ready]"
            )
            root.wait_for(timeout=30_000)
            # where Lab knows of the picture at all, as after a click into it
            page.evaluate(
                "n => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = n; }",
                number,
            )
            watch(page, root, keys)
        assert lab.own_errors() == []
