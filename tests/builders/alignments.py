"""Two traces of one model, solved by hand: without a stage and with one that reads ahead."""

from __future__ import annotations

from typing import Any

from tests.builders.traces import MS, START_NS, make_trace
from workbench.core.trace.trace import Trace

READ, DENSE = ("read", "ReaderReadV2"), ("dense", "MatMul")


def unstaged(steps: int = 2, at: int = START_NS, **meta: Any) -> Trace:
    """Each step of 10 ms reads for 4 and computes for 5; its return takes 1."""
    events, runs = [], []
    for step in range(steps):
        begin = at + step * 10 * MS
        runs.append((0, step, begin, begin + 10 * MS))
        events.append((begin, 4 * MS, 0, 0, 1, step))
        events.append((begin + 4 * MS, 5 * MS, 0, 1, 1, step))
    tracks = (("Main step", "step", 0, ""), ("Inter-op 0", "inter_op", 0, ""))
    known = {"title": "off", "cores": 2, "tensorflow": "2.21.0", "source": "executor"} | meta
    return make_trace(
        events, nodes=(READ, DENSE), tracks=tracks, runs=runs, edges=[(0, 1, 0)], **known
    )


def staged(steps: int = 3, at: int = START_NS, **meta: Any) -> Trace:
    """Each step of 6 ms takes an item that is there and computes for 5; the stage reads for 4."""
    nodes = (("ahead/read", "ReaderReadV2"), DENSE, ("ahead/take", "WorkbenchBufferTake"))
    events, runs, items = [], [], []
    for step in range(steps):
        begin = at + step * 6 * MS
        runs += [(0, step, begin, begin + 6 * MS), (1, step, begin, begin + 4 * MS)]
        events += [(begin, 4 * MS, 0, 0, 1, step), (begin, 5 * MS, 0, 1, 2, step)]
        items.append(("ahead", step, -1, begin - 1, begin, begin, -1, -1, step, 0))
    tracks = (
        ("Main step", "step", 0, ""),
        ("Prefetch 0", "prefetch", 0, "ahead"),
        ("Inter-op 0", "inter_op", 0, ""),
    )
    known = {"title": "stage", "cores": 2, "tensorflow": "2.21.0", "source": "executor"} | meta
    return make_trace(
        events, nodes=nodes, tracks=tracks, runs=runs, items=items, edges=[(2, 1, 0)], **known
    )
