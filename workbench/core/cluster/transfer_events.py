"""What travels between tasks as events among the ops, so that a chain of ops leads through it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.trace.trace import Trace

# A run and a node of it: the run's track, -1 for that of a main step, whose ops are on many.
_KEY = ["track", "step", "node"]
_NEVER_NS = np.iinfo(np.int64).max


def with_transfers(trace: Trace, client: str) -> tuple[Trace, np.ndarray]:
    """The trace of one client with an event for each of its transfers.

    That begins where the op that made the tensor ended, and ends where the tensor was received, or
    where the first op that reads it began: a receipt is recorded late.

    Args:
      trace: as of `of_client`.
      client: whose it is; "" of a trace of one task, which stays as it is.

    Returns:
      The trace; and for each of its events the row in `trace.events`, int64, -1 of a transfer.
    """
    numbers = np.arange(len(trace.events))
    if not client:
        return trace, numbers
    # Of main steps they are on a track that ops are on; which one, a chain does not mind.
    own = (trace.tracks["client"] == client) & (trace.tracks["kind"] == "inter_op")
    lanes = np.flatnonzero(own.to_numpy(bool))
    if not len(trace.transfers) or not len(lanes):
        return _unprefixed(trace, client), numbers
    travels = _travels(trace)
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
    ops = trace.events.astype(np.int64).assign(row=numbers)
    joined = pd.concat([ops, rows.astype(np.int64)], ignore_index=True)
    joined = joined.sort_values("start_ns", kind="stable", ignore_index=True)
    events = dataclasses.replace(trace, events=joined.drop(columns="row"))
    return _unprefixed(events, client), joined["row"].to_numpy(np.int64)


def _travels(trace: Trace) -> pd.DataFrame:
    """The transfers: track (as of `_KEY`), step, node, bytes, start_ns, end_ns."""
    kinds = trace.tracks["kind"].to_numpy(object)
    events = _keyed(trace.events, kinds).assign(
        end_ns=trace.events["start_ns"] + trace.events["dur_ns"].astype(np.int64)
    )
    table = _keyed(trace.transfers, kinds)
    sent = table["sent_ns"].where(table["sent_ns"] >= 0, table["start_ns"])
    made = _looked_up(events.groupby(_KEY)["end_ns"].max(), table, "source", 0)
    end = table["end_ns"].to_numpy()
    start = np.minimum(np.maximum(made, sent.to_numpy()), end)
    # Of several outputs of one op it is not known who reads which.
    several = table.duplicated(_KEY, keep=False).to_numpy()
    end = np.where(several, end, np.minimum(end, _first_read(trace, events, table)))
    return table.assign(start_ns=start, end_ns=np.maximum(start, end))


def _first_read(trace: Trace, events: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """When the first op that reads it began, of each transfer; far away where none did."""
    readers = trace.edges[["source", "target"]].astype(np.int64)
    reads = table[_KEY].drop_duplicates().merge(readers, left_on="node", right_on="source")
    begun = events.groupby(_KEY)["start_ns"].min()
    first = reads.assign(read_ns=_looked_up(begun, reads, "target", _NEVER_NS))
    return _looked_up(first.groupby(_KEY)["read_ns"].min(), table, "node", _NEVER_NS)


def _looked_up(of: pd.Series, table: pd.DataFrame, node: str, otherwise: int) -> np.ndarray:
    """Times by `_KEY` for the runs of a table and one of its columns of nodes, int64."""
    keys = pd.MultiIndex.from_frame(table[["track", "step", node]])
    return np.asarray(of.reindex(keys, fill_value=otherwise), np.int64)


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
