"""Trace → what is known of its steps as wholes: their time outside of ops, and of all ops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.graph.graph_view import Bools
from workbench.core.trace.trace import Trace

# The first op of a step begins so soon only where the client itself fetches the input.
_FETCHES_NS = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientTime:
    """What a step takes of its client, medians.

    Attributes:
      ns: before its first op and after its last one, without waits in a take.
      calling_ns: of it, from the input that the client itself fetches to the first op of the
        function that it calls then; 0 where it fetches none.
    """

    ns: float = 0.0
    calling_ns: float = 0.0


def client_time_of(trace: Trace, main: pd.DataFrame, is_input: Bools) -> ClientTime:
    """What steps take of their client."""
    steps = trace.steps()
    ends = main["start_ns"].astype(np.int64) + main["dur_ns"]
    first = steps["number"].map(main.groupby("step")["start_ns"].min())
    last = steps["number"].map(ends.groupby(main["step"]).max())
    others = main["start_ns"][~is_input].groupby(main["step"][~is_input]).min()
    fetched = ends[is_input].groupby(main["step"][is_input]).max()
    between = (steps["number"].map(others) - steps["number"].map(fetched)).dropna()
    items = trace.items[trace.items["take_start_ns"] >= 0]
    waited = (items["take_end_ns"] - items["take_start_ns"]).groupby(items["take_step"]).max()
    before = (first - steps["start_ns"] - steps["number"].map(waited).fillna(0)).dropna()
    # the next call of the same client
    after = (steps.groupby("track")["start_ns"].shift(-1) - last).dropna()
    around_ns = sum(max(0.0, float(each.median())) for each in (before, after) if len(each))
    fetches = len(before) and before.median() < _FETCHES_NS and between.median() > 0
    calling_ns = float(between.median()) if fetches else 0.0
    return ClientTime(ns=around_ns + calling_ns, calling_ns=calling_ns)


def step_scales_of(ops: pd.DataFrame) -> tuple[float, ...]:
    """The time of all ops of each step against the mean."""
    totals = ops.groupby("step")["dur_ns"].sum().to_numpy(float)
    if not len(totals) or not totals.any():
        return (1.0,)
    return tuple((totals / totals.mean()).tolist())
