"""The program of a panel in Python: how the notebook names it, or what makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.experiments.program.function_program import AnyProgram

# Where neither a variable nor a model names it.
_PLACEHOLDER = "program  # the wb.Program or wb.FunctionProgram that the panel was made with"


def program_expression(program: AnyProgram | None, variables: Mapping[str, Any]) -> str:
    """How Python names a program: by a variable, as one of the six models, or by a placeholder.

    Args:
      program: what is run.
      variables: of the notebook.
    """
    for name, value in variables.items():
        if value is program and program is not None and not name.startswith("_"):
            return name
    origin = program.origin if program is not None else None
    if origin is None or not origin.model:
        return _PLACEHOLDER
    given = ", ".join(f"{k}={v!r}" for k, v in origin.options.items() if v is not None)
    return f"wb.models.{origin.model}({given})"
