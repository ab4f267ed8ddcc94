"""Every notebook runs from top to bottom, quietly, and what it shows is worth saving."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_client.manager import KernelManager

from tests.builders.notebooks import NOTEBOOKS, small_notebook, whole_notebook

WIDGET = "application/vnd.jupyter.widget-view+json"
PLOTLY = "application/vnd.plotly.v1+json"
CHECKOUT = Path(__file__).resolve().parents[3]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_it_is_short_and_saved_without_outputs(path):
    notebook = whole_notebook(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) <= 15
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    nbformat.validate(notebook)


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One kernel for the notebooks in small, which differs from theirs in what is imported."""
    manager = KernelManager(kernel_name="python3")
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this checkout, of which no notebook has run: it has what is committed alone."""
    home = tmp_path / "workbench"
    git = ["git", "clone", "--quiet", "--shared", str(CHECKOUT), str(home)]
    subprocess.run(git, check=True, timeout=120)
    return home


@pytest.mark.slow
@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="not a checkout")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_with_little_data_in_a_fresh_clone(path, clone, kernel):
    notebook = small_notebook(path)
    executed(notebook, clone / "notebooks", kernel)
    assert_worth_saving(notebook)


@pytest.mark.slow
@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="not a checkout")
@pytest.mark.timeout(900)
@each_notebook
def test_it_runs_as_it_stands_in_a_fresh_clone(path, clone):
    notebook = whole_notebook(path)
    executed(notebook, clone / "notebooks")
    assert_worth_saving(notebook)


def executed(
    notebook: nbformat.NotebookNode, folder: Path, kernel: KernelManager | None = None
) -> None:
    """Runs a notebook in a folder, in a kernel of its own where none is given."""
    if kernel is None:
        at = {"metadata": {"path": str(folder)}}
        nbclient.NotebookClient(notebook, timeout=600, resources=at).execute()
        return
    begin = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}")]
    )
    for each in (begin, notebook):
        nbclient.NotebookClient(each, timeout=600, km=kernel).execute()


def assert_worth_saving(notebook: nbformat.NotebookNode) -> None:
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    assert "".join(o["text"] for o in outputs if o.get("name") == "stderr") == ""
    shown = [o["data"] for o in outputs if {"text/html", PLOTLY} & set(o.get("data", {}))]
    assert len(shown) >= 2
    views = [data for data in shown if "text/html" in data]
    assert all("text/plain" in data and WIDGET not in data for data in views)
    assert all(len(data["text/html"]) < 300_000 for data in views)
    # the state of widgets, which JupyterLab does not save unless it is told to, is left out
    assert sum(len(json.dumps(output)) for output in outputs) < 700_000
