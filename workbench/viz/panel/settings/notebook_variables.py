"""The variables of the notebook that a panel stands in."""

from __future__ import annotations

from typing import Any

from workbench.own_code import running_shell


def notebook_variables() -> dict[str, Any]:
    """The variables by name; none outside of a notebook."""
    shell = running_shell()
    return dict(shell.user_ns) if shell is not None else {}
