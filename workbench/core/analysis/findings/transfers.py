"""A finding about a cluster: lookups and variables whose tensors travel in many small messages."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.analysis.findings.finding import Finding
from workbench.core.cluster.step_split import part_times, step_split
from workbench.core.cluster.traffic import LOOKUP, VARIABLE, owner_of, transfers_table
from workbench.core.options import SMALL_TRANSFER_BYTES
from workbench.core.trace.intervals import covered, total, union
from workbench.core.trace.trace import Trace
from workbench.number_words import counted, duration, size

# A step of fewer small messages has no reason to save them.
_MANY = 20
_MOST_NAMES = 3
_MOST_NODES = 20


def many_small_transfers(trace: Trace, client: str) -> Finding | None:
    """The steps of a worker get and send many small tensors; None where they do not.

    Args:
      trace: of a cluster.
      client: the worker.
    """
    track = _step_track(trace, client)
    rows = (trace.transfers["track"] == track).to_numpy(bool)
    table = transfers_table(trace)[rows]
    steps = len(trace.runs[trace.runs["track"] == track])
    small = table[table["bytes"] <= SMALL_TRANSFER_BYTES]
    if not steps or len(small) < _MANY * steps:
        return None
    kinds, owners = zip(*map(owner_of, small["tensor"]), strict=True)
    small = small.assign(kind=kinds, owner=owners)
    cost, waited = _waits(trace, track, small)
    per_step = len(small) / steps
    return Finding(
        key="many_small_transfers",
        title=f"{counted(per_step, 'small tensor')} a step travel between {client} and others",
        evidence=_evidence(table, small, steps, (cost, waited)),
        cost_ns=cost,
        gain_ns=None,
        wait_share=cost / waited if waited else 0.0,
        is_cause=False,
        mend=(
            "Let them travel together: `wb.pack_transfers(config)` for the session's config, or "
            "`workbench cluster --pack-transfers`, which the toggles `grouped` and `auto_fused` do"
        ),
        toggle=None,
        nodes=tuple(small["tensor"].value_counts().index[:_MOST_NODES]),
    )


def _evidence(
    table: pd.DataFrame, small: pd.DataFrame, steps: int, times: tuple[float, float]
) -> str:
    cost, waited = times
    lookups = small[small["kind"] == LOOKUP]
    return (
        f"{counted(len(small) / steps, 'tensor')} of at most {size(SMALL_TRANSFER_BYTES)} a step, "
        f"{size(small['bytes'].mean())} in the mean, of {counted(len(table) / steps, 'tensor')} "
        f"that travel: {_of(small, LOOKUP, steps)}, {_of(small, VARIABLE, steps)}. Each is a "
        f"message of its own. A step waits {duration(waited)} for other tasks, and small tensors "
        f"travel during {duration(cost)} of that. Most are of "
        f"{_named(lookups if len(lookups) else small)}."
    )


def _step_track(trace: Trace, client: str) -> int:
    tracks = trace.tracks
    return int(np.flatnonzero((tracks["kind"] == "step") & (tracks["client"] == client))[0])


def _waits(trace: Trace, track: int, small: pd.DataFrame) -> tuple[float, float]:
    """Time in a step that it waits for other tasks while small tensors travel, and in all."""
    steps = step_split(trace)
    client = str(trace.tracks["client"].iloc[track])
    count = int((steps["client"] == client).sum())
    waits = part_times(trace, track)["ps_ns"]
    sent = small["sent_ns"].where(small["sent_ns"] >= 0, small["start_ns"])
    travels = union(sent.to_numpy(np.int64), small["end_ns"].to_numpy(np.int64))
    return float(covered(*waits, travels).sum()) / count, total(*waits) / count


def _of(small: pd.DataFrame, kind: str, steps: int) -> str:
    own = small[small["kind"] == kind]
    return f"{round(len(own) / steps)} of {counted(own['owner'].nunique(), kind)}"


def _named(small: pd.DataFrame) -> str:
    counts = small["owner"].value_counts()
    names = sorted(counts.index, key=lambda name: (-counts[name], name))
    more = len(names) - _MOST_NAMES
    quoted = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    return quoted + (f" and {counted(more, 'other')}" if more > 0 else "")
