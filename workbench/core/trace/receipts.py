"""What travelled between tasks: which op made it, and when each task received something."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.intervals import union

_COLUMNS = ("start_ns", "end_ns", "receiver", "client", "track", "step", "tensors", "bytes")


@dataclasses.dataclass(frozen=True, eq=False)
class Receipts:
    """The tensors that tasks received, those whose receipt overlaps joined.

    Attributes:
      stretches: start_ns, end_ns, receiver and client (tasks), track and step (of the first run
        that they are for), tensors (how many) and bytes.
      place: of each transfer its row in `stretches`, int64.
    """

    stretches: pd.DataFrame
    place: np.ndarray


def receipts(tables: Mapping[str, pd.DataFrame]) -> Receipts:
    """The receipts of a trace, by its tables; none in one of a single task."""
    transfers = tables["transfers"]
    place = np.zeros(len(transfers), np.int64)
    if not len(transfers):
        return Receipts(pd.DataFrame(columns=list(_COLUMNS)), place)
    columns = ("start_ns", "end_ns", "track", "step", "bytes")
    of = (
        transfers[list(columns)]
        .astype(np.int64)
        .assign(
            receiver=tasks_of(tables["nodes"]["device"])[transfers["node"].to_numpy(np.int64)],
            client=tables["tracks"]["client"].to_numpy(object)[
                transfers["track"].to_numpy(np.int64)
            ],
        )
    )
    # A receipt of no length would be in no stretch.
    of["end_ns"] = np.maximum(of["end_ns"], of["start_ns"] + 1)
    parts: list[pd.DataFrame] = []
    for _, part in of.groupby(["receiver", "client"], sort=True):
        low, high = union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
        own = np.searchsorted(low, part["start_ns"].to_numpy(), side="right") - 1
        place[part.index] = own + sum(map(len, parts))
        sums = part.groupby(own).agg(
            receiver=("receiver", "first"),
            client=("client", "first"),
            track=("track", "first"),
            step=("step", "first"),
            tensors=("bytes", "size"),
            bytes=("bytes", "sum"),
        )
        parts.append(sums.assign(start_ns=low, end_ns=high)[list(_COLUMNS)])
    return Receipts(pd.concat(parts, ignore_index=True), place)


def sending_events(tables: Mapping[str, pd.DataFrame]) -> np.ndarray:
    """For each transfer the event that made its tensor, int64; -1 where it is not known."""
    events, transfers, tracks = (tables[name] for name in ("events", "transfers", "tracks"))
    makers = pd.DataFrame(
        {
            "node": events["node"],
            "step": events["step"],
            "owner": _owner(tracks, events["track"]),
            "row": range(len(events)),
        }
    ).drop_duplicates(["node", "step", "owner"], keep=False)
    sent = pd.DataFrame(
        {
            "node": transfers["source"],
            "step": transfers["step"],
            "owner": _owner(tracks, transfers["track"]),
        }
    )
    found = sent.merge(makers, how="left", on=["node", "step", "owner"])["row"]
    return found.fillna(-1).to_numpy(np.int64)


def _owner(tracks: pd.DataFrame, track: pd.Series) -> np.ndarray:
    """A number for whose run a track's ops are of: of a producer, or of a client's steps."""
    client, _ = pd.factorize(tracks["client"])
    staged = (tracks["kind"] == "prefetch").to_numpy(bool)
    own = np.where(staged, np.arange(len(staged)), -1 - client)
    return np.asarray(own[track.to_numpy(np.int64)])
