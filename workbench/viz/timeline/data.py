"""TimelineData: what a timeline shows of a trace, each value computed once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.analysis.step_phases import StepPhases, step_phases
from workbench.core.cluster.client import clients, of_client
from workbench.core.graph import op_families
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.metrics import StepTimes, step_times
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors
from workbench.viz.timeline.path import PATH_NAMES, PathLane, path_lane
from workbench.viz.timeline.transfers import Receipts, receipts

# Spans that are no node of the graph: their names follow those of the nodes.
SPECIAL = (
    ("wait in take", colors.WAIT),
    ("wait in put", colors.WAIT),
    ("put", op_families.COPY),
    ("run step", colors.RUN),
)
WAIT_IN_TAKE, WAIT_IN_PUT, PUT, RUN_STEP = range(4)


@dataclasses.dataclass(frozen=True, eq=False)
class Occupancy:
    """How many items a stage's buffer held: `held` at first, then `counts` after `times_ns`."""

    held: int
    times_ns: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TimelineData:
    """A trace as a timeline needs it. Times are int64 ns of the trace's clock.

    Attributes:
      trace: what is shown.
      times: of its steps.
      runs: its runs of main steps.
      taken: the items that were put and taken within it.
      waits: those of `taken` whose take waited, by start of the take.
      phases: what its steps did when, by the task whose steps they are; "" in a trace of one task.
      occupancy: of the buffer of each stage.
      path: its critical path; None where it has none.
      received: the tensors that tasks of a cluster received.
      names: name, op type and family of every name that a span may have: of the nodes, SPECIAL,
        PATH_NAMES where there is a path, and those of `received`.
    """

    trace: Trace
    times: StepTimes
    runs: pd.DataFrame
    taken: pd.DataFrame
    waits: pd.DataFrame
    phases: Mapping[str, StepPhases]
    occupancy: Mapping[str, Occupancy]
    path: PathLane | None
    received: Receipts
    names: pd.DataFrame

    @property
    def special(self) -> int:
        """Number of the first name of SPECIAL."""
        return len(self.trace.nodes)

    @property
    def path_names(self) -> int:
        """Number of the first name of PATH_NAMES, also where there is none."""
        return self.special + len(SPECIAL)

    @property
    def receive_names(self) -> int:
        """Number of the first name of `received`."""
        return len(self.names) - len(self.received.names)


def timeline_data(trace: Trace) -> TimelineData:
    """Reads what a timeline shows of a trace that passed its self check."""
    items, names, received = trace.items, _names(trace), receipts(trace)
    path = path_lane(trace, names["family"].to_numpy())
    taken = items[(items["take_start_ns"] >= 0) & (items["take_end_ns"] >= 0)]
    waits = taken[taken["take_end_ns"] - taken["take_start_ns"] >= WAIT_MIN_NS]
    waits = waits.sort_values("take_start_ns", kind="stable")
    return TimelineData(
        trace=trace,
        times=step_times(trace),
        runs=trace.steps(),
        taken=taken,
        waits=waits,
        phases={client: step_phases(of_client(trace, client)) for client in clients(trace)},
        occupancy=_occupancy(trace),
        path=path,
        received=received,
        names=pd.concat(
            [names, *([] if path is None else [_path_names()]), _receive_names(received)],
            ignore_index=True,
        ),
    )


def _occupancy(trace: Trace) -> dict[str, Occupancy]:
    held = trace.held_before()
    return {
        str(stage): Occupancy(
            held[str(stage)], part["time_ns"].to_numpy(), part["count"].to_numpy()
        )
        for stage, part in trace.occupancy().groupby("stage", sort=False)
    }


def _names(trace: Trace) -> pd.DataFrame:
    names = trace.nodes["name"].astype(str).tolist()
    ops = trace.nodes["op"].astype(str).tolist()
    special = [name for name, _ in SPECIAL]
    family = np.concatenate(
        (op_families.families_of(ops, names), np.array([f for _, f in SPECIAL], np.uint8))
    )
    return pd.DataFrame({"name": names + special, "op": ops + special, "family": family})


def _receive_names(received: Receipts) -> pd.DataFrame:
    family = np.full(len(received.names), op_families.COPY, np.uint8)
    ops = ["RecvTensor"] * len(received.names)
    return pd.DataFrame({"name": list(received.names), "op": ops, "family": family})


def _path_names() -> pd.DataFrame:
    names = [name for name, _ in PATH_NAMES]
    families = np.array([family for _, family in PATH_NAMES], np.uint8)
    return pd.DataFrame({"name": names, "op": names, "family": families})
