"""ProgramFacts: what is known of a program where it is not at hand."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    own_batch_size,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramFacts:
    """What a session says of its program once it is saved.

    Attributes:
      name: its name.
      batch_size: rows of a batch where a setting does not say; None where that cannot be chosen.
      is_function: whether it is a FunctionProgram.
    """

    name: str
    batch_size: int | None = None
    is_function: bool = False

    @staticmethod
    def of(program: AnyProgram) -> ProgramFacts:
        """Those of a program."""
        return ProgramFacts(
            name=program.name,
            batch_size=own_batch_size(program),
            is_function=isinstance(program, FunctionProgram),
        )
