"""Which lines of a traceback are the user's own, and how a notebook calls them."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent) + os.sep
_MODELS = _PACKAGE + "models" + os.sep
# What IPython makes of a whole cell below a magic: no line that anybody wrote.
_MAGIC = "get_ipython().run_cell_magic("
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def is_own(filename: str) -> bool:
    """Whether a file is the user's: not this package, nor Python's library, nor installed."""
    return (
        not filename.startswith(("<frozen", "<string>", _LIBRARY, _PACKAGE))
        and "site-packages" not in filename
        and "__autograph_generated_file" not in filename
    )


def is_of_a_model(filename: str) -> bool:
    """Whether a file is of a model that comes with this package."""
    return filename.startswith(_MODELS)


def own_lines(error: BaseException, most: int = 3) -> list[str]:
    """The user's own lines that an error passed through, the innermost last.

    Each is a place and, below it, the line itself, where its source is known. Of more than `most`,
    the first and the innermost are kept.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if is_own(frame.filename) and not (frame.line or "").startswith(_MAGIC)
    ]
    if len(frames) > most:
        frames = [frames[0], *frames[len(frames) - most + 1 :]]
    return [_line(frame.filename, frame.lineno or 0) for frame in frames]


def _line(filename: str, number: int) -> str:
    source = linecache.getline(filename, number).strip()
    place = f"{_file(filename)}, line {number}"
    return f"{place}\n    {source}" if source else place


def running_shell() -> Any:
    """The shell of IPython whose cells run in this process; None where none does."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _file(filename: str) -> str:
    """A file as IPython calls it: "Cell In[3]" for a cell."""
    shell = running_shell()
    named = shell.compile.format_code_name(filename) if shell else None
    return " ".join(named) if named else f"File {filename}"
