"""A file appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hands out a path to write to; on success the file there takes the place of `path`.

    Whatever goes wrong meanwhile, `path` keeps what it had and nothing is left beside it. The
    directory must exist.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
