"""Traces with edges whose critical path is solved by hand, in whole ms."""

from __future__ import annotations

import dataclasses

from tests.builders.traces import MS, START_NS, make_trace
from workbench.core.trace.trace import Trace

STEP, POOL, PREFETCH, OTHER_POOL = range(4)
TRACKS = (
    ("Main step", "step", 0, ""),
    ("Inter-op 0", "inter_op", 0, ""),
    ("Prefetch 0", "prefetch", 0, "in"),
    ("Inter-op 1", "inter_op", 1, ""),
)
READ, KEEP, LOOKUP, JOIN, PUT = range(5)
NODES = (
    ("read", "ReaderReadV2"),
    ("a/keep", "Identity"),
    ("a/lookup", "ResourceGather"),
    ("top/join", "MatMul"),
    ("in/put", "WorkbenchBufferPut"),
)
SOURCES = ("/home/me/train.py:7 lines", "", "/home/me/train.py:9 model", "", "")


def three_steps(title: str = "By hand") -> Trace:
    """Steps of 100, 100 and 130 ms: read, an Identity, then lookup beside join, which waits.

    On the chain of each: call 4, read 20 (50 in the last), keep 1, join waits 5 for a thread and
    takes 60, return 10. The lookup, 10 ms, may slip by 55.
    """
    events, runs = [], []
    at = START_NS
    for step, reads in ((1, 20), (2, 20), (3, 50)):
        after = at + (4 + reads) * MS
        runs.append((STEP, step, at, after + 76 * MS))
        events += [
            (at + 4 * MS, reads * MS, 0, READ, POOL, step),
            (after, 1 * MS, 0, KEEP, POOL, step),
            (after + 1 * MS, 10 * MS, 0, LOOKUP, OTHER_POOL, step),
            (after + 6 * MS, 60 * MS, 5 * MS, JOIN, POOL, step),
        ]
        at = after + 76 * MS
    edges = ((READ, KEEP, 0), (KEEP, LOOKUP, 0), (KEEP, JOIN, 0))
    trace = make_trace(events, nodes=NODES, tracks=TRACKS, runs=runs, edges=edges, title=title)
    return dataclasses.replace(trace, nodes=trace.nodes.assign(source=SOURCES))


def waiting_step() -> Trace:
    """One step of 100 ms that waits for its item, which a stage run reads for 80."""
    nodes = (*NODES[:4], ("in/take", "WorkbenchBufferTake"))
    return make_trace(
        [
            (START_NS + 8 * MS, 80 * MS, 0, READ, PREFETCH, 1),
            (START_NS + 93 * MS, 5 * MS, 0, JOIN, POOL, 1),
        ],
        nodes=nodes,
        tracks=TRACKS,
        runs=[
            (STEP, 1, START_NS, START_NS + 100 * MS),
            (PREFETCH, 1, START_NS + 6 * MS, START_NS + 92 * MS),
        ],
        items=[
            ("in", 0, START_NS + 88 * MS, START_NS + 90 * MS, START_NS + 1 * MS,
             START_NS + 93 * MS, PREFETCH, 1, 1, STEP)
        ],
        edges=((4, JOIN, 0),),
    )  # fmt: skip
