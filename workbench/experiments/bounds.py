"""Bounds: how fast a program could be at most, from the times of its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.experiments.blocks import Measured
from workbench.experiments.measure import Interval, mean_interval, ratio_interval
from workbench.experiments.results import Bound
from workbench.experiments.setting import Setting
from workbench.experiments.turns import COMPUTE, INPUT


def bounds_of(
    settings: Sequence[Setting], measured: dict[str, Measured], seed: int
) -> tuple[Bound, ...]:
    """1 / max(T_input, T_compute), where both parts were measured."""
    if INPUT not in measured:
        return ()
    parts = [mean_interval(measured[part].rates, seed).value for part in (INPUT, COMPUTE)]
    slower = (INPUT, COMPUTE)[int(np.argmin(parts))]
    reached = {
        setting.label: ratio_interval(measured[setting.label].rates, measured[slower].rates, seed)
        for setting in settings
    }
    # Of many, the baseline and who comes nearest say it.
    nearest = max(reached, key=lambda label: reached[label].value)
    told = dict.fromkeys([settings[0].label, nearest])
    shares = (f"{label} reaches {_share(reached[label])}" for label in told)
    detail = (
        f"T_input {_ms(parts[0])}, T_compute {_ms(parts[1])}: what overlapping the input alone can "
        f"reach, while a stage that also parses may exceed it; {', '.join(shares)}"
    )
    return (Bound(name="1 / max(T_input, T_compute)", steps_per_s=min(parts), detail=detail),)


def _ms(rate: float) -> str:
    return f"{1000 / rate:.3g}\u00a0ms"


def _share(of_bound: Interval) -> str:
    return f"{of_bound.value:.1%} ({of_bound.low:.1%}–{of_bound.high:.1%})".replace("%", "\u00a0%")
