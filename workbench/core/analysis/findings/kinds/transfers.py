"""A finding about a cluster: lookups and variables whose tensors travel in many small messages."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.cluster.step_split import part_times
from workbench.core.cluster.traffic import LOOKUP, VARIABLE, owner_of, transfers_table
from workbench.core.options import SMALL_TRANSFER_BYTES
from workbench.core.trace.intervals import Intervals, covered, subtract, union
from workbench.core.trace.trace import Trace
from workbench.number_words import counted, duration, size

# A step of fewer small messages has no reason to save them.
_MANY = 20
_MOST_NAMES = 3
# In the scope of a lookup that goes with others already.
_GROUPED = "grouped_"


def many_small_transfers(account: StepAccount) -> Claim | None:
    """The steps of a worker get and send many small tensors; None where they do not.

    Its share is the time in which a step waits for other tasks while small tensors travel.
    """
    trace, client = account.trace, account.path.client
    main = np.flatnonzero((trace.tracks["kind"] == "step").to_numpy(bool))
    table = transfers_table(trace).assign(node=trace.transfers["node"].astype(np.int64))
    table = table[trace.transfers["track"].isin(main).to_numpy(bool)]
    small = table[table["bytes"] <= SMALL_TRANSFER_BYTES]
    steps = account.steps
    if len(small) < _MANY * steps:
        return None
    kinds, owners = zip(*map(owner_of, small["tensor"]), strict=True)
    small = small.assign(kind=kinds, owner=owners)
    waits = _waits(trace, main)
    share, waited = _covered(account, _both(waits, _travels(small))), _covered(account, waits)
    times = account.per_step(share), account.per_step(waited)
    lookups = small[(small["kind"] == LOOKUP) & ~small["owner"].str.contains(_GROUPED)]
    return Claim(
        key="many_small_transfers",
        title=f"{counted(len(small) / steps, 'small tensor')} a step travel between {client} and "
        "others",
        evidence=_evidence(table, small, steps, times),
        mend=_mend(small, lookups),
        toggle="grouped" if len(lookups) else None,
        share=share,
        at_most_ns=None,
        nodes=_longest_first(small),
    )


def _longest_first(small: pd.DataFrame) -> tuple[int, ...]:
    """The tensors' nodes, by how long they travel in all."""
    took = (small["end_ns"] - _sent_ns(small)).groupby(small["node"].to_numpy()).sum()
    return tuple(took.sort_values(ascending=False, kind="stable").index.tolist())


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


def _mend(small: pd.DataFrame, lookups: pd.DataFrame) -> str:
    """What makes fewer messages of the lookups that are not grouped, or else of the rest."""
    if len(lookups):
        return (
            f"Look {_named(lookups)} up together: grouped lookups send each id once, and what goes "
            "from one task to another travels in few messages with them"
        )
    return (
        f"Let {_named(small)} travel together: `wb.cluster.pack_transfers(config)` for the "
        "session's config, or `workbench cluster --pack-transfers`"
    )


def _waits(trace: Trace, steps: np.ndarray) -> Intervals:
    """When any step waits for other tasks."""
    parts = [part_times(trace, track)["ps_ns"] for track in steps.tolist()]
    starts, ends = (np.concatenate([part[edge] for part in parts]) for edge in (0, 1))
    return union(starts, ends)


def _travels(small: pd.DataFrame) -> Intervals:
    return union(_sent_ns(small).to_numpy(np.int64), small["end_ns"].to_numpy(np.int64))


def _sent_ns(small: pd.DataFrame) -> pd.Series:
    return small["sent_ns"].where(small["sent_ns"] >= 0, small["start_ns"])


def _both(one: Intervals, other: Intervals) -> Intervals:
    return subtract(one, subtract(one, other))


def _covered(account: StepAccount, times: Intervals) -> np.ndarray:
    """The part of each piece of the account in which it is one of these times, 0 to 1."""
    start = account.pieces["start_ns"].to_numpy(np.int64)
    return np.asarray(covered(start, start + account.dur_ns, times) / account.dur_ns)


def _of(small: pd.DataFrame, kind: str, steps: int) -> str:
    own = small[small["kind"] == kind]
    return f"{round(len(own) / steps)} of {counted(own['owner'].nunique(), kind)}"


def _named(small: pd.DataFrame) -> str:
    counts = small["owner"].value_counts()
    names = sorted(counts.index, key=lambda name: (-counts[name], name))
    more = len(names) - _MOST_NAMES
    quoted = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    return quoted + (f" and {counted(more, 'other')}" if more > 0 else "")
