"""Small literal traces, and a large one that looks like a recommender's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.tables import column_names
from workbench.core.trace.trace import Trace

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000

EVENT_COLUMNS = column_names("events")
RUN_COLUMNS = column_names("runs")
ITEM_COLUMNS = column_names("items")
EDGE_COLUMNS = column_names("edges")

STAGE_NODES = (("input/ReadLines", "ReaderReadV2"), ("ids/hash", "StringToHashBucketFast"))
STEP_NODES = (
    ("embedding/lookup", "ResourceGather"),
    ("dense/MatMul", "MatMul"),
    ("gradients/dense/MatMul_grad", "MatMul"),
    ("train/ApplyAdagrad", "ResourceApplyAdagradV2"),
)


def make_trace(
    events: Sequence[tuple[int, ...]] = (),
    *,
    nodes: Sequence[tuple[str, str]] = (*STAGE_NODES, *STEP_NODES),
    tracks: Sequence[tuple[str, str, int, str]] = (
        ("Main step", "step", 0, ""),
        ("Prefetch 0", "prefetch", 0, "input"),
        ("Inter-op 0", "inter_op", 0, ""),
    ),
    runs: Sequence[tuple[int, ...]] = (),
    items: Sequence[tuple[object, ...]] = (),
    edges: Sequence[tuple[int, int, int]] = (),
    **meta: Any,
) -> Trace:
    """A trace out of plain rows, columns in the order of the constants above, and meta fields."""
    return Trace(
        events=pd.DataFrame(sorted(events), columns=EVENT_COLUMNS),
        nodes=pd.DataFrame([(*n, CPU) for n in nodes], columns=["name", "op", "device"]),
        tracks=pd.DataFrame(tracks, columns=["name", "kind", "index", "stage"]),
        runs=pd.DataFrame(runs, columns=RUN_COLUMNS),
        items=pd.DataFrame(items, columns=ITEM_COLUMNS),
        edges=pd.DataFrame(edges, columns=EDGE_COLUMNS),
        meta=TraceMeta(**meta),
    )


def unstaged_trace(
    steps: int = 4,
    *,
    origin_ns: int = START_NS,
    step_nodes: Sequence[tuple[str, str]] = STEP_NODES,
    title: str = "All off",
) -> Trace:
    """Each step of 10 ms reads for 4 ms, hashes for 1 ms, then computes for 5 ms on two threads."""
    nodes = (*STAGE_NODES, *step_nodes)
    events, runs = [], []
    for step in range(1, steps + 1):
        at = origin_ns + (step - 1) * 10 * MS
        runs.append((0, step, at, at + 10 * MS))
        events += [(at, 4 * MS, 0, 0, 1, step), (at + 4 * MS, 1 * MS, 2_000, 1, 2, step)]
        events += _compute(at + 5 * MS, step, 4 * MS, first_node=2, tracks=(1, 2))
    tracks = (
        ("Main step", "step", 0, ""),
        ("Inter-op 0", "inter_op", 0, ""),
        ("Inter-op 1", "inter_op", 1, ""),
    )
    notes = {"title": title, "tensorflow": "2.21.0", "cores": 2, "source": "executor"}
    return make_trace(events, nodes=nodes, tracks=tracks, runs=runs, **notes)


def staged_trace(
    steps: int = 4,
    *,
    origin_ns: int = START_NS,
    stage: str = "input",
    stage_nodes: Sequence[tuple[str, str]] = STAGE_NODES,
    step_nodes: Sequence[tuple[str, str]] = STEP_NODES,
    title: str = "Stage",
) -> Trace:
    """Prefetch 0 makes an item in 4.5 ms, capacity 1; a step computes for 5.9 ms.

    The first step waits 1 ms in take; from the second stage run on, the put waits for room.
    """
    nodes = (*stage_nodes, *step_nodes)
    events, runs, items = [], [], []
    produce_at, step_at, taken_at = origin_ns - 3_500_000, origin_ns, 0
    for item in range(steps + 1):
        number = item + 1
        called = produce_at + 4_500_000
        admitted = max(called + 20_000, taken_at)
        runs.append((1, number, produce_at, admitted + 50_000))
        events += [
            (produce_at, 3 * MS, 1_000, 0, 1, number),
            (produce_at + 3 * MS, 1_500_000, 0, 1, 1, number),
        ]
        put = (stage, item, called, admitted)
        produce_at = admitted + 100_000
        if item == steps:
            items.append((*put, -1, -1, 1, number, -1, -1))
            break
        taken_at = max(step_at + 10_000, admitted + 5_000)
        items.append((*put, step_at, taken_at, 1, number, number, 0))
        runs.append((0, number, step_at, taken_at + 5_900_000))
        events += _compute(taken_at, number, 4_800_000, first_node=len(stage_nodes), tracks=(2, 3))
        step_at = taken_at + 5_950_000
    tracks = (
        ("Main step", "step", 0, ""),
        ("Prefetch 0", "prefetch", 0, stage),
        ("Inter-op 0", "inter_op", 0, ""),
        ("Inter-op 1", "inter_op", 1, ""),
    )
    notes = {
        "title": title,
        "tensorflow": "2.21.0",
        "cores": 2,
        "source": "executor",
        "capacity": {stage: 1},
        "occupancy_at_start": {stage: 0},
    }
    return make_trace(events, nodes=nodes, tracks=tracks, runs=runs, items=items, **notes)


def _compute(
    at: int, step: int, length_ns: int, *, first_node: int, tracks: tuple[int, int]
) -> list[tuple[int, ...]]:
    """The four ops of the compute side in `length_ns` plus 1 ms: two side by side, then two."""
    half = length_ns // 2
    one, other = tracks
    return [
        (at, half, 1_500, first_node, one, step),
        (at, half - 500_000, 30_000, first_node + 1, other, step),
        (at + half, half, 900, first_node + 2, other, step),
        (at + 2 * half, 900_000, 5_000, first_node + 3, one, step),
    ]


def big_trace(n_events: int, *, ops_per_step: int = 454, seed: int = 7) -> Trace:
    """A staged trace of about `n_events` ops that packs and draws like a real one.

    Four inter-op threads run the ops of a step in jittered order, one prefetch thread runs ahead
    with a tenth of the ops; durations and delays are log-normal around each node's own.
    """
    random = np.random.default_rng(seed)
    ahead = ops_per_step // 10
    steps = -(-n_events // (ops_per_step + ahead))
    span = 10 * MS
    typical = random.lognormal(9.2, 1.2, ops_per_step + ahead)
    parts = []
    for first, count, tracks in ((0, ahead, 1), (ahead, ops_per_step, 4)):
        track = np.arange(count) % tracks + (1 if tracks == 1 else 2)
        size = (steps, count)
        work = typical[first : first + count] * random.lognormal(0, 0.15, size)
        delay = random.lognormal(7.5, 1.0, size)
        table = {"dur_ns": work, "delay_ns": delay, "start_ns": np.zeros(size)}
        for row in range(tracks):
            mine = np.flatnonzero(np.arange(count) % tracks == row)
            pace = work[:, mine] + np.minimum(delay[:, mine], 20_000)
            scale = np.minimum(1, 0.95 * span / pace.sum(axis=1, keepdims=True))
            table["dur_ns"][:, mine] = work[:, mine] * scale
            table["start_ns"][:, mine] = (np.cumsum(pace, axis=1) - pace) * scale
        parts.append(
            {
                **{name: values.astype(np.int64).ravel() for name, values in table.items()},
                "node": np.tile(np.arange(first, first + count), steps),
                "track": np.tile(track, steps),
                "step": np.repeat(np.arange(1, steps + 1), count),
            }
        )
    events = pd.DataFrame(
        {name: np.concatenate([p[name] for p in parts]) for name in EVENT_COLUMNS}
    )
    events["start_ns"] += START_NS + (events["step"] - 1) * span
    events = events.sort_values("start_ns", kind="stable", ignore_index=True).iloc[:n_events]
    number = np.arange(1, steps + 1)
    begin = START_NS + (number - 1) * span
    runs = [
        pd.DataFrame(
            {"track": track, "number": number, "start_ns": begin, "end_ns": begin + span - gap}
        )
        for track, gap in ((0, 50_000), (1, 20_000))
    ]
    return Trace(
        events=events,
        nodes=_many_nodes(ahead, ops_per_step),
        tracks=_many_tracks(4),
        runs=pd.concat(runs),
        items=_many_items(begin, span),
        meta=TraceMeta(
            title=f"{steps} steps",
            tensorflow="2.21.0",
            cores=4,
            source="executor",
            capacity={"input": 1},
            occupancy_at_start={"input": 1},
        ),
    )


def _many_nodes(ahead: int, ops_per_step: int) -> pd.DataFrame:
    kinds = [op for _, op in STEP_NODES]
    names = [f"input/stage_{i}/{STAGE_NODES[i % 2][1]}" for i in range(ahead)]
    ops = [STAGE_NODES[i % 2][1] for i in range(ahead)]
    for i in range(ops_per_step):
        scope = ("embedding", "top_mlp", "gradients/top_mlp", "train")[i * 4 // ops_per_step]
        op = kinds[i * 4 // ops_per_step] if i % 3 else ("Reshape", "Mul", "AddV2")[i % 9 // 3]
        names.append(f"{scope}/layer_{i}/{op}")
        ops.append(op)
    return pd.DataFrame({"name": names, "op": ops, "device": CPU})


def _many_tracks(threads: int) -> pd.DataFrame:
    rows = [("Main step", "step", 0, ""), ("Prefetch 0", "prefetch", 0, "input")]
    rows += [(f"Inter-op {i}", "inter_op", i, "") for i in range(threads)]
    return pd.DataFrame(rows, columns=["name", "kind", "index", "stage"])


def _many_items(begin: np.ndarray, span: int) -> pd.DataFrame:
    steps = len(begin)
    put = np.concatenate(([-1], begin[:-1] + int(0.97 * span)))
    table = pd.DataFrame({"stage": "input", "item": np.arange(steps)}, index=range(steps))
    table["put_start_ns"] = np.where(put < 0, -1, put - 150_000)
    table["put_end_ns"] = put
    table["take_start_ns"] = begin + 5_000
    table["take_end_ns"] = begin + 40_000
    table["put_track"] = np.where(put < 0, -1, 1)
    table["put_run"] = np.where(put < 0, -1, np.arange(steps))
    table["take_step"] = np.arange(1, steps + 1)
    table["take_track"] = 0
    return table


Timed = Sequence[tuple[str, str, float]]


def timed_trace(
    step: Timed | Sequence[Timed],
    ahead: Mapping[str, Timed] | None = None,
    *,
    steps: int = 12,
    threads: int = 1,
    **meta: Any,
) -> Trace:
    """Steps and items whose ops run one after the other.

    Args:
      step: (node, op, ms) of what each step runs, after 0.1 ms of the client's own; or that of one
        step after the other.
      ahead: the same of what each stage runs for an item, by name of the stage.
      steps: how many of each.
      threads: of each stage; they take turns.
      meta: fields of `TraceMeta`; 2 cores and capacity 1 unless they say otherwise.
    """
    stages = dict(ahead or {})
    each_step = [step] * steps if isinstance(step[0][0], str) else step
    sides = [
        (0, each_step),
        *((1 + i * threads, [s] * steps) for i, s in enumerate(stages.values())),
    ]
    rows = dict.fromkeys((n, op) for _, runs in sides for run in runs for n, op, _ in run)
    number = {node: row for row, node in enumerate(rows)}
    tracks = [("Main step", "step", 0, "")]
    for name in stages:
        tracks += [(f"Prefetch {i}", "prefetch", i, name) for i in range(threads)]
    tracks.append(("Inter-op 0", "inter_op", 0, ""))
    events: list[tuple[int, ...]] = []
    runs: list[tuple[int, ...]] = []
    for track, side in sides:
        at = START_NS
        for run, ops in enumerate(side):
            on = track + run % threads if track else len(tracks) - 1
            begun, at = at, at + (0 if track else MS // 10)
            for name, op, ms in ops:
                events.append((at, round(ms * MS), 0, number[name, op], on, run + 1))
                at += round(ms * MS)
            runs.append((on if track else 0, run + 1, begun, at))
    notes = {"cores": 2, "capacity": dict.fromkeys(stages, 1)} | meta
    return make_trace(events, nodes=list(rows), tracks=tracks, runs=runs, **notes)
