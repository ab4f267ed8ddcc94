"""A trace as a staged DLRM step would leave it, made without TensorFlow, for drawing and timing.

Ops of a step are scheduled onto the inter-op threads from a small graph of a recommender; prefetch
threads read, decode and hash ahead of it through a bounded buffer. Everything follows a seed.
"""

from __future__ import annotations

import dataclasses
import heapq
import random

import numpy as np
import pandas as pd

from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.tables import column_names
from workbench.core.trace.trace import Trace

ORIGIN_NS = 1_790_000_000_000_000_000
US = 1_000


@dataclasses.dataclass(frozen=True)
class Op:
    """One node: name, type, mean duration in µs, and the ops it waits for."""

    name: str
    kind: str
    mean: float
    after: tuple[int, ...] = ()


def compute_graph(tables: int = 26) -> list[Op]:
    """Lookups, dense layers, gradients and updates of one step."""
    ops: list[Op] = []

    def add(name: str, kind: str, mean: float, *after: int) -> int:
        ops.append(Op(name, kind, mean, after))
        return len(ops) - 1

    looked = []
    for k in range(1, tables + 1):
        scope, large = f"embedding_C{k}", k % 4 == 3
        shape = add(f"{scope}/Shape", "Shape", 6)
        cut = add(f"{scope}/strided_slice", "StridedSlice", 7, shape)
        gather = add(f"{scope}/GatherV2", "GatherV2", 170 if large else 60)
        mean = add(f"{scope}/SparseSegmentMean", "SparseSegmentMean", 90, gather, cut)
        looked.append(add(f"{scope}/Reshape", "Reshape", 6, mean))
    copied = add("C3/CopyOnRead", "_Copy", 2400)
    bottom = -1
    for layer, cost in enumerate((150, 430, 70)):
        bottom = add(f"bottom_{layer}/MatMul", "MatMul", cost, *([bottom] if layer else []))
        bottom = add(f"bottom_{layer}/BiasAdd", "BiasAdd", 18, bottom)
        bottom = add(f"bottom_{layer}/Relu", "Relu", 16, bottom)
    top = add("interact/concat", "ConcatV2", 95, bottom, copied, *looked)
    top = add("interact/BatchMatMul", "BatchMatMulV2", 310, top)
    for layer, cost in enumerate((540, 440, 40)):
        top = add(f"top_{layer}/MatMul", "MatMul", cost, top)
        top = add(f"top_{layer}/Relu", "Relu", 16, top)
    loss = add("loss/SigmoidXent", "SigmoidCrossEntropyWithLogits", 60, top)
    grad = add("gradients/loss/grad", "Mul", 25, loss)
    for layer, cost in ((2, 40), (1, 450), (0, 560)):
        own = add(f"gradients/top_{layer}/MatMul_grad/MatMul_1", "MatMul", cost, grad)
        add(f"train/update_top_{layer}", "ResourceApplyAdagradV2", 46, own)
        grad = add(f"gradients/top_{layer}/MatMul_grad/MatMul", "MatMul", cost, grad)
    spread = add("gradients/interact/concat_grad/Slice", "Slice", 110, grad)
    for k in range(1, tables + 1):
        scope = f"gradients/embedding_C{k}"
        one = add(f"{scope}/SparseSegmentMeanGrad", "SparseSegmentMeanGrad", 80, spread)
        one = add(f"{scope}/Unique", "Unique", 28, one)
        one = add(f"{scope}/UnsortedSegmentSum", "UnsortedSegmentSum", 60, one)
        add(f"train/update_C{k}", "ResourceSparseApplyAdagradV2", 90, one)
    add("train/global_step", "AssignAddVariableOp", 8, *range(len(ops)))
    return ops


def stage_graph(tables: int = 26) -> list[Op]:
    """Reading, decoding and hashing of one batch."""
    ops = [Op("ReadLines", "ReaderReadUpToV2", 8800), Op("DecodeCSV", "DecodeCSV", 1250, (0,))]
    for k in range(1, tables + 1):
        ops.append(Op(f"hash_C{k}/Hash", "StringToHashBucketFast", 26, (1,)))
        ops.append(Op(f"hash_C{k}/Unique", "Unique", 14, (len(ops) - 1,)))
    return ops


