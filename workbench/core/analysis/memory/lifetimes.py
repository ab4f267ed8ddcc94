"""From when to when the memory lives that an op makes: to the last op that may read it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.path.executed_graph import ExecutedGraph, executed_graph
from workbench.core.graph.op_types import STAGE_PUT, STAGE_TAKE
from workbench.core.trace.trace import Trace

# What it takes out of a list, some other op has made.
_TAKES_OUT = "TensorListPopBack"
# Their output is a list that keeps the tensor of an input, or comes out of such a list.
_KEEPS_INPUTS = frozenset(
    {
        *("TensorListConcatLists", "TensorListFromTensor", "TensorListPushBack", _TAKES_OUT),
        *("TensorListPushBackBatch", "TensorListSetItem"),
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Lifetimes:
    """The memory that ops of a trace made, one entry each; what a step took from a buffer, too.

    Attributes:
      node: int64, row of `trace.nodes`.
      bytes: int64, above 0.
      begin_ns, end_ns: int64; from the begin of the op to the end of the last that may read it.
    """

    node: np.ndarray
    bytes: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray


def lifetimes(trace: Trace) -> Lifetimes:
    """When the memory that ops made came and went.

    It lives until the last op has ended that reads it. Where an op passes memory of an input on,
    it lives as long as what that op gives; in a list of tensors, as long as the list. At the end of
    its run it is gone.

    Args:
      trace: with edges.
    """
    data = trace.edges[trace.edges["control"] == 0]
    graph = executed_graph(dataclasses.replace(trace, events=_with_buffers(trace), edges=data))
    events = graph.trace.events
    made_bytes = events["made_bytes"].to_numpy(np.int64)
    passed_bytes = events["passed_bytes"].to_numpy(np.int64)
    takes_out = (trace.nodes["op"] == _TAKES_OUT).to_numpy(bool)
    made_bytes = np.where(takes_out[graph.nodes], 0, made_bytes)
    producer, consumer = graph.dependencies
    until = graph.end_ns.copy()
    np.maximum.at(until, producer, graph.end_ns[consumer])
    _extend(
        until, *_handed_on(graph, made_bytes + passed_bytes, passed_bytes, until), graph.start_ns
    )
    ends = trace.runs["end_ns"].to_numpy(np.int64)
    if len(ends):
        in_run = graph.run >= 0
        until[in_run] = np.minimum(until, ends[np.maximum(graph.run, 0)])[in_run]
    until = np.maximum(until, graph.end_ns)
    makers = np.flatnonzero(made_bytes > 0)
    return Lifetimes(
        node=graph.nodes[makers],
        bytes=made_bytes[makers],
        begin_ns=graph.start_ns[makers],
        end_ns=until[makers],
    )


def item_bytes(trace: Trace) -> np.ndarray:
    """Bytes of each item, int64; of one that was not seen being taken, the mean of its stage."""
    items = trace.items
    size = items["bytes"].astype(float).where(items["bytes"] > 0)
    mean = size.groupby(items["stage"]).transform("mean").fillna(0)
    return size.fillna(mean).round().to_numpy(np.int64)


def _with_buffers(trace: Trace) -> pd.DataFrame:
    """The events, and the puts and takes of items, which are none, as if they were ops."""
    nodes, tracks = trace.nodes, trace.tracks
    items = trace.items.assign(bytes=item_bytes(trace))
    lanes = np.flatnonzero((tracks["kind"] == "inter_op").to_numpy(bool))
    rows = []
    for op, call in ((STAGE_PUT, "put"), (STAGE_TAKE, "take")):
        for node in np.flatnonzero((nodes["op"] == op).to_numpy(bool)).tolist():
            stage = items["stage"].map(nodes["name"].iloc[node].startswith)
            known = items[stage.to_numpy(bool) & (items[f"{call}_track"] >= 0).to_numpy(bool)]
            if not len(known) or (op == STAGE_TAKE and not len(lanes)):
                continue
            end = known[f"{call}_end_ns"].to_numpy(np.int64)
            start = end if op == STAGE_TAKE else known[f"{call}_start_ns"].to_numpy(np.int64)
            rows.append(
                pd.DataFrame(
                    {
                        "start_ns": start,
                        "dur_ns": end - start,
                        "delay_ns": 0,
                        "node": node,
                        "track": lanes[0] if op == STAGE_TAKE else known["put_track"],
                        "step": known["take_step" if op == STAGE_TAKE else "put_run"],
                        "made_bytes": known["bytes"] if op == STAGE_TAKE else 0,
                        "passed_bytes": 0,
                    }
                )
            )
    if not rows:
        return trace.events
    joined = pd.concat([trace.events, *rows], ignore_index=True)
    return joined.sort_values("start_ns", kind="stable", ignore_index=True)


def _handed_on(
    graph: ExecutedGraph, gives: np.ndarray, passed: np.ndarray, until: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(producer, consumer) where the consumer hands memory of the producer on.

    The tracer tells how much it was, not of which input. Where inputs have as many bytes as were
    passed on, it was one of them: one that no other op reads later. Else it may be of any.
    """
    producer, consumer = graph.dependencies
    keeps = np.isin(graph.trace.nodes["op"].to_numpy(object), list(_KEEPS_INPUTS))
    keeps_input = keeps[graph.nodes[consumer]]
    may = np.flatnonzero((passed[consumer] > 0) & (gives[producer] > 0) & ~keeps_input)
    of, by = producer[may], consumer[may]
    exact = gives[of] == passed[by]
    last = until[of] == graph.end_ns[by]
    order = np.lexsort((of, ~last, ~exact, by))
    first = np.ones(len(order), bool)
    first[1:] = by[order][1:] != by[order][:-1]
    has_exact = np.zeros(len(graph.nodes), bool)
    has_exact[by[exact]] = True
    chosen = order[first | ~has_exact[by[order]]]
    kept = np.flatnonzero(keeps_input)
    return (
        np.concatenate((of[chosen], producer[kept])),
        np.concatenate((by[chosen], consumer[kept])),
    )


def _extend(
    until: np.ndarray, producer: np.ndarray, consumer: np.ndarray, start_ns: np.ndarray
) -> None:
    """What is handed on lives as long as what it was handed to; changes `until`."""
    order = np.argsort(-start_ns[consumer], kind="stable")
    ends = until.tolist()
    for of, by in zip(producer[order].tolist(), consumer[order].tolist(), strict=True):
        if ends[by] > ends[of]:
            ends[of] = ends[by]
    until[:] = ends
