"""What processes may use of this machine: cores and free memory."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def usable_cores() -> int:
    """Cores that this process and its children may run on."""
    return len(os.sched_getaffinity(0))


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
