"""When, where and of which state of the user's project something was measured; needs no network."""

from __future__ import annotations

import datetime
import platform
import subprocess
from typing import Any

# Keys of an environment that name a measurement and do not describe what it ran on.
PROVENANCE = ("measured", "host", "project")
_GIT = ("git", "-c", "core.fsmonitor=false")
_GIT_S = 5.0


def provenance() -> dict[str, Any]:
    """Date, host, and commit of the project in the working directory, JSON-ready.

    A working directory outside of any git repository has no "project".
    """
    now = datetime.datetime.now(datetime.UTC)
    project = _project()
    return {
        "measured": now.isoformat(timespec="minutes"),
        "host": platform.node(),
        **({"project": project} if project else {}),
    }


def _project() -> str:
    """Name and commit of the project, such as "ranker 1a2b3c4d5e, changed since"; "" without."""
    top, commit = _git("rev-parse", "--show-toplevel"), _git("rev-parse", "--short=10", "HEAD")
    if not top or not commit:
        return ""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    name = top.rpartition("/")[2]
    return f"{name} {commit}{', changed since' if changed else ''}"


def _git(*arguments: str) -> str:
    """What git prints; "" where it is not there, finds nothing, or takes too long."""
    try:
        ended = subprocess.run(
            [*_GIT, *arguments], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""
