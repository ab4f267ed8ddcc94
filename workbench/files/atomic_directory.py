"""A directory appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import OutputError
from workbench.files.atomic_file import make_directory, require_writable_directory, writing


def require_free_directory(path: str | os.PathLike[str]) -> Path:
    """Requires a place where a directory can be made: nothing, or a directory that is empty.

    Returns:
      The path, absolute, without links.

    Raises:
      OutputError: something is there, or it cannot be written; the message names `path`.
    """
    with writing(path):
        place = Path(os.path.realpath(os.fspath(path)))
        is_directory, is_there = place.is_dir(), place.exists()
        is_free = not is_there or (is_directory and not any(place.iterdir()))
    if not is_free:
        what = "the folder is not empty" if is_directory else "it is a file"
        raise OutputError(f"{os.fsdecode(path)}: {what}; give a new name, or an empty folder")
    require_writable_directory(place.parent)
    return place


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hands out a directory to fill; on success it becomes `path`.

    Whatever goes wrong meanwhile, an interrupt too, nothing of it stays. Directories above `path`
    are made.

    Raises:
      OutputError: as `require_free_directory`, or the system refuses.
    """
    place = require_free_directory(path)
    make_directory(place.parent)
    part = place.with_name(f".workbench-{uuid.uuid4().hex[:8]}.part")
    try:
        with writing(path):
            part.mkdir()
            yield part
            os.replace(part, place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
