"""What travelled between tasks, as the timeline shows it: stretches of receipt, and arrows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.intervals import union
from workbench.core.trace.trace import Trace
from workbench.viz.style import format

_COLUMNS = ("start_ns", "end_ns", "receiver", "client", "step", "name")


@dataclasses.dataclass(frozen=True, eq=False)
class Receipts:
    """The tensors that tasks received, those whose receipt overlaps joined.

    Attributes:
      stretches: start_ns, end_ns, receiver and client (tasks), step, and name (row of `names`).
      names: of the stretches: how many tensors and bytes.
    """

    stretches: pd.DataFrame
    names: tuple[str, ...]


def receipts(trace: Trace) -> Receipts:
    """The receipts of a trace; none in one of a single task."""
    transfers = trace.transfers
    if not len(transfers):
        return Receipts(pd.DataFrame(columns=list(_COLUMNS)), ())
    node = transfers["node"].to_numpy(np.int64)
    track = transfers["track"].to_numpy(np.int64)
    of = pd.DataFrame(
        {
            "start_ns": transfers["start_ns"].to_numpy(np.int64),
            "end_ns": transfers["end_ns"].to_numpy(np.int64),
            "bytes": transfers["bytes"].to_numpy(np.int64),
            "step": transfers["step"].to_numpy(np.int64),
            "receiver": tasks_of(trace.nodes["device"])[node],
            "client": trace.tracks["client"].to_numpy(object)[track],
        }
    )
    parts = [_joined(part) for _, part in of.groupby(["receiver", "client"], sort=True)]
    table = pd.concat(parts, ignore_index=True)
    codes, names = pd.factorize(table["name"])
    return Receipts(table.assign(name=codes), tuple(map(str, names)))


def _joined(part: pd.DataFrame) -> pd.DataFrame:
    # A receipt of no length would be in no union.
    end = np.maximum(part["end_ns"].to_numpy(np.int64), part["start_ns"].to_numpy(np.int64) + 1)
    start = part["start_ns"].to_numpy(np.int64)
    low, high = union(start, end)
    place = np.searchsorted(low, start, side="right") - 1
    sums = part.groupby(place).agg(
        tensors=("bytes", "size"),
        bytes=("bytes", "sum"),
        step=("step", "first"),
        receiver=("receiver", "first"),
        client=("client", "first"),
    )
    words = [
        f"receive {format.integer(count)} {'tensor' if count == 1 else 'tensors'}, "
        f"{format.size(size)}"
        for count, size in zip(sums["tensors"].tolist(), sums["bytes"].tolist(), strict=True)
    ]
    return sums.assign(start_ns=low, end_ns=high, name=words)[list(_COLUMNS)]


def sending_events(trace: Trace) -> np.ndarray:
    """For each transfer the event that made its tensor, int64; -1 where it is not known."""
    events, transfers = trace.events, trace.transfers
    owner = _owner(trace, events["track"].to_numpy(np.int64))
    made = pd.DataFrame(
        {"node": events["node"], "step": events["step"], "owner": owner, "row": range(len(events))}
    ).drop_duplicates(["node", "step", "owner"], keep=False)
    track = transfers["track"].to_numpy(np.int64)
    sent = pd.DataFrame(
        {"node": transfers["source"], "step": transfers["step"], "owner": _owner(trace, track)}
    )
    found = sent.merge(made, how="left", on=["node", "step", "owner"])["row"]
    return found.fillna(-1).to_numpy(np.int64)


def _owner(trace: Trace, track: np.ndarray) -> np.ndarray:
    """A number for whose run a track's ops are of: of a producer, or of a client's steps."""
    client, _ = pd.factorize(trace.tracks["client"])
    staged = (trace.tracks["kind"] == "prefetch").to_numpy(bool)
    own = np.where(staged, np.arange(len(staged)), -1 - client)
    return own[track]
