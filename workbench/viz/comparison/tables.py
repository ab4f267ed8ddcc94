"""The tables of a comparison: blocks, step metrics, self time by op family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from workbench.core.graph import op_families
from workbench.core.trace.metrics import StepMetrics
from workbench.viz.comparison.rounds import in_points, point_words, rounds_a_point
from workbench.viz.style import colors, format
from workbench.viz.style.table import Table

# Labels and the metrics of their traces.
Named = Sequence[tuple[str, StepMetrics]]


def blocks_table(rates: Sequence[tuple[str, Sequence[float]]]) -> Table | None:
    """Steps/s of blocks; one row for each round, or for some in a row where there are many."""
    rounds = min((len(blocks) for _, blocks in rates), default=0)
    if rounds < 2:
        return None
    each = rounds_a_point(rounds)
    columns = [in_points(blocks[:rounds]) for _, blocks in rates]
    rows = tuple(
        (
            _numbers(each * n + 1, min(rounds, each * (n + 1))),
            *(format.rate(means[n], unit="").rstrip() for means in columns),
        )
        for n in range(len(columns[0]))
    )
    words = ", ".join(filter(None, ("Steps/s of every block", point_words(rounds))))
    return Table(f"{words}, in the order they ran", ("Round", *_labels(rates)), rows)


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def measures_table(named: Named) -> Table:
    """What steps and stage runs do, one column per trace; rows that no trace has are left out."""
    rows = [(name, *(words(metrics) for _, metrics in named)) for name, words in _MEASURES]
    kept = tuple(row for row in rows if set(row[1:]) != {format.UNKNOWN})
    caption = "Traced steps, and untraced ones measured beside them"
    return Table(caption, ("Per step or run", *_labels(named)), kept)


def family_table(named: Named) -> Table | None:
    """Self time of the ops by family, per step, summed over threads; the stage's own column."""
    columns: list[tuple[str, list[float]]] = []
    for label, metrics in named:
        for side, words, count in (
            ("step", "in the step", metrics.steps),
            ("stage", "ahead of it", metrics.stage_runs),
        ):
            sums = _family_sums(metrics, side)
            if count and any(sums):
                columns.append((f"{label}, {words}", [value / count for value in sums]))
    if not columns:
        return None
    rows = tuple(
        (
            family.name,
            *(format.duration(sums[number]) if sums[number] else "" for _, sums in columns),
        )
        for number, family in enumerate(colors.FAMILIES)
        if any(sums[number] for _, sums in columns)
    )
    total = ("All ops", *(format.duration(sum(sums)) for _, sums in columns))
    caption = "Time in ops per step, by family, summed over threads"
    return Table(caption, ("Family", *_labels(columns)), rows, total)


def _labels(named: Sequence[tuple[str, object]]) -> tuple[str, ...]:
    return tuple(label for label, _ in named)


def _family_sums(metrics: StepMetrics, side: str) -> list[float]:
    nodes = metrics.by_node[metrics.by_node["side"] == side]
    family = op_families.families_of(nodes["op"].tolist(), nodes["name"].tolist())
    sums = np.bincount(family, nodes["self_ns"].to_numpy(float), minlength=len(colors.FAMILIES))
    return [float(value) for value in sums]


def _and_p95(median: int | None, p95: int | None) -> str:
    if median is None:
        return format.UNKNOWN
    return f"{format.duration(median)}, {format.duration(p95)}"


def _per_stage_run(value: int | None, metrics: StepMetrics) -> str:
    return format.duration(value) if metrics.stage_runs else format.UNKNOWN


_MEASURES: tuple[tuple[str, Callable[[StepMetrics], str]], ...] = (
    ("Steps traced", lambda m: format.integer(m.steps)),
    ("Step, median and 95th percentile", lambda m: _and_p95(m.step_ns_median, m.step_ns_p95)),
    ("Untraced step, median", lambda m: format.duration(m.untraced_ns_median)),
    (
        "Wait in take, median and 95th percentile",
        lambda m: _and_p95(m.take_wait_ns_median, m.take_wait_ns_p95),
    ),
    ("Share of the steps spent waiting in take", lambda m: format.share(m.take_wait_share)),
    ("Stage run without its wait, median", lambda m: _per_stage_run(m.stage_work_ns_median, m)),
    ("Wait in put, median", lambda m: _per_stage_run(m.put_wait_ns_median, m)),
    ("Stage work done while a step computes", lambda m: format.share(m.overlap)),
    (
        "Items in the buffer when take is called, mean",
        lambda m: format.UNKNOWN if m.run_ahead is None else f"{m.run_ahead:.1f}",
    ),
)
