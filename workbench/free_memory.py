"""Memory that processes can still take on this machine."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def free_bytes() -> float:
    """Memory that processes can still take, here and in this container; inf where nobody says."""
    free = math.inf
    with contextlib.suppress(OSError, ValueError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max" is no number
        most = int((_GROUP / "memory.max").read_text())
        free = min(free, max(0, most - int((_GROUP / "memory.current").read_text())))
    return free
