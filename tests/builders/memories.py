"""Traces whose live bytes are counted by hand, in ns and bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pandas as pd

from tests.builders.traces import make_trace
from workbench.core.trace.trace import Trace

TRACKS = (
    ("Main step", "step", 0, ""),
    ("Prefetch 0", "prefetch", 0, "in"),
    ("Inter-op 0", "inter_op", 0, ""),
)
# name, type, begin, end, bytes made and passed on
Op = tuple[str, str, int, int, int, int]


def of_ops(
    ops: Sequence[Op],
    edges: Sequence[tuple[str, str]],
    *,
    until: int,
    control: Sequence[tuple[str, str]] = (),
    steps: int = 1,
    **meta,
) -> Trace:
    """Steps of `until` ns, one right after the other, each with these ops on one thread."""
    row = {name: i for i, (name, *_) in enumerate(ops)}
    events, size = [], {}
    for step in range(steps):
        for name, _, begin, end, made, passed in ops:
            at = step * until + begin
            events.append((at, end - begin, 0, row[name], 2, step + 1))
            size[at, row[name]] = made, passed
    trace = make_trace(
        events,
        nodes=[(name, op) for name, op, *_ in ops],
        tracks=TRACKS,
        runs=[(0, step + 1, step * until, (step + 1) * until) for step in range(steps)],
        edges=[(row[a], row[b], 0) for a, b in edges] + [(row[a], row[b], 1) for a, b in control],
        **meta,
    )
    return sized(trace, size)


def sized(trace: Trace, size: dict[tuple[int, int], tuple[int, int]]) -> Trace:
    """A trace with bytes made and passed on, by begin and node of an event."""
    events = trace.events
    keys = zip(events["start_ns"].tolist(), events["node"].tolist(), strict=True)
    found = pd.DataFrame([size[key] for key in keys], columns=["made_bytes", "passed_bytes"])
    return dataclasses.replace(trace, events=events.assign(**found))


def chain_trace(**named) -> Trace:
    """A step of 100 ns with a peak of 170 bytes.

    a makes 100 bytes in 10–20, which b reads in 20–40 and c in 60–70. b makes 50 bytes, and d, at
    40–60, passes them on to c. c makes 20 bytes that no op reads.
    """
    return of_ops(
        (
            ("in/a", "ReadFile", 10, 20, 100, 0),
            ("net/b", "MatMul", 20, 40, 50, 0),
            ("net/d", "Reshape", 40, 60, 0, 50),
            ("net/c", "MatMul", 60, 70, 20, 0),
        ),
        [("in/a", "net/b"), ("in/a", "net/c"), ("net/b", "net/d"), ("net/d", "net/c")],
        until=100,
        **named,
    )


def staged_trace() -> Trace:
    """A stage run at 0–40 makes 64 bytes in 0–30 and puts them at 30–40; a step takes them.

    The step of 50–100 waits until 60 and reads them until 80; it makes 10 bytes in 70–80.
    """
    trace = make_trace(
        [(0, 30, 0, 0, 1, 1), (70, 10, 0, 3, 2, 1)],
        nodes=[
            ("in/a", "ReadFile"),
            ("in/put", "WorkbenchBufferPut"),
            ("in/take", "WorkbenchBufferTake"),
            ("net/b", "MatMul"),
        ],
        tracks=TRACKS,
        runs=[(0, 1, 50, 100), (1, 1, 0, 40)],
        items=[("in", 0, 30, 40, 50, 60, 1, 1, 1, 0)],
        edges=[(0, 1, 0), (2, 3, 0)],
    )
    trace = dataclasses.replace(trace, items=trace.items.assign(bytes=64))
    return sized(trace, {(0, 0): (64, 0), (70, 3): (10, 0)})
