"""A real JupyterLab of its own: temporary directories, a free port, a token, one process."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 90


class LabServer:
    """A running JupyterLab at `host`. Each `folder` that it serves is of one test."""

    def __init__(self, root: Path, scratch: Path, host: str, token: str) -> None:
        self.root, self.scratch, self.host = root, scratch, host
        self._token = token

    def folder(self) -> Path:
        """A new folder for notebooks, in a folder of its own."""
        folder = Path(tempfile.mkdtemp(dir=self.root)) / "notebooks"
        folder.mkdir()
        return folder

    def address_of(self, notebook: Path) -> str:
        """Where a notebook of a folder is shown, alone in a fresh workspace."""
        name = notebook.relative_to(self.root).as_posix()
        return f"http://{self.host}/lab/tree/{name}?token={self._token}&reset"


@contextlib.contextmanager
def jupyterlab(home: Path) -> Iterator[LabServer]:
    """A JupyterLab of its own; nothing outside of the empty folder `home` is touched."""
    root, scratch = home / "served", home / "jupyter"
    root.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    environment = _environment(scratch)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *(f"--ServerApp.root_dir={root}", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={token}", "--expose-app-in-browser"),
        "--LabApp.extension_manager=readonly",
    ]
    quiet = scratch / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True, exist_ok=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    with (scratch / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            host = f"127.0.0.1:{port}"
            _wait(f"http://{host}/api/status?token={token}", server, scratch / "server.log")
            yield LabServer(root, scratch, host, token)
        finally:
            _stop(server)


def run_jupyter(scratch: Path, *arguments: str | Path) -> None:
    """Runs a command of Jupyter to its end; its output is in the error where it fails.

    Args:
      scratch: the folder of `jupyterlab`, or any other that is this run's own.
      *arguments: as on the command line, "nbconvert" or "trust" first.
    """
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", *map(str, arguments)],
        env=_environment(scratch),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def _environment(scratch: Path) -> dict[str, str]:
    """Nothing outside of `scratch` is read or written."""
    return os.environ | {
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_DATA_DIR": str(scratch / "data"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(scratch / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(scratch / "workspaces"),
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    tail = log.read_text("utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"JupyterLab did not answer within {START_SECONDS} s:\n{tail}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Ends the server and the kernels it started: they share its process group."""
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=8)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
