"""The program of a panel in Python: how the notebook names it, or what makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.experiments.program.as_code import model_code
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.session.session import Session

# Where neither a variable nor a model names it.
_PLACEHOLDER = "program  # the wb.Program or wb.FunctionProgram that the panel was made with"


def program_expression(program: AnyProgram | None, variables: Mapping[str, Any]) -> str:
    """How Python names a program: by a variable, as one of the six models, or by a placeholder.

    A variable is the program itself, or a session or a panel of it.

    Args:
      program: what is run.
      variables: of the notebook.
    """
    if program is not None:
        for name, value in variables.items():
            end = _end_of(value, program)
            if end is not None and not name.startswith("_"):
                return f"{name}{end}"
    origin = program.origin if program is not None else None
    return (model_code(origin) if origin else "") or _PLACEHOLDER


def _end_of(value: Any, program: AnyProgram) -> str | None:
    """What makes this program of a variable's value; None where it is not in it."""
    if value is program:
        return ""
    if isinstance(value, Session):
        return ".program" if value.program is program else None
    # A panel, which no attribute is asked of that might work something out.
    session = getattr(value, "__dict__", {}).get("session")
    held = isinstance(session, Session) and session.program is program
    return ".session.program" if held else None
