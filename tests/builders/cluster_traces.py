"""Traces of a cluster's workers, made of step stats as a server of TensorFlow's writes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace as Obj

from workbench.core.capture.partition_edges import partition_edges
from workbench.core.capture.step_stats import stats_columns
from workbench.core.cluster.aligned_ops import AlignedOps, align_ops
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import STEP_STATS, TraceMeta
from workbench.core.trace.trace import Trace

US, MS = 1_000, 1_000_000
BEGIN_NS = 1_700_000_000_000_000_000
PS = "/job:ps/replica:0/task:0/device:CPU:0"
# A step without the time that it computes, which `worker_trace` chooses.
STEP_NS = 4 * MS


def worker(index: int) -> str:
    return f"/job:worker/replica:0/task:{index}/device:CPU:0"


def op_stats(name: str, op: str, start_ns: int, end_ns: int, ready_ns: int | None = None) -> Obj:
    return Obj(
        node_name=name,
        timeline_label=f"{name} = {op}(x)",
        all_start_micros=start_ns // US,
        all_start_nanos=start_ns,
        op_end_rel_nanos=end_ns - start_ns,
        # The executor's end comes after the kernel's.
        all_end_rel_nanos=end_ns - start_ns + 2 * US,
        scheduled_nanos=start_ns if ready_ns is None else ready_ns,
        scheduled_micros=0,
        thread_id=0,
        output=[],
    )


def recv_stats(tensor: str, source: str, target: str, size: int, start_ns: int, end_ns: int) -> Obj:
    label = f"[{size}B] [8.5Mb/s] edge_12_{tensor} from {source} to {target}"
    described = Obj(allocation_description=Obj(requested_bytes=size))
    return Obj(
        node_name="RecvTensor",
        timeline_label=label,
        all_start_micros=start_ns // US,
        all_start_nanos=0,
        op_end_rel_micros=end_ns // US - start_ns // US,
        all_end_rel_micros=end_ns // US - start_ns // US,
        output=[Obj(tensor_description=described)],
    )


def step_metadata(index: int, begin_ns: int, skew_ns: int, compute_ns: int = 2 * MS) -> Obj:
    """RunMetadata of a step of a lookup on a ps whose clock is ahead by `skew_ns`.

    From `begin_ns` on: the worker makes ids unique until 1 ms; the ps has them at 1.2 ms, gathers
    from 1.3 to 1.5 ms; the worker has the rows at 1.7 ms, computes from 1.8 ms on; 0.2 ms later the
    ps has the gradient, and applies it from 0.3 to 0.5 ms after the end of the computing.
    """
    own = worker(index)

    def at(ms: float, skew: int = 0) -> int:
        return begin_ns + int(ms * MS) + skew

    done = at(1.8) + compute_ns
    here = [
        op_stats("C1/embedding_lookup_sparse/Unique", "Unique", at(0), at(1)),
        op_stats("dense/MatMul", "MatMul", at(1.8), done, at(1.75)),
    ]
    there = [
        op_stats(
            "C1/embedding_lookup_sparse/Gather", "GatherV2", at(1.3, skew_ns), at(1.5, skew_ns)
        ),
        op_stats(
            "Adagrad/update",
            "SparseApplyAdagrad",
            done + 300 * US + skew_ns,
            done + 500 * US + skew_ns,
        ),
    ]
    received = [
        recv_stats(
            "C1/embedding_lookup_sparse/Unique", own, PS, 800, at(1.1, skew_ns), at(1.2, skew_ns)
        ),
        recv_stats("dense/MatMul", own, PS, 6400, done + skew_ns, done + 200 * US + skew_ns),
    ]
    rows = recv_stats("C1/embedding_lookup_sparse/Gather", PS, own, 6400, at(1.5), at(1.7))
    return Obj(
        step_stats=Obj(
            dev_stats=[
                Obj(device=own, node_stats=[rows]),
                Obj(device=PS, node_stats=received),
                Obj(device=own, node_stats=here),
                Obj(device=PS, node_stats=there),
            ]
        )
    )


def graph_node(name: str, op: str, device: str, inputs: Sequence[str] = (), key: str = "") -> Obj:
    """A node of a partition graph; `key` is the tensor's, sender's and receiver's of a Send."""
    parts = dict(zip(("tensor_name", "send_device", "recv_device"), key.split(";"), strict=False))
    attr = {part: Obj(s=text.encode()) for part, text in parts.items()}
    return Obj(name=name, op=op, device=device, input=list(inputs), attr=attr)


