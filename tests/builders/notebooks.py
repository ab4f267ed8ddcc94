"""The notebooks as they stand, with less data and less time to measure."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
_SMALL = {"rows": "4_000", "budget_s": "1", "equivalence_steps": "8"}


def small_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook, in which these settings are small. Each must stand somewhere in it."""
    notebook = nbformat.read(path, as_version=4)
    for setting, value in _SMALL.items():
        pattern, count = rf"\b{setting}=[\d_]+", 0
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source, made = re.subn(pattern, f"{setting}={value}", cell.source)
                count += made
        assert count, f"{path.name} sets no {setting}"
    return notebook
