"""Runs the shipped module in node, for tests of its pure parts; skips where there is no node."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from workbench.viz.style import assets

SECONDS = 60


def evaluate(expression: str, value: Any = None, script: str = "") -> Any:
    """Value of a JavaScript expression in the module's own scope.

    Args:
      expression: may use `value` and every top-level name of the module's parts.
      value: handed over as JSON, as the result is handed back.
      script: the module; none takes the timeline's.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; it runs the tests of the timeline's script")
    program = (
        f"{script or assets.script()}\nconst value = {assets.json_script(value)};\n"
        f"const result = await (async () => ({expression}))();\n"
        "process.stdout.write(JSON.stringify(result));\n"
    )
    done = subprocess.run(
        [node, "--input-type=module", "-"],
        input=program.encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr.decode()[-2000:])
    return json.loads(done.stdout)
