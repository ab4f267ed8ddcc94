"""Notebooks that run in a real JupyterLab, and what a test asks of the page."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ui.jupyter import LabServer
from tests.ui.watched import Watched

HERE = Path(__file__).resolve().parents[2]
RUN_SECONDS = 240
# what JupyterLab itself may write to the console in a fresh profile without network
LAB_NOISE = (r"favicon", r"Failed to load resource.*(/api/workspaces|/lab/api/news)")

READY_JS = """() => {
  const session = window.jupyterapp?.shell?.currentWidget?.context?.sessionContext;
  return session?.isReady && session.session?.kernel?.status === "idle";
}"""
RUN_JS = """() => {
  window.ran = null;
  window.jupyterapp.commands.execute("notebook:run-all-cells").then((ok) => { window.ran = ok; });
}"""
SAVE_JS = "() => window.jupyterapp.commands.execute('docmanager:save')"


class Lab:
    """A notebook open in JupyterLab, all of its cells started."""

    def __init__(self, watched: Watched, path: Path) -> None:
        self.watched = watched
        self.page = watched.page
        self.path = path

    def wait_until_done(self) -> None:
        """Returns once every cell ran; fails where one of them raised."""
        self.page.wait_for_function("() => window.ran !== null", timeout=RUN_SECONDS * 1000)
        errors = self.page.locator(".jp-RenderedText[data-mime-type*='error']")
        assert errors.count() == 0, errors.first.inner_text()

    def saved(self) -> dict[str, Any]:
        """Saves the notebook and reads it back."""
        self.page.evaluate(SAVE_JS)
        return dict(json.loads(self.path.read_text()))

    def own_errors(self) -> list[str]:
        """What is left of the console's errors without JupyterLab's own noise."""
        noise = re.compile("|".join(LAB_NOISE))
        return [text for text in self.watched.errors if not noise.search(text)]


@contextlib.contextmanager
def lab_shows(context: Any, server: LabServer, notebook: Path) -> Iterator[Watched]:
    """Opens a notebook in JupyterLab, which asks no other machine for anything.

    Args:
      context: a Playwright browser context; what it keeps of JupyterLab need not be read again.
      server: a JupyterLab that serves the notebook.
      notebook: one that lies in a folder of the server.
    """
    page = context.new_page()
    try:
        watched = Watched(page)
        page.goto(server.address_of(notebook), wait_until="domcontentloaded")
        page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell", timeout=90_000)
        yield watched
        assert watched.outside(server.host) == []
    finally:
        page.close()


@contextlib.contextmanager
def lab_runs(context: Any, server: LabServer, notebook: Path) -> Iterator[Lab]:
    """The same, with every cell started."""
    with lab_shows(context, server, notebook) as watched:
        watched.page.wait_for_function(READY_JS, timeout=90_000)
        watched.page.evaluate(RUN_JS)
        yield Lab(watched, notebook)


def notebook_of(path: Path, sources: list[str]) -> Path:
    """A notebook with these cells."""
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": [{**cell, "id": f"cell-{k}", "source": text} for k, text in enumerate(sources)],
    }
    path.write_text(json.dumps(notebook))
    return path
