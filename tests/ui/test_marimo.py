"""The panel in a marimo app, where that is installed: it stands, and a toggle reaches Python."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.lab import HERE
from tests.ui.panel_pages import made_up_session, show_tab
from tests.ui.watched import Watched

START_SECONDS = 60
APP = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import sys

    sys.path.insert(0, {here!r})
    import marimo as mo
    import workbench as wb

    panel = mo.ui.anywidget(wb.Workbench(wb.load_session({runs!r})))
    panel
    return mo, panel


@app.cell
def _(mo, panel):
    mo.md("The stage is " + panel.value["stage"])
    return


if __name__ == "__main__":
    app.run()
"""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("marimo") is None, reason="marimo is not installed"
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A marimo app with the panel of a saved session."""
    made_up_session().save(tmp_path / "runs")
    app = tmp_path / "app.py"
    values = {"{here!r}": str(HERE), "{runs!r}": os.fspath(tmp_path / "runs")}
    text = APP
    for name, value in values.items():
        text = text.replace(name, repr(value))
    app.write_text(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "marimo", "--quiet", "run", str(app), "--headless"),
        *("--host", "127.0.0.1", "--port", str(port), "--no-token"),
    ]
    home = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    log = tmp_path / "marimo.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, env=os.environ | home, stdout=out, stderr=out, start_new_session=True
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), opener.open(url, timeout=5):
            return
        time.sleep(0.2)
    pytest.fail(f"marimo did not answer:\n{log.read_text('utf-8', errors='replace')[-2000:]}")


@pytest.mark.timeout(180)
def test_a_toggle_in_a_marimo_app_reaches_python(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1500, "height": 1200})
    watched = Watched(page)
    try:
        page.goto(address)
        panel = page.locator(".wbp[data-wb-ready]")
        panel.wait_for(timeout=90_000)
        page.get_by_text("The stage is off").wait_for()
        panel.locator(".wbp-strip").wait_for()
        if panel.locator(".wbp-left").is_hidden():
            panel.get_by_role("button", name="Edit toggles").click()
        panel.locator("[data-group=stage] label", has_text="SmartStage").click()
        page.get_by_text("The stage is smart").wait_for(timeout=30_000)
        # what a tab shows comes from Python, with its bytes
        panel.get_by_label("Run shown").select_option("1")
        timeline = show_tab(panel, "timeline")
        timeline.locator("canvas.wb-lanes").wait_for()
        assert watched.outside(address.split("/")[2]) == []
    finally:
        page.close()
