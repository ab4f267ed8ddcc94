"""Commands of the shell in this process, whose child processes are forked like any other's.

What a process of its own must prove is proved with `subprocess`.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

from workbench.cli.main import main


def run_command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command; its exit code and what it wrote are in the result."""
    given = [str(each) for each in arguments]
    out, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        code = main(given)
    return subprocess.CompletedProcess(given, code, out.getvalue(), errors.getvalue())
