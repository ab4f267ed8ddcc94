"""merge_traces: what each worker of a cluster saw → one trace on one clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.core.cluster.clocks import require_order
from workbench.core.graph.tasks import is_ps
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError


def merge_traces(traces: Sequence[Trace], *, title: str = "") -> Trace:
    """Puts the traces of a cluster's workers into one, on the clock of a parameter server.

    Each worker's trace holds its own ops and those that parameter servers ran for it. Tracks say
    which task they are of, and for which task's steps. Steps keep their numbers: two workers may
    have steps of the same number, on tracks of their own.

    Args:
      traces: one of each worker, taken at the same time.
      title: name of the merged trace.

    Raises:
      TraceError: there is no trace, one is of a single task, or two are of the same. Or they have
        no parameter server in common. Or a clock is known less well than the shortest time between
        a Send and its Recv.
    """
    if not traces:
        raise TraceError("there is no trace to merge; hand over one of each worker")
    reference = _reference(traces)
    shifted = [_on_clock_of(trace, reference) for trace in traces]
    for trace, moved in zip(traces, shifted, strict=True):
        _require_order(trace, moved)
    nodes, node_of = _joined_nodes(shifted)
    first = np.cumsum([0, *(len(trace.tracks) for trace in shifted)])
    parts: dict[str, list[pd.DataFrame]] = {}
    for trace, row, track in zip(shifted, node_of, first.tolist(), strict=False):
        for name, part in _moved_rows(trace, row, track).items():
            parts.setdefault(name, []).append(part)
    joined = {name: pd.concat(each, ignore_index=True) for name, each in parts.items()}
    merged = Trace(
        **joined
        | {
            "events": joined["events"].sort_values("start_ns", kind="stable"),
            "edges": joined["edges"].drop_duplicates(),
        },
        nodes=nodes,
        meta=_joined_meta(traces, reference, title),
    )
    merged.self_check()
    return merged


def _reference(traces: Sequence[Trace]) -> str:
    """The first parameter server that all traces have a clock of."""
    for trace in traces:
        if not trace.meta.task:
            raise TraceError(
                f"the trace {trace.meta.title!r} is of one task alone; expected traces of workers "
                "whose steps use parameter servers, as CaptureHook takes them on TensorFlow's "
                "servers"
            )
    tasks = [trace.meta.task for trace in traces]
    again = sorted({task for task in tasks if tasks.count(task) > 1})
    if again:
        raise TraceError(f"two traces are of {again[0]}; expected one of each worker")
    known = [set(filter(is_ps, trace.meta.clock_offset_ns)) for trace in traces]
    common = sorted(set.intersection(*known))
    if not common:
        has = "; ".join(
            f"{task} has {', '.join(sorted(own)) or 'none'}"
            for task, own in zip(tasks, known, strict=True)
        )
        raise TraceError(
            f"the traces have no parameter server in common whose clock was aligned: {has}"
        )
    return common[0]


def _on_clock_of(trace: Trace, reference: str) -> Trace:
    """The same with all times by the clock of another task."""
    ahead = trace.meta.clock_offset_ns[reference]
    return dataclasses.replace(
        trace,
        events=_later(trace.events, ahead, "start_ns"),
        runs=_later(trace.runs, ahead, "start_ns", "end_ns"),
        items=_later(
            trace.items, ahead, "put_start_ns", "put_end_ns", "take_start_ns", "take_end_ns"
        ),
        transfers=_later(trace.transfers, ahead, "sent_ns", "start_ns", "end_ns"),
    )


def _later(table: pd.DataFrame, ahead: int, *columns: str) -> pd.DataFrame:
    # -1 is a time that is not known.
    return table.assign(
        **{name: table[name].where(table[name] < 0, table[name] + ahead) for name in columns}
    )


def _require_order(trace: Trace, moved: Trace) -> None:
    transfers = moved.transfers[moved.transfers["sent_ns"] >= 0]
    gaps = (transfers["end_ns"] - transfers["sent_ns"]).to_numpy(np.int64)
    for task, error in trace.meta.clock_error_ns.items():
        require_order(gaps, error, task=task)


def _joined_nodes(traces: Sequence[Trace]) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """The nodes of all, and for each trace the rows of its own; what a ps has in common is one."""
    key = ["name", "op", "device"]
    together = pd.concat([trace.nodes for trace in traces], ignore_index=True)
    number = together.groupby(key, sort=False).ngroup().to_numpy(np.int64)
    bounds = np.cumsum([len(trace.nodes) for trace in traces])[:-1]
    return together.drop_duplicates(key, ignore_index=True), np.split(number, bounds)


def _moved_rows(trace: Trace, node: np.ndarray, track: int) -> dict[str, pd.DataFrame]:
    """The tables of one trace with the rows of nodes and tracks of the merged one."""

    def placed(table: pd.DataFrame, *names: str) -> pd.DataFrame:
        return table.assign(
            **{n: np.where(table[n] < 0, -1, table[n].astype(np.int64) + track) for n in names}
        )

    def renamed(table: pd.DataFrame, *names: str) -> pd.DataFrame:
        return table.assign(**{n: node[table[n].to_numpy(np.int64)] for n in names})

    prefix = f"{trace.meta.task} "
    staged = trace.tracks["stage"].astype(object)
    return {
        "events": placed(renamed(trace.events, "node"), "track"),
        "edges": renamed(trace.edges, "source", "target"),
        # Each worker has stages and buffers of its own, of the same names.
        "tracks": trace.tracks.assign(stage=np.where(staged == "", "", prefix + staged)),
        "runs": placed(trace.runs, "track"),
        "items": placed(trace.items, "put_track", "take_track").assign(
            stage=prefix + trace.items["stage"].astype(object)
        ),
        "transfers": placed(renamed(trace.transfers, "node", "source"), "track"),
    }


def _joined_meta(traces: Sequence[Trace], reference: str, title: str) -> TraceMeta:
    first = traces[0].meta
    offset: dict[str, int] = {}
    error: dict[str, int] = {}
    capacity: dict[str, int] = {}
    occupancy: dict[str, int] = {}
    left_out: dict[str, int] = {}
    refused: dict[str, str] | None = None
    for trace in traces:
        meta = trace.meta
        if meta.not_fusable is not None:
            refused = {**(refused or {}), **meta.not_fusable}
        own = meta.clock_error_ns[reference]
        offset[meta.task], error[meta.task] = -meta.clock_offset_ns[reference], own
        for task in meta.clock_offset_ns.keys() - {reference}:
            offset[task] = meta.clock_offset_ns[task] - meta.clock_offset_ns[reference]
            error[task] = max(error.get(task, 0), own + meta.clock_error_ns[task])
        for into, found in ((capacity, meta.capacity), (occupancy, meta.occupancy_at_start)):
            into |= {f"{meta.task} {stage}": count for stage, count in found.items()}
        for what, count in meta.left_out.items():
            left_out[what] = left_out.get(what, 0) + count
    return dataclasses.replace(
        first,
        title=title,
        task=reference,
        clock_offset_ns=offset,
        clock_error_ns=error,
        variables={name: size for t in traces for name, size in t.meta.variables.items()},
        lost_ops=sum(trace.meta.lost_ops for trace in traces),
        lost_transfers=sum(trace.meta.lost_transfers for trace in traces),
        left_out=left_out,
        not_fusable=refused,
        thread_names={},
        untraced=None,
        source_cores=None,
        capacity=capacity,
        occupancy_at_start=occupancy,
    )
