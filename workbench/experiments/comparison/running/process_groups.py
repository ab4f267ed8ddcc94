"""Memory: how many child processes may live at the same time."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path

from workbench.experiments.program.variant import Variant

_GROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
# Of what is free, for the parent and for others.
_SHARE = 0.9


def groups_that_fit(
    variants: Sequence[Variant], each_bytes: int, free: float
) -> list[list[Variant]]:
    """Variants that may live at the same time, each group with the baseline.

    Args:
      variants: the baseline first.
      each_bytes: what one process takes, about.
      free: bytes for all of them.

    Returns:
      One group where all fit; else groups of equal size, of two variants at least.
    """
    # One for the baseline, one for the session in which a variant is traced.
    others = max(1, int(_SHARE * free / max(1, each_bytes)) - 2) if free < math.inf else None
    if others is None or len(variants) - 1 <= others:
        return [list(variants)]
    count = math.ceil((len(variants) - 1) / others)
    size = math.ceil((len(variants) - 1) / count)
    rest = variants[1:]
    return [[variants[0], *rest[at : at + size]] for at in range(0, len(rest), size)]


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
