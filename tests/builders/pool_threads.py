"""Threads of stage pools, as the kernel lists those of this process."""

from __future__ import annotations

import collections
import gc
import pathlib
import time


def threads() -> dict[str, list[float]]:
    """CPU seconds of each thread of this process, by the name that the kernel shows."""
    found = collections.defaultdict(list)
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            used_ns = int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[name].append(used_ns / 1e9)
    return found


def pools_are(**expected: int) -> bool:
    """Whether these are the threads of all stage pools; a thread that just starts has no name."""
    deadline = time.monotonic() + 10
    while True:
        found = {name: len(used) for name, used in threads().items() if name.endswith("_intra")}
        if found == expected or time.monotonic() > deadline:
            assert found == expected
            return True
        gc.collect()
        time.sleep(0.005)
