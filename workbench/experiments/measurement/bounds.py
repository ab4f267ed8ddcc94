"""Bounds: how fast a program could be at most, from the times of its parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.experiments.measurement.blocks import MeasuredBlocks
from workbench.experiments.measurement.statistics import Interval, mean_interval, ratio_interval
from workbench.experiments.program.variant import Variant

# Labels of the parts of a program that are measured by themselves.
INPUT, COMPUTE = "input alone", "compute alone"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bound:
    """A rate that no variant can exceed, such as 1 / max(T_input, T_compute).

    Attributes:
      name: the formula.
      steps_per_s: the bound, measured in the same rounds.
      detail: its parts, and which share of it each variant reaches.
    """

    name: str
    steps_per_s: float
    detail: str


def bounds_of(
    variants: Sequence[Variant], measured: dict[str, MeasuredBlocks], seed: int
) -> tuple[Bound, ...]:
    """1 / max(T_input, T_compute), where both parts were measured."""
    if INPUT not in measured:
        return ()
    parts = [mean_interval(measured[part].rates, seed).value for part in (INPUT, COMPUTE)]
    slower = (INPUT, COMPUTE)[int(np.argmin(parts))]
    reached = {
        variant.label: ratio_interval(measured[variant.label].rates, measured[slower].rates, seed)
        for variant in variants
    }
    # Of many variants, the baseline and the one that comes nearest are named.
    nearest = max(reached, key=lambda label: reached[label].value)
    named = dict.fromkeys([variants[0].label, nearest])
    shares = (f"{label} reaches {_share(reached[label])}" for label in named)
    detail = (
        f"T_input {_ms(parts[0])}, T_compute {_ms(parts[1])}: what overlapping the input alone can "
        f"reach, while a stage that also parses may exceed it; {', '.join(shares)}"
    )
    return (Bound(name="1 / max(T_input, T_compute)", steps_per_s=min(parts), detail=detail),)


def _ms(rate: float) -> str:
    return f"{1000 / rate:.3g}\u00a0ms"


def _share(of_bound: Interval) -> str:
    return f"{of_bound.value:.1%} ({of_bound.low:.1%}–{of_bound.high:.1%})".replace("%", "\u00a0%")
