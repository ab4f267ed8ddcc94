"""Facts of this machine that a trace needs beside it."""

from __future__ import annotations

import functools
import hashlib
import statistics
import threading
import time

from workbench.usable import usable_cores

_PULSE_S = 0.0015
_REST_S = 0.006
# The kernel judges by the last 50 ms or so: they are left to pass before anything counts.
_BUSY_PULSES, _COUNTED = 50, 8
_FORGOTTEN_S = 0.2
_TRIES = 2
# Two threads that get a core each take as long as one alone, two on one core twice as long.
_SIDE_BY_SIDE, _IN_TURN = 1.25, 1.6
_known: list[bool] = []


def packs_when_idle() -> bool | None:
    """Whether two threads share one core although another is idle, in a process that mostly rests.

    Some kernels of virtual machines do so, which makes the step after a wait slower. Takes a
    few tenths of a second the first time; what is found is kept for the process.

    Returns:
      None when it cannot be told, because other processes keep the cores busy.
    """
    if usable_cores() < 2:
        return False
    for _ in range(_TRIES):
        if _known:
            break
        found = _measured()
        _known.extend([found] if found is not None else [])
    return _known[0] if _known else None


@functools.cache
def _data() -> bytes:
    """As much as one thread works through in a pulse."""
    block = bytes(1 << 20)
    return bytes(int((1 << 20) * _PULSE_S / min(_hashed(block) for _ in range(4))))


def _measured() -> bool | None:
    alone = min(_hashed(_data()) for _ in range(4))
    busy = _pulses(_data(), _BUSY_PULSES, 0.0)[-_COUNTED:]
    if statistics.median(busy) > _SIDE_BY_SIDE * alone:
        return None
    time.sleep(_FORGOTTEN_S)
    rested = _pulses(_data(), _COUNTED, _REST_S)
    return statistics.median(rested) > _IN_TURN * alone


def _pulses(data: bytes, count: int, rest_s: float) -> list[float]:
    """Seconds that two threads take to work through the data at the same time, pulse by pulse."""
    both = threading.Barrier(2)

    def other() -> None:
        for _ in range(count):
            both.wait()
            _hashed(data)
            both.wait()

    thread = threading.Thread(target=other, name="second-core", daemon=True)
    thread.start()
    lasted = []
    for _ in range(count):
        time.sleep(rest_s)
        both.wait()
        begun = time.perf_counter()
        _hashed(data)
        both.wait()
        lasted.append(time.perf_counter() - begun)
    thread.join()
    return lasted


def _hashed(data: bytes) -> float:
    """Seconds that a hash takes; it lets other Python threads run meanwhile."""
    begun = time.perf_counter()
    hashlib.sha256(data).digest()
    return time.perf_counter() - begun
