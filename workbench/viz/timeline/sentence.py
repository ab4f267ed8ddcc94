"""What the steps of a trace take, traced and measured, and what they wait for, in a sentence."""

from __future__ import annotations

import numpy as np

from workbench.core.graph import op_families
from workbench.core.trace.intervals import covered, union
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.meta import STEP_STATS
from workbench.core.trace.metrics import StepTimes
from workbench.core.trace.trace import Trace
from workbench.viz.style import format
from workbench.viz.timeline.data import TimelineData

Pieces = tuple[tuple[str, bool], ...]


def sentence(data: TimelineData) -> Pieces:
    """What a step costs and what it waits for; medians, as the first traced step is often slow.

    Returns:
      (text, strong) pieces.
    """
    trace, times = data.trace, data.times
    if not times.steps:
        ops = f"{format.integer(len(trace.events))} ops, but no run of a step"
        what = ops if len(trace.events) else "nothing"
        return (("The trace holds ", False), (what, True), (".", False))
    lead = _step_time(times)
    if not len(trace.items):
        busy = _input_time(data)
        reading = f"; for {format.duration(busy)} of it an input op runs" if busy else ""
        return (*lead, (f"{reading}.", False))
    waits = times.per_step["take_wait_ns"]
    waits = waits[waits >= WAIT_MIN_NS]
    if waits.empty:
        return (*lead, (". No step waits in take.", False))
    wait = format.duration(float(waits.median()))
    if len(waits) == times.steps:
        return (*lead, (f", {wait} of it waiting in take.", False))
    some = f"{format.integer(len(waits))} of {format.integer(times.steps)} steps"
    verb = "waits" if len(waits) == 1 else "wait"
    return (*lead, (f". {some} {verb} in take, {wait} in the median.", False))


def tracer_notice(trace: Trace) -> str:
    """That TensorFlow's step stats were the tracer, and why; empty for every other tracer."""
    if trace.meta.source != STEP_STATS:
        return ""
    why = trace.meta.step_stats
    return (
        "Traced with TensorFlow's step stats, which lengthen every step and op"
        f"{f': {why}' if why else ''}."
    )


def _step_time(times: StepTimes) -> Pieces:
    """The traced step beside the untraced one, where that was measured."""
    traced = format.duration(times.step_ns_median)
    count = "" if times.steps == 1 else f"median of {format.integer(times.steps)}"
    lead = (("A step takes ", False), (traced, True))
    if times.untraced_ns_median is None:
        return (*lead, (f" traced{f' ({count})' if count else ''}", False))
    counts = f"{format.integer(times.steps)} and {format.integer(times.untraced_steps)} steps"
    return (
        *lead,
        (" traced, ", False),
        (format.duration(times.untraced_ns_median), True),
        (f" measured (medians{f' of {counts}' if times.untraced_steps else ''})", False),
    )


def _input_time(data: TimelineData) -> float:
    """Median time of a step in which an op of the input family runs, ns; 0 if hardly any does."""
    events, steps = data.trace.events, data.times.per_step
    events = events[data.names["family"].to_numpy()[events["node"]] == op_families.INPUT]
    start = events["start_ns"].to_numpy()
    begin = steps["start_ns"].to_numpy()
    length = steps["dur_ns"].to_numpy()
    reading = union(start, start + events["dur_ns"].to_numpy(np.int64))
    inside = covered(begin, begin + length, reading)
    return float(np.median(inside)) if inside.sum() >= 0.02 * length.sum() else 0.0