def schedule(ops: list[Op], threads: int, rng: random.Random) -> np.ndarray:
    """Rows of (op, thread, start, duration, delay) in ns from 0, on that many threads."""
    pending = [len(op.after) for op in ops]
    followers: list[list[int]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for j in op.after:
            followers[j].append(i)
    ready = [(0, i) for i, n in enumerate(pending) if n == 0]
    heapq.heapify(ready)
    free = [(0, t) for t in range(threads)]
    ended = [0] * len(ops)
    rows = []
    while ready:
        since, i = heapq.heappop(ready)
        at, thread = heapq.heappop(free)
        start = max(since, at) + int(3 * US * (0.6 + 0.8 * rng.random()))
        length = max(900, int(ops[i].mean * US * (0.9 + 0.2 * rng.random())))
        ended[i] = start + length
        heapq.heappush(free, (ended[i], thread))
        rows.append((i, thread, start, length, start - since))
        for j in followers[i]:
            pending[j] -= 1
            if not pending[j]:
                heapq.heappush(ready, (max(ended[k] for k in ops[j].after), j))
    return np.array(rows, np.int64)


def dlrm_trace(
    steps: int = 32,
    *,
    threads: int = 4,
    producers: int = 2,
    capacity: int = 2,
    seed: int = 7,
    first_name: str = "",
) -> Trace:
    """A trace of that many steps; `producers=0` leaves the stage out.

    Args:
      steps: main steps; one makes about 450 events.
      threads: inter-op threads. producers: prefetch threads. capacity: of the buffer.
      seed: of every duration.
      first_name: replaces the name of the first node, for tests of odd names.
    """
    rng = random.Random(seed)
    compute, stage = compute_graph(), stage_graph()
    plans = [schedule(compute, threads, rng) for _ in range(5)]
    stage_plans = [schedule(stage, 2, rng) for _ in range(5)]
    made: list[np.ndarray] = []
    runs, items = [], []
    step_track, first_prefetch, first_thread = 0, 1, 1 + producers
    ready = [i * 2600 * US for i in range(producers)]
    run_of = [0] * producers
    buffered: list[tuple[int, int]] = []
    free = last_take = number = 0

    def produce(p: int) -> None:
        nonlocal number
        plan = stage_plans[number % 5].copy()
        slow = int(9_000 * US * rng.random() * (4 if rng.random() < 0.08 else 1))
        plan[:, 2] += ready[p] + np.where(plan[:, 0] > 0, slow, 0)
        plan[plan[:, 0] == 0, 3] += slow
        end = int((plan[:, 2] + plan[:, 3]).max())
        plan[:, 0] += len(compute)
        made.append(np.column_stack((plan, np.full(len(plan), run_of[p]))))
        made[-1][:, 1] = first_prefetch + p
        runs.append((first_prefetch + p, run_of[p], ready[p], end))
        put = max(end, last_take) if len(buffered) >= capacity else end
        items.append([number, end, put + 12 * US, -1, -1, first_prefetch + p, run_of[p], -1])
        buffered.append((put + 12 * US, number))
        ready[p], run_of[p] = put + 14 * US, run_of[p] + 1
        number += 1

    for step in range(steps):
        begin = at = free
        while producers and (not buffered or (len(buffered) < capacity and min(ready) < free)):
            produce(ready.index(min(ready)))
        if producers:
            when, item = buffered.pop(0)
            at = last_take = max(at, when)
            items[item][3:5] = [begin + 6 * US, max(begin + 8 * US, at)]
            items[item][7] = step
        plan = plans[step % 5].copy()
        plan[:, 1] += first_thread
        plan[:, 2] += at + 8 * US
        made.append(np.column_stack((plan, np.full(len(plan), step))))
        free = int((plan[:, 2] + plan[:, 3]).max()) + 55 * US
        runs.append((step_track, step, begin, free - 30 * US))
    return _trace(compute + stage, made, runs, items, threads, producers, capacity, first_name)


def _trace(ops, made, runs, items, threads, producers, capacity, first_name) -> Trace:  # type: ignore[no-untyped-def]
    table = np.concatenate(made)
    table = table[np.argsort(table[:, 2], kind="stable")]
    events = pd.DataFrame(
        {
            "start_ns": table[:, 2] + ORIGIN_NS,
            "dur_ns": table[:, 3].astype(np.uint32),
            "delay_ns": table[:, 4].astype(np.uint32),
            "node": table[:, 0].astype(np.uint16),
            "track": table[:, 1].astype(np.uint8),
            "step": table[:, 5].astype(np.int32),
        }
    )
    names = [op.name for op in ops]
    if first_name:
        names[0] = first_name
    nodes = pd.DataFrame(
        {"name": names, "op": [op.kind for op in ops], "device": ["/cpu:0"] * len(ops)}
    )
    tracks = pd.DataFrame(
        [("Main step", "step", 0, "")]
        + [(f"Prefetch {i}", "prefetch", i, "prefetch") for i in range(producers)]
        + [(f"Inter-op {i}", "inter_op", i, "") for i in range(threads)],
        columns=["name", "kind", "index", "stage"],
    )
    shift = lambda t: t + ORIGIN_NS if t >= 0 else -1  # noqa: E731
    return Trace(
        events=events,
        nodes=nodes,
        tracks=tracks,
        runs=pd.DataFrame(
            [(track, number, a + ORIGIN_NS, b + ORIGIN_NS) for track, number, a, b in runs],
            columns=column_names("runs"),
        ).sort_values("start_ns", kind="stable", ignore_index=True),
        items=pd.DataFrame(
            [
                ("prefetch", n, *map(shift, times), track, run, step, min(step, 0))
                for n, *times, track, run, step in items
            ],
            columns=column_names("items"),
        ),
        meta=TraceMeta(
            title="DLRM, staged" if producers else "DLRM",
            capacity={"prefetch": capacity} if producers else {},
            cores=4,
            source="synthetic",
        ),
    )
