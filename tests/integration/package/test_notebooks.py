"""Every notebook runs from top to bottom, quietly, and what it shows is worth saving."""

from __future__ import annotations

import json

import nbclient
import pytest

from tests.builders.notebooks import NOTEBOOKS, small_notebook

WIDGET = "application/vnd.jupyter.widget-view+json"
# A real JupyterLab runs the first one in tests/ui/test_jupyterlab.py.
CASES = [pytest.param(NOTEBOOKS[0], marks=pytest.mark.slow), *NOTEBOOKS[1:]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_it_runs_and_shows_every_outlet(path, tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "data").mkdir()
    notebook = small_notebook(path)
    assert all(not cell.get("outputs") for cell in notebook.cells), "saved with outputs"
    nbclient.NotebookClient(
        notebook, timeout=280, resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    assert "".join(o["text"] for o in outputs if o.get("name") == "stderr") == ""
    shown = [o["data"] for o in outputs if "text/html" in o.get("data", {})]
    assert sum("<iframe" in data["text/html"] for data in shown) >= 2
    assert all("text/plain" in data and WIDGET not in data for data in shown)
    assert all(len(data["text/html"]) < 300_000 for data in shown)
    assert len(json.dumps(notebook)) < 600_000
