"""Prediction: what one candidate would give."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """What one candidate would give.

    Attributes:
      label: of the candidate.
      step_ms: predicted time of a step in the steady state, in ms.
      bound_ms: the least time that anything could reach with it: the slowest part alone.
      limited_by: what bounds it: "the step", "the cores", or a stage.
      chosen: whether the plan takes it.
    """

    label: str
    step_ms: float
    bound_ms: float
    limited_by: str
    chosen: bool = False
