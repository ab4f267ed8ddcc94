"""A generated file on disk, and beside it the recipe that made it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.files.atomic_file import make_directory, replacing, writing


def write_generated(
    path: str | os.PathLike[str], chunks: Iterable[bytes], recipe: dict[str, int | str]
) -> Path:
    """Writes a generated file and, beside it, the recipe that made it.

    A file that the same recipe made earlier is kept as it is.

    Raises:
      DataError: a file is there already that no recipe made; it may be the user's own.
      OutputError: the file cannot be written.
    """
    path = Path(path)
    stamp = path.parent / f"{path.name}.recipe.json"
    with writing(path):
        is_there = path.exists()
    if is_there:
        made = _read_stamp(stamp)
        if made is None:
            raise DataError(
                f"{path}: exists and was not generated here, so it is not overwritten; "
                "move it away or choose another place"
            )
        if made == {**recipe, "bytes": path.stat().st_size}:
            return path
    make_directory(path.parent)
    with replacing(path) as part:
        with part.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        # Before the file itself: another process that finds the file finds its recipe, too.
        with replacing(stamp) as words:
            words.write_text(json.dumps({**recipe, "bytes": part.stat().st_size}, indent=1) + "\n")
    return path


def _read_stamp(stamp: Path) -> dict[str, Any] | None:
    try:
        made = json.loads(stamp.read_bytes())
    except (OSError, ValueError):
        return None
    return made if isinstance(made, dict) else None
