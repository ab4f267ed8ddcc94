"""Events of a trace → what the executor takes beside the ops: between two, and to wake a thread."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

# A node that became ready this long after its thread had ended its last op found it resting.
_RESTING_NS = 3_000
# Longer than this a thread waits for a core that others have, not for the executor.
_MOST_NS = 1_000_000
_FEWEST = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Handling:
    """What the executor takes beside the ops; None where a trace has too little to tell.

    Where a thread waited for a core that others had, nothing is told.

    Attributes:
      between_ns: mean time from the end of an op to the begin of the next one of its thread, when
        that was ready: finding it, and freeing what the op before leaves behind.
      wake_ns: mean time from when a node is ready to its begin on a thread that rested.
    """

    between_ns: float | None = None
    wake_ns: float | None = None


def handling_of(ops: pd.DataFrame) -> Handling:
    """What the executor took beside ops.

    Args:
      ops: events of the inter-op threads.
    """
    rows = ops.sort_values(["track", "start_ns"], kind="stable")
    start = rows["start_ns"].to_numpy(np.int64)
    end = start + rows["dur_ns"].to_numpy(np.int64)
    delay = rows["delay_ns"].to_numpy(np.int64)
    track, step = rows["track"].to_numpy(), rows["step"].to_numpy()
    follows = (track[1:] == track[:-1]) & (step[1:] == step[:-1]) & (start[1:] >= end[:-1])
    rested = start[1:] - delay[1:] > end[:-1] + _RESTING_NS
    between = (start[1:] - end[:-1])[follows & ~rested]
    waking = delay[1:][follows & rested]
    return Handling(between_ns=_mean(between), wake_ns=_mean(waking))


def _mean(times: np.ndarray) -> float | None:
    own = times[times <= _MOST_NS]
    return float(own.mean()) if len(own) >= _FEWEST else None
