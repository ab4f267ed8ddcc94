"""What travels between tasks in a step: tensors and bytes, by edge and by what they belong to."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from workbench.core.graph.op_families import GRADIENTS
from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.trace import Trace

# The scope of a lookup; that of its gradient ends in "_grad".
_LOOKUP = re.compile(
    rf"^(?:{GRADIENTS})?(?P<scope>(?:.*?/)??(?:safe_|grouped_|fused_)?"
    r"embedding_lookup(?:_sparse)?(?:_\d+)?)(?:_grad)?(?:/|$)"
)
_READ = re.compile(r"^(?P<variable>.+?)/(?:read|Read/ReadVariableOp|ReadVariableOp)(?:_\d+)?$")
_GRADIENT = re.compile(rf"^{GRADIENTS}(?P<op>.+?)_grad/")
# As native/transfers names them.
_PACKED = re.compile(r"^packed/(?P<pack>\d+_tensors_to_.+_hop_\d+)(?:/_\d+)?$")
LOOKUP, VARIABLE, GRADIENT, PACKED, OTHER = "lookup", "variable", "gradient", "packed", "other"


def transfers_table(trace: Trace) -> pd.DataFrame:
    """Each transfer with names in place of rows.

    Returns:
      client (whose step it was for), step, sender, receiver (tasks), tensor, op (that made it),
      bytes, sent_ns (-1 where it is not known), start_ns, end_ns.
    """
    transfers = trace.transfers
    task = tasks_of(trace.nodes["device"])
    node, source = (transfers[name].to_numpy(np.int64) for name in ("node", "source"))
    track = transfers["track"].to_numpy(np.int64)
    return pd.DataFrame(
        {
            "client": trace.tracks["client"].to_numpy(object)[track],
            "step": transfers["step"],
            "sender": task[source],
            "receiver": task[node],
            "tensor": trace.nodes["name"].to_numpy(object)[node],
            "op": trace.nodes["op"].to_numpy(object)[source],
            "bytes": transfers["bytes"].astype(np.int64),
            **{name: transfers[name] for name in ("sent_ns", "start_ns", "end_ns")},
        }
    )


def traffic_by_edge(trace: Trace) -> pd.DataFrame:
    """Tensors and bytes in a step between each two tasks: client, sender, receiver, recvs, bytes.

    Means of the client's traced steps, the most bytes first; Recv and Send come in pairs.
    """
    return _summed(trace, transfers_table(trace), ["client", "sender", "receiver"])


def traffic_by_owner(trace: Trace) -> pd.DataFrame:
    """The same by what the tensors belong to: client, kind, owner, recvs, bytes, mean_bytes.

    kind is LOOKUP (owner: the scope of the lookup; its ids, rows and gradient), VARIABLE (the
    variable that is read), GRADIENT (the op whose gradient it is), PACKED (several tensors as one:
    how many, to which task, and how many transfers lie on the longest path up to it) or OTHER (the
    tensor).
    """
    table = transfers_table(trace)
    names = table["tensor"].tolist()
    known = {name: owner_of(name) for name in set(names)}
    owned = table.assign(
        kind=[known[name][0] for name in names], owner=[known[name][1] for name in names]
    )
    found = _summed(trace, owned, ["client", "kind", "owner"])
    return found.assign(mean_bytes=found["bytes"] / found["recvs"].where(found["recvs"] > 0, 1))


def owner_of(tensor: str) -> tuple[str, str]:
    """Kind and name of what a tensor belongs to."""
    for kind, pattern, group in (
        (PACKED, _PACKED, "pack"),
        (LOOKUP, _LOOKUP, "scope"),
        (VARIABLE, _READ, "variable"),
        (GRADIENT, _GRADIENT, "op"),
    ):
        found = pattern.match(tensor)
        if found:
            return kind, found[group]
    return OTHER, tensor


def _summed(trace: Trace, table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    # Of main steps: a stage's run is for a later one.
    main = (trace.tracks["kind"] == "step").to_numpy(bool)
    tracks = trace.tracks["client"].to_numpy(object)[trace.runs["track"].to_numpy(np.int64)]
    runs = pd.Series(tracks[main[trace.runs["track"].to_numpy(np.int64)]], dtype=object)
    steps = runs.value_counts()
    sums = table.groupby(by, sort=False, as_index=False).agg(
        recvs=("bytes", "size"), bytes=("bytes", "sum")
    )
    per = sums["client"].map(steps).fillna(1).astype(float)
    sums["recvs"], sums["bytes"] = sums["recvs"] / per, sums["bytes"] / per
    order = ["bytes", *by]
    return sums.sort_values(order, ascending=[False] + [True] * len(by), ignore_index=True)
