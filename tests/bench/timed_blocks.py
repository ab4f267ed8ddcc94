"""Short blocks of several things that take turns, and what a step of each takes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from typing import Any

from workbench.experiments.worker.steps.first_steps import settling_of

_BLOCK_S = 0.05
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
    """Means of short blocks of each, in turns and changing order, from the step on that is warm.

    Args:
      blocks: by name what runs as many steps as it is given and returns their seconds.
      seconds: of all blocks together, at least.
      spinning: whose threads spin on when a block has ended; the next one waits till they rest.
    """
    shuffled = random.Random(0)
    steps, cold = {}, {}
    for name, run in blocks.items():
        run(1)
        step_s = run(1)
        steps[name], cold[name] = max(1, round(_BLOCK_S / step_s)), settling_of(step_s)
    found: dict[str, list[float]] = {name: [] for name in blocks}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, found.values())) < 8:
        order = list(blocks)
        shuffled.shuffle(order)
        for name in order:
            blocks[name](cold[name])
            found[name].append(blocks[name](steps[name]) / steps[name])
            if name in spinning:
                time.sleep(_SPINNING_S)
    return found
