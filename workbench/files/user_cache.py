"""Where this library keeps what it would otherwise make again: the user's cache directory."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """The directory for what can be made again, which may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workbench"
