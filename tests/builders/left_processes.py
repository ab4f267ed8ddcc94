"""Children for tests of a WarmPython that leave processes of a loader behind."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


def load() -> None:
    time.sleep(600)


def starts_loaders(where: str, then: str) -> None:
    """Starts three processes, one in a session of its own, and writes their numbers."""
    loader = multiprocessing.get_context("fork").Process(target=load, daemon=True)
    loader.start()
    own = subprocess.Popen(SLEEP, start_new_session=True)
    pids = [loader.pid, subprocess.Popen(SLEEP).pid, own.pid]
    written = Path(f"{where}.part")
    written.write_text("\n".join(map(str, pids)))
    written.replace(where)
    if then == "stays":
        time.sleep(600)
    os._exit(0)
