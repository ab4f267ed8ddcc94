"""Traces of equal steps, laid out op by op in µs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tests.builders.traces import START_NS, make_trace
from workbench.core.trace.trace import Trace

US = 1_000

# name, type, thread, when it was ready, began and ended, in µs after the begin of its step
Op = tuple[str, str, int, int, int, int]


def step_trace(
    ops: Sequence[Op],
    edges: Sequence[tuple[str, str]] = (),
    *,
    step_us: int,
    steps: int = 2,
    pause_us: int = 0,
    late_us: Mapping[int, int] | None = None,
    also: Sequence[tuple[str, str]] = (),
    **meta: Any,
) -> Trace:
    """Steps without a stage.

    Args:
      ops: of each step.
      edges: names of nodes, the one that feeds first; with "^" before it, it only comes first.
      step_us: from the call of a step to its return.
      pause_us: from there to the call of the next.
      late_us: by how much the ops of some steps begin later, by number of the step from 0.
      also: name and type of nodes that edges speak of and that take no time, such as variables.
      meta: fields of `TraceMeta`; 2 cores unless they say otherwise.
    """
    nodes = dict.fromkeys([*((name, op) for name, op, *_ in ops), *also])
    row = {name: i for i, (name, _) in enumerate(nodes)}
    lanes = max((lane for _, _, lane, *_ in ops), default=0) + 1
    events, runs = [], []
    called = START_NS
    for step in range(steps):
        at = called + (late_us or {}).get(step, 0) * US
        runs.append((0, step + 1, called, at + step_us * US))
        called = at + (step_us + pause_us) * US
        events += [
            (
                at + begin * US,
                (end - begin) * US,
                (begin - ready) * US,
                row[name],
                1 + lane,
                step + 1,
            )
            for name, _, lane, ready, begin, end in ops
        ]
        events += [(at, 0, 0, row[name], 1, step + 1) for name, _ in also]
    return make_trace(
        events,
        nodes=list(nodes),
        tracks=[
            ("Main step", "step", 0, ""),
            *((f"Inter-op {i}", "inter_op", i, "") for i in range(lanes)),
        ],
        runs=runs,
        edges=[(row[a.removeprefix("^")], row[b], int(a.startswith("^"))) for a, b in edges],
        **({"cores": 2} | meta),
    )


def chain(*names: str) -> list[tuple[str, str]]:
    """Edges from each of these nodes to the next."""
    return list(itertools.pairwise(names))


def waiting_steps(
    *,
    threads: int = 1,
    steps: int = 6,
    reads: str = "IteratorGetNext",
    reads_us: int = 90,
    computes: str = "MatMul",
    ahead: int = 0,
    **meta: Any,
) -> Trace:
    """Steps of 60 µs that wait 40 µs each for an item, which takes one thread 100 µs to make.

    The stage's op has `reads_us` of these, then its put is called. With several threads they take
    turns, and each item takes as many times as long.

    Args:
      threads: of the stage.
      steps: how many.
      reads, computes: types of the op of the stage, and of that of the step.
      ahead: items that are put before they are asked for; with one, no step waits.
      meta: fields of `TraceMeta`.
    """
    nodes = [
        ("input/next", reads),
        ("stage/take", "WorkbenchBufferTake"),
        ("dense/MatMul", computes),
    ]
    tracks = [
        ("Main step", "step", 0, ""),
        *((f"Prefetch {i}", "prefetch", i, "stage") for i in range(threads)),
        ("Inter-op 0", "inter_op", 0, ""),
    ]
    events, runs, items = [], [], []
    for step in range(steps + ahead):
        begin = START_NS + step * 100 * US
        put = begin + (40 - 100 * ahead) * US
        took = max(put, begin)
        made = put - threads * 100 * US
        of, number = 1 + step % threads, step // threads + 1
        runs.append((of, number, made, put))
        events.append((made, threads * reads_us * US, 0, 0, of, number))
        taken = (begin, took) if step < steps else (-1, -1)
        by = (step + 1, 0) if step < steps else (-1, -1)
        items.append(("stage", step, put - US, put, *taken, of, number, *by))
        if step < steps:
            runs.append((0, step + 1, begin, begin + 100 * US))
            events.append((took, begin + 100 * US - took, 0, 2, 1 + threads, step + 1))
    return make_trace(
        events,
        nodes=nodes,
        tracks=tracks,
        runs=runs,
        items=items,
        edges=[(1, 2, 0)],
        **({"cores": 2, "capacity": {"stage": 1}, "occupancy_at_start": {"stage": 0}} | meta),
    )
