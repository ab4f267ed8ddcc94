"""Where forked children keep the code that AutoGraph generates, and its removal.

AutoGraph writes the source of each function that it converts to the temporary directory, and
removes it when Python exits. A child ends at once instead, so whoever forks it removes the files.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path


def make_folder() -> str:
    """A new folder for the temporary files of children."""
    return tempfile.mkdtemp(prefix="workbench-")


def remove_folder(folder: str) -> None:
    """Removes the generated code; the folder stays if a user's program has put a file there."""
    # Python keeps what it has compiled of it, too, unless PYTHONDONTWRITEBYTECODE is set.
    for place in (Path(folder, "__pycache__"), Path(folder)):
        with contextlib.suppress(OSError):
            for file in place.glob("__autograph_generated_file*.py*"):
                file.unlink(missing_ok=True)
            place.rmdir()
