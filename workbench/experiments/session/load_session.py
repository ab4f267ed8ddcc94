"""load_session: a saved session, to be looked at, and to go on with."""

from __future__ import annotations

import os
from collections.abc import Sequence

from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError
from workbench.experiments.program.function_program import AnyProgram, require_program
from workbench.experiments.session.saved.session import read_session
from workbench.experiments.session.session import Session


def load_session(
    directory: str | os.PathLike[str],
    program: AnyProgram | None = None,
    *,
    toggles: Sequence[Toggle] = (),
) -> Session:
    """Reads what `Session.save` wrote; nothing is run.

    Args:
      directory: where it was saved.
      program: what its settings are to be run with; without it all that was measured is there, and
        running one more is refused.
      toggles: of the program's author. Those in the file are there without them, but a variable of
        the environment is set only where its toggle is given here.

    Raises:
      DataError: no session is there, it is damaged, or was saved by a newer version.
      OptionError: the program is none, or has another name.
      TraceError: one of its traces is broken.
    """
    saved = read_session(directory)
    if program is not None:
        require_program(program)
        if program.name != saved.program.name:
            raise OptionError(
                f"the session in {os.fspath(directory)} is of program {saved.program.name!r}, and "
                f"{program.name!r} was given; runs of two programs cannot be compared"
            )
    return Session.restored(saved, program, toggles)
