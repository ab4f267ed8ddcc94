"""Short blocks of several things that take turns, and what a step of each takes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from typing import Any

# Longer than OpenMP's threads spin after a block, which is 200 ms by default.
_SPINNING_S = 0.25


def block(
    run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> Callable[[int], float]:
    """What runs as many steps as it is asked for, and returns their time in seconds of a clock."""

    def seconds_of(steps: int) -> float:
        begin = clock()
        for _ in range(steps):
            run()
        return clock() - begin

    return seconds_of


def timed(
    blocks: dict[str, Callable[[int], float]], seconds: float, spinning: Collection[str] = ()
) -> dict[str, list[float]]:
    """Means of short blocks of each, in turns and changing order.

    Args:
      blocks: by name what runs as many steps as it is given and returns their seconds.
      seconds: of all blocks together, at least.
      spinning: whose threads spin on when a block has ended; the next one waits till they rest.
    """
    shuffled = random.Random(0)
    steps = {}
    for name, run in blocks.items():
        run(1)
        steps[name] = max(1, round(0.05 / run(1)))
    found: dict[str, list[float]] = {name: [] for name in blocks}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, found.values())) < 8:
        order = list(blocks)
        shuffled.shuffle(order)
        for name in order:
            found[name].append(blocks[name](steps[name]) / steps[name])
            if name in spinning:
                time.sleep(_SPINNING_S)
    return found
