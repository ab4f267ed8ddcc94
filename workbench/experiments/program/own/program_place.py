"""ProgramPlace: where a program of the user's own stands, such as "my_model.py:build".

What this module does with a file is read it; child processes alone run it, see `program_file`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from pathlib import Path

from workbench.errors import OptionError, one_line

EXPECTED = (
    "expected FILE.py:NAME or package.module:NAME, where NAME is build(optimizations), make(), a "
    "wb.Program or a wb.FunctionProgram, or FILE.py:MODEL,DATASET"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramPlace:
    """A file or a module, and what is taken from it.

    Attributes:
      text: as the user wrote it.
      source: the file's absolute path, or the module's name.
      names: one, or those of a model and its dataset.
      folder: what is put before all else on the path of imports: the file's own folder, or the
        working directory.
    """

    text: str
    source: str
    names: tuple[str, ...]
    folder: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file and not a module."""
        return self.source.endswith(".py")

    @property
    def title(self) -> str:
        """The file or module in messages, as the user wrote it."""
        return self.text.rpartition(":")[0]

    @property
    def short_name(self) -> str:
        """What a program there is called, where it does not say itself."""
        return Path(self.source).stem if self.is_file else self.source


def is_place(text: str) -> bool:
    """Whether a text says where a program stands, rightly or not; the name of a model does not."""
    return ":" in text or "/" in text or text.endswith((".py", ".ipynb"))


def program_place(text: str) -> ProgramPlace:
    """Reads such a text.

    Raises:
      OptionError: it names no file and function, there is no such file, or the file is no Python.
    """
    source, _, listed = text.rpartition(":")
    names = tuple(name.strip() for name in listed.split(","))
    shown = one_line(text)
    if text.endswith((".py", ".ipynb")) or not source:
        raise OptionError(f"{shown!r} names a file and nothing in it; {EXPECTED}")
    if not all(name.isidentifier() for name in names) or len(names) > 2:
        raise OptionError(
            f"{shown!r} ends in {one_line(listed)!r}, which names nothing; {EXPECTED}"
        )
    if source.endswith(".py"):
        path = Path(source).absolute()
        _require_python(path, one_line(source))
        return ProgramPlace(text=text, source=str(path), names=names, folder=str(path.parent))
    if source.endswith(".ipynb"):
        raise OptionError(f"{shown!r} is a notebook; measure a cell of it there, with %%workbench")
    if not all(part.isidentifier() for part in source.split(".")):
        raise OptionError(f"{shown!r} is neither a Python file nor a module; {EXPECTED}")
    return ProgramPlace(text=text, source=source, names=names, folder=os.getcwd())


def _require_python(path: Path, shown: str) -> None:
    try:
        source = path.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise OptionError(f"{shown}: no such file; {EXPECTED}") from None
        raise OptionError(f"{shown}: cannot be read: {error.strerror}") from None
    try:
        compile(importlib.util.decode_source(source), str(path), "exec")
    except SyntaxError as error:
        place = f"`{shown}`, line {error.lineno}: " if error.lineno else f"`{shown}`: "
        raise OptionError(f"{place}{type(error).__name__}: {error.msg}") from None
    except ValueError as error:
        raise OptionError(f"{shown}: is no Python file: {error}") from None
