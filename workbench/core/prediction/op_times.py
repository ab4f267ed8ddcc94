"""Events of a trace → how long their ops would have run with a core each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.trace.trace import Trace


def with_own_times(trace: Trace, events: pd.DataFrame, counts: np.ndarray) -> pd.DataFrame:
    """Events with one more column, `own_ns`: how long each would have run with a core to itself.

    Where more ops run at a time than there are cores, each goes on at a part of its speed. A
    simulation shares the cores out anew.

    Args:
      trace: of steps.
      events: some of its events.
      counts: bool [nodes], which nodes use a core.
    """
    start = events["start_ns"].to_numpy(np.int64)
    lasted = events["dur_ns"].to_numpy(np.int64)
    own = lasted.astype(float)
    uses = counts[events["node"].to_numpy()]
    if trace.meta.cores:
        own[uses] = _with_a_core(start[uses], start[uses] + lasted[uses], trace.meta.cores)
    return events.assign(own_ns=own)


def _with_a_core(start: np.ndarray, end: np.ndarray, cores: int) -> np.ndarray:
    """How long each would have run alone, of ops that share the cores equally."""
    moments = np.concatenate((start, end))
    change = np.concatenate((np.ones(len(start)), -np.ones(len(end))))
    order = np.argsort(moments, kind="stable")
    time, running = moments[order], np.cumsum(change[order])
    speed = np.minimum(1.0, cores / np.maximum(running, 1.0))
    since = np.concatenate(([0.0], np.cumsum(np.diff(time) * speed[:-1])))

    def at(moment: np.ndarray) -> np.ndarray:
        found: np.ndarray = since[np.searchsorted(time, moment)]
        return found

    return at(end) - at(start)
