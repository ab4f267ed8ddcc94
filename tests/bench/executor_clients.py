"""Clients that call one session together."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Together:
    """What all clients got, and how long one call took."""

    calls_a_second: float
    p50_ms: float
    p99_ms: float


def clients_together(
    call: Callable[[], Any], clients: int, *, seconds: float, thinks_s: float = 0.0
) -> Together:
    """Each client calls for `seconds`, and sleeps for `thinks_s` between two calls.

    Clients live long: kernels keep things for each thread, which the first calls make.
    """
    times: list[list[float]] = [[] for _ in range(clients)]
    together = threading.Barrier(clients + 1)

    def client(mine: list[float]) -> None:
        for _ in range(20):
            call()
        together.wait()
        until = time.perf_counter() + seconds
        while (start := time.perf_counter()) < until:
            call()
            mine.append(time.perf_counter() - start)
            if thinks_s:
                time.sleep(thinks_s)

    threads = [threading.Thread(target=client, args=(mine,)) for mine in times]
    for thread in threads:
        thread.start()
    together.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - began
    every = np.concatenate(times) * 1000
    p50, p99 = np.percentile(every, [50, 99])
    return Together(len(every) / lasted, float(p50), float(p99))
