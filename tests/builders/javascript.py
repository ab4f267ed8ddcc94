"""Runs the views' scripts in node, for tests of their pure parts; skips where there is no node."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from workbench.viz.style import assets, bundle

SECONDS = 60


def evaluate(expression: str, value: Any = None, before: str = "") -> Any:
    """Value of a JavaScript expression.

    Args:
      expression: may use `value` and every name that a module of `static/` exports.
      value: handed over as JSON, as the result is handed back.
      before: statements that run first.
    """
    imports = [
        f'import {{ {", ".join(names)} }} from "{(assets.STATIC / path).as_uri()}";'
        for path, names in exports().items()
    ]
    return run(
        [*imports, f"const value = {assets.json_script(value)};", before],
        f"await (async () => ({expression}))()",
    )


def run(lines: list[str], result: str) -> Any:
    """Runs an ES module in node.

    Args:
      lines: its text.
      result: an expression in its scope whose value is returned by way of JSON.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; it runs the tests of the views' scripts")
    program = "\n".join([*lines, f"process.stdout.write(JSON.stringify({result}));"])
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


def modules() -> dict[str, str]:
    """The text of every module of `static/` by its path."""
    paths = (path.relative_to(assets.STATIC).as_posix() for path in assets.STATIC.rglob("*.js"))
    return bundle.modules_of(sorted(paths))


def exports() -> dict[str, list[str]]:
    """What every module exports, by its path."""
    return {path: bundle.EXPORT.findall(text) for path, text in modules().items()}
