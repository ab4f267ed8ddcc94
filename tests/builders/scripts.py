"""Scripts of users, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.builders.warm_python import run_warm

_COMPAT = "import workbench.compat.v1 as tf\n"


def run_script(
    script: str, folder: Path, *arguments: str, fresh: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a script, written into the folder, in that folder.

    Args:
      script: its text; it may be indented.
      folder: where it lies and runs.
      *arguments: what stands behind it on the command line.
      fresh: whether it runs in a Python that has imported nothing, and not in a fork.
      **variables: set in its environment.
    """
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    command = [str(path), *arguments]
    environment = os.environ | {"PYTHONPATH": os.getcwd()} | variables
    if not fresh:
        return run_warm(command, env=environment, cwd=folder)
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )


def run_compat(
    script: str, folder: Path, *, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs a script of DeepRec's: its import switches the process to the behavior of v1."""
    return run_script(_COMPAT + textwrap.dedent(script), folder, fresh=fresh)


def printed(script: str, folder: Path, *, fresh: bool = False) -> list[str]:
    """The lines that such a script prints."""
    done = run_compat(script, folder, fresh=fresh)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()
