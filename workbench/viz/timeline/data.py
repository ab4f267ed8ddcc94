"""TimelineData: what a timeline shows of a trace, each value computed once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.analysis.step_phases import StepPhases, step_phases
from workbench.core.graph import op_families
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.metrics import StepTimes, step_times
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors
from workbench.viz.timeline.path import PATH_NAMES, PathLane, path_lane

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
      phases: what its steps did when.
      occupancy: of the buffer of each stage.
      path: its critical path; None where it has none.
      names: name, op type and family of every name that a span may have: of the nodes, SPECIAL,
        and PATH_NAMES where there is a path.
    """

    trace: Trace
    times: StepTimes
    runs: pd.DataFrame
    taken: pd.DataFrame
    waits: pd.DataFrame
    phases: StepPhases
    occupancy: Mapping[str, Occupancy]
    path: PathLane | None
    names: pd.DataFrame

    @property
    def special(self) -> int:
        """Number of the first name of SPECIAL."""
        return len(self.trace.nodes)

    @property
    def path_names(self) -> int:
        """Number of the first name of PATH_NAMES, also where there is none."""
        return self.special + len(SPECIAL)


def timeline_data(trace: Trace) -> TimelineData:
    """Reads what a timeline shows of a trace that passed its self check."""
    items, names = trace.items, _names(trace)
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
        phases=step_phases(trace),
        occupancy=_occupancy(trace),
        path=path,
        names=names if path is None else pd.concat([names, _path_names()], ignore_index=True),
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


def _path_names() -> pd.DataFrame:
    names = [name for name, _ in PATH_NAMES]
    families = np.array([family for _, family in PATH_NAMES], np.uint8)
    return pd.DataFrame({"name": names, "op": names, "family": families})
