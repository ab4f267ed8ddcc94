"""How many steps a session runs before those that count."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

# After a change of session the first steps are not typical, and under the tracer they set it up.
SETTLING_STEPS = 3
# After a rest caches are cold, threads sleep deep, and the kernel takes them to need little: a step
# of 4 ms takes 1.7 times as long at first, 1.14 times after 30 ms, and 1.04 times after 60 ms.
# Measured on 2 cores of a virtual machine, with blocks of five other processes between.
_WARM_S = 0.08
# Of a session that was opened to be traced.
WARM_UP_STEPS = 20
# No more steps than this are run for it, and no longer than this: a dataset may end.
_MOST_WARM_STEPS, _MOST_WARM_S = 400, 2.0


def settling_of(step_s: float) -> int:
    """First steps of a block that do not count, of a session whose steps take so many seconds."""
    return min(max(SETTLING_STEPS, math.ceil(_WARM_S / step_s)), _MOST_WARM_STEPS)


class Rest:
    """When the steps of a session last ran, and which steps after it do not count."""

    def __init__(self, *, settling: int, reads_ahead: bool) -> None:
        """Of a session that has not run.

        Args:
          settling: how many steps use up what stages had ready.
          reads_ahead: whether the input reads ahead, by as many batches as it likes.
        """
        self._settling, self._reads_ahead = settling, reads_ahead
        self._since_s = time.monotonic()

    def begin(self) -> None:
        """The last step is over."""
        self._since_s = time.monotonic()

    def run_until_over(self, run: Callable[[int], None]) -> None:
        """Runs the steps that do not count.

        What an input has read ahead in a rest is used up in less time than that, where steps take
        half as long as a batch or less. Where they take longer, it matters little.

        Args:
          run: runs a number of steps.
        """
        begun_s = time.monotonic()
        rest_s = begun_s - self._since_s if self._reads_ahead else 0.0
        until_s = begun_s + min(max(_WARM_S, rest_s), _MOST_WARM_S)
        run(self._settling)
        for _ in range(_MOST_WARM_STEPS):
            if time.monotonic() >= until_s:
                return
            run(1)
