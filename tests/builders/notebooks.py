"""The notebooks as they stand, with less data and less time to measure."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

_HOME = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((_HOME / "notebooks").glob("*.ipynb"))
_SMALL = {
    "rows": "4_000",
    "budget_s": "1",
    "budget": '"1s"',
    "batch_size": "64",
    "equivalence_steps": "0",
    "trace_steps": "6",
    "rounds": "2",
}
# A trace costs two more graphs of each variant; these show none.
_UNTRACED = ("02_what_runs_ahead", "06_compare_find_report")
_KNOWN = f"""import sys
sys.path.insert(0, {str(_HOME)!r})
from tests.builders.small_dlrm import small_dlrm"""


def whole_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook as it stands."""
    return nbformat.read(path, as_version=4)


def small_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook with small settings and a small model, and no long cell.

    What a cell with the tag "long" does takes its time whatever the settings; a command, say.
    """
    notebook, count = whole_notebook(path), 0
    small = _SMALL | ({"trace_steps": "0"} if path.stem in _UNTRACED else {})
    notebook.cells = [
        cell for cell in notebook.cells if "long" not in cell.metadata.get("tags", ())
    ]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.source = cell.source.replace("wb.models.dlrm(", "small_dlrm(")
        for setting, value in small.items():
            pattern = rf'\b{setting}=(?!0\b)("\w+"|[\d_]+)'
            cell.source, made = re.subn(pattern, f"{setting}={value}", cell.source)
            count += made
    assert count >= 2, f"{path.name} sets nothing that could be smaller"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_KNOWN, id="known"))
    return notebook
