"""What two traces differ in beside their steps: machine, version, day, tracer."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

import pandas as pd

from workbench.core.analysis.aligned_run import AlignedRun
from workbench.core.analysis.matched_nodes import GONE, MATCHED, NEW

# Of the op time of both, in nodes that both have; below it they may be of different models.
_COMMON_SHARE = 0.5
# The same ops may take this many times as long before it is said.
_PACE = 1.25


def captured_at(run: AlignedRun) -> datetime.datetime:
    """When the first step of a trace began."""
    return datetime.datetime.fromtimestamp(run.captured_ns // 1_000_000_000, datetime.UTC)


def other_circumstances(
    a: AlignedRun, b: AlignedRun, nodes: pd.DataFrame, without_edges: Sequence[str]
) -> Iterator[str]:
    """A sentence for each circumstance that may explain a difference, whatever the graphs do.

    Args:
      a, b: the runs.
      nodes: of the alignment.
      without_edges: labels of the runs whose trace does not know which op feeds which.
    """
    one, other = a.trace.meta, b.trace.meta
    if without_edges:
        names = " and ".join(f"{label!r}" for label in without_edges)
        lead = f"The trace of {names} does" if len(without_edges) == 1 else f"{names} do"
        yield (
            f"{lead} not know which op feeds which, so the step time is taken apart by op time, "
            "not by the critical path: ops that ran at the same time count in full, and what they "
            "exceed or leave of the step is everything else."
        )
    day_a, day_b = captured_at(a).date(), captured_at(b).date()
    if day_a != day_b:
        yield f"Captured on different days: {a.label!r} on {day_a}, {b.label!r} on {day_b} (UTC)."
    if one.cores and other.cores and one.cores != other.cores:
        yield (
            f"Another machine, or other cores of it: {a.label!r} had {one.cores}, {b.label!r} had "
            f"{other.cores}."
        )
    for what, held in (
        ("versions of TensorFlow", (one.tensorflow, other.tensorflow)),
        ("titles", (one.title, other.title)),
        ("tracers", (one.source, other.source)),
    ):
        if all(held) and held[0] != held[1]:
            yield f"Different {what}: {held[0]!r} and {held[1]!r}."
    if one.inter_op_threads != other.inter_op_threads:
        counts = one.inter_op_threads or "one per core", other.inter_op_threads or "one per core"
        yield (
            f"Different inter-op threads: {a.label!r} had {counts[0]}, {b.label!r} had {counts[1]}."
        )
    for run in (a, b):
        if run.trace.meta.lost_ops:
            yield (
                f"The trace of {run.label!r} lacks {run.trace.meta.lost_ops} ops: its tracer's "
                "memory was full."
            )
    yield from _untraced(a, b)
    yield from _in_common(nodes)
    yield from _pace(a, b, nodes)


def _untraced(a: AlignedRun, b: AlignedRun) -> Iterator[str]:
    """Whether the steps before and after the traced ones contradict them."""
    untraced = a.trace.meta.untraced, b.trace.meta.untraced
    times = [each.step_ns for each in untraced if each and not each.while_traced and each.step_ns]
    if len(times) == 2 and (times[1] - times[0]) * (b.step_ns - a.step_ns) < 0:
        yield (
            f"Untraced steps of the same runs differ the other way round: {times[0] / 1e6:.1f} ms "
            f"in {a.label!r}, {times[1] / 1e6:.1f} ms in {b.label!r}. Times of these traces do not "
            "say which is faster."
        )


def _in_common(nodes: pd.DataFrame) -> Iterator[str]:
    time = nodes["a_ns"] + nodes["b_ns"]
    apart = nodes["status"].isin((NEW, GONE))
    total = float(time.sum())
    common = 1 - float(time[apart].sum()) / total if total else 1.0
    if common < _COMMON_SHARE:
        yield (
            f"Only {100 * common:.0f} % of the op time is in nodes that both have: these may be "
            "different models."
        )


def _pace(a: AlignedRun, b: AlignedRun, nodes: pd.DataFrame) -> Iterator[str]:
    """Whether what did not change took another time: then more than the graph differs."""
    same = nodes[nodes["status"] == MATCHED]
    short, long = sorted(
        [(float(same["a_ns"].sum()), a.label), (float(same["b_ns"].sum()), b.label)]
    )
    if short[0] and long[0] / short[0] > _PACE:
        yield (
            f"Matched ops took {long[0] / short[0]:.2f} times as long in {long[1]!r} as in "
            f"{short[1]!r}: beside the graph something else differs, such as a busier machine, "
            "cores shared with a stage, or the batch size."
        )
