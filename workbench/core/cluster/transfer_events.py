"""What travels between tasks as events among the ops, so that a chain of ops leads through it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.trace.trace import Trace

# A run and a node of it: the run's track, -1 for that of a main step, whose ops are on many.
_KEY = ["track", "step", "node"]


def with_transfers(trace: Trace, client: str) -> tuple[Trace, np.ndarray]:
    """The trace of one client with an event for each of its transfers.

    That begins where the op that made the tensor ended, and ends where the tensor was received, or
    where the first op that reads it began: a receipt is recorded late.

    Args:
      trace: as of `of_client`.
      client: whose it is.

    Returns:
      The trace; and for each of its events the row in `trace.events`, int64, -1 of a transfer.
    """
    travels = _travels(trace)
    ops = trace.events.assign(row=np.arange(len(trace.events)))
    # Of main steps they are on a track that ops are on; which one, a chain does not mind.
    lanes = np.flatnonzero(
        (trace.tracks["kind"] == "inter_op").to_numpy(bool) & _own(trace, client)
    )
    if not len(travels) or not len(lanes):
        return _unprefixed(trace, client), ops["row"].to_numpy(np.int64)
    rows = pd.DataFrame(
        {
            "start_ns": travels["start_ns"],
            "dur_ns": travels["end_ns"] - travels["start_ns"],
            "delay_ns": 0,
            "node": travels["node"],
            "track": travels["track"].where(travels["track"] >= 0, lanes[0]),
            "step": travels["step"],
            "made_bytes": travels["bytes"],
            "passed_bytes": 0,
            "row": -1,
        }
    )
    joined = pd.concat([ops.astype(np.int64), rows.astype(np.int64)], ignore_index=True)
    joined = joined.sort_values("start_ns", kind="stable", ignore_index=True)
    events = dataclasses.replace(trace, events=joined.drop(columns="row"))
    return _unprefixed(events, client), joined["row"].to_numpy(np.int64)


def _own(trace: Trace, client: str) -> np.ndarray:
    return (trace.tracks["client"] == client).to_numpy(bool)


def _travels(trace: Trace) -> pd.DataFrame:
    """The transfers: track (as of `_KEY`), step, node, bytes, start_ns, end_ns."""
    kinds = trace.tracks["kind"].to_numpy(object)
    events = _keyed(trace.events, kinds).assign(
        end_ns=trace.events["start_ns"] + trace.events["dur_ns"].astype(np.int64)
    )
    table = _keyed(trace.transfers, kinds)
    made = events.groupby(_KEY)["end_ns"].max().rename("made_ns")
    table = table.join(made, on=["track", "step", "source"])
    begun = events.groupby(_KEY)["start_ns"].min().rename("read_ns")
    readers = trace.edges[["source", "target"]].astype(np.int64)
    read = (
        table[_KEY].drop_duplicates().merge(readers.rename(columns={"source": "node"}), on="node")
    )
    read = read.join(begun, on=["track", "step", "target"]).groupby(_KEY)["read_ns"].min()
    table = table.join(read, on=_KEY)
    # Of several outputs of one op it is not known who reads which.
    several = table.duplicated(_KEY, keep=False)
    end = table["end_ns"].where(several, table[["end_ns", "read_ns"]].min(axis=1))
    sent = table["sent_ns"].where(table["sent_ns"] >= 0, table["start_ns"])
    start = np.minimum(table[["made_ns"]].assign(sent_ns=sent).max(axis=1), table["end_ns"])
    start = start.astype(np.int64)
    return table.assign(start_ns=start, end_ns=np.maximum(start, end.astype(np.int64)))


def _keyed(table: pd.DataFrame, kinds: np.ndarray) -> pd.DataFrame:
    """With int64 columns, and the track as of `_KEY`."""
    wide = table.astype(np.int64)
    main = kinds[wide["track"].to_numpy()] != "prefetch"
    return wide.assign(track=wide["track"].mask(main, -1))


def _unprefixed(trace: Trace, client: str) -> Trace:
    """With stages as the worker calls them: a merged trace has its name before theirs."""
    prefix = f"{client} "
    items, tracks = (
        table.assign(stage=[str(stage).removeprefix(prefix) for stage in table["stage"]])
        for table in (trace.items, trace.tracks)
    )
    return dataclasses.replace(trace, items=items, tracks=tracks)
