"""TimeBudget: the seconds that a whole comparison may take, and what is left for its next part."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from workbench.experiments.worker.wire.messages import Steps

# Seconds until TensorFlow is imported, once for all child processes; CPU seconds of a child until
# it can be told what to do, and of building a graph and opening its session; those of DLRM. A
# larger graph takes longer.
START_S, FORK_S, OPEN_S = 5.0, 0.1, 2.3


class TimeBudget:
    """Seconds that count down from when it is made.

    A part gets a share of what is left when it begins, so that one that took longer than thought
    shortens those after it.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._seconds = clock, clock(), seconds

    def spent_s(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._begun

    def left_s(self) -> float:
        """Seconds until it is spent; never below 0."""
        return max(0.0, self._seconds - self.spent_s())

    def share_s(self, share: float, least_s: float) -> float:
        """A share of what is left, at least this many seconds."""
        return max(least_s, share * self.left_s())


def steps_within(seconds: float, step_s: float, *, least: int, most: int) -> int:
    """How many steps fit into some seconds, between the two bounds.

    Args:
      seconds: may be infinite.
      step_s: time of a step; 0 where nothing is known.
    """
    fit = seconds / step_s if step_s > 0 else math.inf
    return max(least, int(min(most, fit)))


def warm_step_s(ran: Steps) -> float:
    """Median time in seconds of the later half of some steps; 0 where none was run."""
    times = np.diff(ran.ends_ns)
    return float(np.median(times[len(times) // 2 :])) / 1e9 if len(times) else 0.0


def start_seconds(processes: int, cores: int) -> float:
    """Seconds until so many child processes can be told what to do, about."""
    return START_S + FORK_S * processes / max(1, min(cores, processes))


def expected_words(
    budget_s: float,
    *,
    processes: int,
    graphs: int,
    cores: int,
    known_s: float | None = None,
    least_s: float = 0.0,
    later_s: float = 0.0,
) -> str:
    """How long a comparison will take in all, said before anything runs.

    Args:
      budget_s: what it may take.
      processes, graphs: how many are started and built in all.
      cores: those that can start and build at the same time.
      known_s: seconds of starting and building, where runs before have told.
      least_s: seconds of the shortest form of all phases, from what runs before took.
      later_s: seconds of what comes after it.
    """
    each_s = OPEN_S * graphs
    start_s = start_seconds(processes, cores) + each_s / max(1, min(cores, processes))
    start_s = start_s if known_s is None else known_s
    what = f"to start {processes} child processes and build {graphs} graphs"
    then = f", then about {_s(later_s)} to predict other settings" if later_s >= 1 else ""
    if max(start_s, least_s) < budget_s:
        return (
            f"About {_s(budget_s)} in all: about {_s(start_s)} {what}, the rest to check, warm "
            f"up, measure and trace{then}"
        )
    if start_s < budget_s:
        return (
            f"More than the budget of {_s(budget_s)}: about {_s(least_s)}, as runs before took, "
            f"with the shortest checks, blocks and traces that say something{then}"
        )
    return (
        f"More than the budget of {_s(budget_s)}: about {_s(start_s)} {what} on {cores} cores, "
        f"then the shortest checks, blocks and traces that say something{then}"
    )


def _s(seconds: float) -> str:
    return f"{seconds:.0f}\u00a0s" if seconds >= 1 else f"{seconds:g}\u00a0s"
