"""A file appears whole or not at all, and what cannot be written is known early."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import OutputError

# A full disk takes an empty file, and often a few bytes in one that is there.
_PROBE_BYTES = 64 << 10


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hands out a path to write to; on success the file there takes the place of `path`.

    Whatever goes wrong meanwhile, `path` keeps what it had and nothing is left beside it. The
    directory must exist.

    Raises:
      OutputError: the file cannot be written; the message names `path`.
    """
    target = Path(path)
    part = _beside(target)
    try:
        with writing(target):
            yield part
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns the system's errors inside the block into OutputErrors that name `path`.

    A block inside another one writes a part of it: the outer path is what the user asked for.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{os.fspath(path)}: cannot be written: {_reason(error)}") from error


def make_directory(path: str | os.PathLike[str]) -> Path:
    """Makes a directory and those above it, where they are missing.

    Raises:
      OutputError: it cannot be made; the message names `path`.
    """
    home = Path(path)
    with writing(home):
        home.mkdir(parents=True, exist_ok=True)
    return home


def require_writable_directory(path: str | os.PathLike[str]) -> None:
    """Checks that files can be written into a directory, which may not exist yet.

    A probe is written where the directory is, or would be made, and removed again.

    Raises:
      OutputError: names `path` and what stands in the way.
    """
    home = Path(path).absolute()
    there = next(p for p in (home, *home.parents) if os.path.lexists(p))
    if not there.is_dir():
        raise OutputError(f"{path}: cannot be written: {there} is not a directory")
    probe = _beside(there / "probe")
    try:
        with writing(path), probe.open("wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def require_writable_file(path: str | os.PathLike[str]) -> None:
    """Checks that a file can be written, in a directory that may not exist yet.

    Raises:
      OutputError: names what stands in the way.
    """
    if os.path.isdir(path):
        raise OutputError(f"{os.fspath(path)}: cannot be written: it is a directory")
    require_writable_directory(Path(path).parent)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")


def _reason(error: OSError) -> str:
    """What the system says; libraries put it behind words of their own."""
    if isinstance(error, OutputError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
