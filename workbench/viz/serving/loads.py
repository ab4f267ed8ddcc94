"""Loads in words, and the one load of several that an answer speaks of."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.serving.points import Load
from workbench.experiments.serving.results import ServingComparison
from workbench.number_words import counted
from workbench.viz.serving.load_chart import Estimate
from workbench.viz.style import format


def load_name(load: Load) -> str:
    """A load as tables have it: "8 clients", "900 requests/s"."""
    if load.rate is None:
        return counted(load.clients, "client")
    return format.rate(load.rate, unit="requests/s")


def with_load(load: Load) -> str:
    """A load as a sentence has it: "with 8 clients", "at 900 requests/s"."""
    return f"{'with' if load.rate is None else 'at'} {load_name(load)}"


def rows_name(rows: int) -> str:
    """How large requests are: "1 row a request", "32 rows a request"; "" where that is mixed."""
    return f"{counted(rows, 'row')} a request" if rows else ""


def row_counts(comparison: ServingComparison) -> list[int]:
    """The numbers of rows that requests had, in the order they were measured."""
    return list(dict.fromkeys(rows for _, rows in comparison.loads))


def telling_load(comparison: ServingComparison, rows: int) -> Load:
    """The load whose result is told first: the most clients, or the highest rate where none wait.

    It does not depend on what was measured, so that no load is picked for its numbers.
    """
    return max((load for load, count in comparison.loads if count == rows), key=_strength)


def known(interval: Interval | None) -> bool:
    """Whether an interval has two ends; one block gives none."""
    return interval is not None and math.isfinite(interval.high)


def estimate(interval: Interval) -> Estimate:
    """A number with its interval, or with none where one block gave no ends."""
    if not known(interval):
        return Estimate(value=interval.value, low=interval.value, high=interval.value)
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def sorted_loads(loads: Iterable[Load]) -> list[Load]:
    """Loads from the least to the most, those of clients first."""
    return sorted(loads, key=lambda load: (load.rate is not None, load.rate or load.clients))


def _strength(load: Load) -> tuple[bool, float]:
    return load.rate is None, float(load.clients if load.rate is None else load.rate)
