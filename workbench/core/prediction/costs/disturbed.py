"""Steps and items of a trace that something beside the program made longer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.graph.graph_view import Bools
from workbench.core.trace.trace import Trace

# A step this much longer than the median was disturbed and is left out.
_DISTURBED = 1.5
# More such steps than this share are none: their length is the program's own, as where the threads
# of a stage deliver several items at once.
_FEW = 0.15


def is_disturbed(steps: pd.DataFrame) -> Bools:
    """Which main steps something disturbed: they count for nothing, bool [steps].

    Args:
      steps: as of `Trace.steps`.
    """
    return few_and_long((steps["end_ns"] - steps["start_ns"]).to_numpy(np.int64))


def few_and_long(lasted: np.ndarray) -> Bools:
    """Which of these take longer than nearly all others, bool."""
    found: Bools = lasted > _DISTURBED * (np.median(lasted) if len(lasted) else 0)
    return found & bool(found.sum() <= _FEW * len(found))


def undisturbed(trace: Trace) -> pd.DataFrame:
    """The events without those of main steps that something disturbed."""
    steps = trace.steps()
    disturbed = steps["number"][is_disturbed(steps)]
    staged = np.flatnonzero(trace.tracks["kind"] == "prefetch")
    events = trace.events
    return events[events["track"].isin(staged) | ~events["step"].isin(disturbed)]