def partition_graphs(index: int = 0) -> list[Obj]:
    """What worker and ps run in a step of `step_metadata`, as TensorFlow cuts it."""
    own = worker(index)
    ids, rows = "C1/embedding_lookup_sparse/Unique", "C1/embedding_lookup_sparse/Gather"
    ids_key, rows_key = f"edge_3_{ids};{own};{PS}", f"edge_5_{rows};{PS};{own}"
    dense_key = f"edge_7_dense/MatMul;{own};{PS}"
    here = [
        graph_node(ids, "Unique", own),
        graph_node(f"{ids}_S1", "_Send", own, [f"{ids}:1"], ids_key),
        graph_node(f"{rows}_S4", "_Recv", own, (), rows_key),
        graph_node("dense/MatMul", "MatMul", own, [f"{rows}_S4"]),
        graph_node("dense/MatMul_S5", "_Send", own, ["dense/MatMul"], dense_key),
    ]
    there = [
        graph_node(f"{ids}_S2", "_Recv", PS, (), ids_key),
        graph_node(rows, "GatherV2", PS, [f"{ids}_S2"]),
        graph_node(f"{rows}_S3", "_Send", PS, [rows], rows_key),
        graph_node("dense/MatMul_S6", "_Recv", PS, (), dense_key),
        graph_node("Adagrad/update", "SparseApplyAdagrad", PS, ["dense/MatMul_S6", f"^{rows}"]),
    ]
    return [Obj(node=here), Obj(node=there)]


def worker_trace(
    index: int = 0,
    *,
    with_edges: bool = False,
    skew_ns: int = 50 * MS,
    clock_ns: int = 0,
    compute_ns: Sequence[int] = (2 * MS, 2 * MS),
    numbers: Sequence[int] | None = None,
) -> Trace:
    """The trace of a worker.

    Args:
      index: of the worker.
      with_edges: whether it knows which op fed which.
      skew_ns: how far the clock of the ps is ahead of the worker's.
      clock_ns: how far the worker's own clock is ahead of the truth.
      compute_ns: of each step, how long it computes.
      numbers: of the steps; None counts from 1.
    """
    numbers = list(numbers or range(1, len(compute_ns) + 1))
    steps, begin = [], BEGIN_NS + clock_ns
    for number, length in zip(numbers, compute_ns, strict=True):
        end = begin + int(2.8 * MS) + length
        metadata = step_metadata(index, begin + 100 * US, skew_ns, length)
        steps.append(
            StepRecord(number=number, client=1, start_ns=begin, end_ns=end, metadata=metadata)
        )
        begin = end + 200 * US
    aligned = aligned_steps(steps)
    meta = TraceMeta(
        title=f"worker {index}",
        source=STEP_STATS,
        task=aligned.task,
        clock_offset_ns={task: clock.offset_ns for task, clock in aligned.clocks.items()},
        clock_error_ns={task: clock.error_ns for task, clock in aligned.clocks.items()},
    )
    ops = aligned.ops
    if with_edges:
        edges = partition_edges(partition_graphs(index), ops.nodes)
        ops = dataclasses.replace(ops, edges=edges)
    return build_trace(steps, [], {}, meta, ops)


def aligned_steps(steps: Sequence[StepRecord]) -> AlignedOps:
    return align_ops(stats_columns([step.metadata for step in steps]))
