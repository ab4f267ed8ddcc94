"""How many steps a session runs before those that count."""

from __future__ import annotations

import time
from collections.abc import Callable

# After a change of session the first steps are not typical, and under the tracer they set it up.
SETTLING_STEPS = 3
# Of a session that was opened to be traced.
WARM_UP_STEPS = 20
# After a rest caches are cold and threads sleep deep: a step of 1 ms takes 1.3 to 1.6 ms until 20
# to 40 ms have gone by. Measured on 2 cores of a virtual machine, after rests of 20 and 50 ms.
_WARM_S = 0.06
# No more steps than this are run for it: a dataset may end.
_MOST_WARM_STEPS = 200


def run_until_warm(run: Callable[[int], None], settling: int) -> None:
    """Runs the steps after a rest that do not count.

    Args:
      run: runs a number of steps.
      settling: how many use up what was ready before.
    """
    begun = time.monotonic()
    run(settling)
    for _ in range(_MOST_WARM_STEPS):
        if time.monotonic() - begun >= _WARM_S:
            return
        run(1)
