"""Scripts in processes that need not import TensorFlow: forks of a Python that did.

What a start from nothing must prove is proved with `subprocess`.
"""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from typing import Any

from workbench.experiments.worker.warm_python import warm_python


def run_warm(
    arguments: Sequence[str], *, env: dict[str, str], cwd: Any, timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end; what it wrote is in the result, as text.

    Args:
      arguments: the script's file and what stands behind it on the command line.
      env, cwd, timeout: as of `subprocess.run`.
    """
    with (
        warm_python() as warm,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        child = warm.fork(
            f"{__name__}:run_command_line",
            arguments,
            env=env,
            cwd=str(cwd),
            stdout=out.fileno(),
            stderr=errors.fileno(),
        )
        try:
            child.wait(timeout)
        finally:
            child.kill()
        written = []
        for stream in (out, errors):
            stream.seek(0)
            written.append(stream.read().decode())
    return subprocess.CompletedProcess(list(arguments), child.returncode or 0, *written)


def run_command_line(*arguments: str) -> None:
    """Runs a script as a `__main__` of its own, as Python does."""
    path = arguments[0]
    sys.argv = list(arguments)
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    main.__file__ = path
    sys.modules["__main__"] = main
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with open(path, "rb") as source:
        exec(compile(source.read(), path, "exec"), main.__dict__)
