"""A trace as one side of an alignment: its steps, its time by node on and off the chain."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.analysis.critical_path import CriticalPath, critical_path
from workbench.core.analysis.matched_nodes import RanNode
from workbench.core.analysis.mean_interval import mean_interval
from workbench.core.cluster.client import of_client, slowest_client
from workbench.core.trace.metrics import self_times
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

EVERYTHING_ELSE = "everything else"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class AlignedRun:
    """One of the two traces of an alignment.

    Attributes:
      label: what it is called.
      trace: itself.
      step_times_ns: int64 [steps], from the end of a step to the end of the next; the first from
        its begin.
    """

    label: str
    trace: Trace = dataclasses.field(repr=False)
    step_times_ns: np.ndarray = dataclasses.field(repr=False)

    @property
    def steps(self) -> int:
        """How many steps were traced."""
        return len(self.step_times_ns)

    @property
    def total_ns(self) -> int:
        """Time of all traced steps, from the begin of the first to the end of the last."""
        return int(self.step_times_ns.sum())

    @property
    def step_ns(self) -> float:
        """Mean time of a traced step, in ns."""
        return self.total_ns / self.steps

    @property
    def interval_ns(self) -> tuple[float, float] | None:
        """95 % interval of that mean, steps taken as independent; None of a single step."""
        return mean_interval(self.step_times_ns)

    @property
    def captured_ns(self) -> int:
        """When its first step began, in ns since 1970."""
        return int(self.trace.steps()["start_ns"].min())


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class RunTimes:
    """Where the time of a trace went.

    Attributes:
      nodes: those that ran; what is below follows them.
      sources: lines of the user's code.
      work_ns: float64, op time in a step; of a stage's nodes, in one of its runs.
      busy_ns: int64, op time in the whole trace.
      explained_ns: int64, what each adds to the time of all steps.
      waits_ns: the same of what is no node, by kind and side ("step" or "stage", "" for neither).
    """

    nodes: list[RanNode]
    sources: list[str]
    work_ns: np.ndarray
    busy_ns: np.ndarray
    explained_ns: np.ndarray
    waits_ns: dict[tuple[str, str], int]


def aligned_run(trace: Trace, label: str) -> AlignedRun:
    """A trace as a side of an alignment.

    Raises:
      TraceError: it has no step.
    """
    if not len(trace.steps()):
        raise TraceError(f"trace {label!r} has no step, so nothing of it can be aligned")
    # Steps of several workers run beside each other; those that take longest bound a cluster.
    trace = of_client(trace, slowest_client(trace))
    steps = trace.steps()
    ends = np.sort(steps["end_ns"].to_numpy(np.int64))
    begin = int(steps["start_ns"].min())
    return AlignedRun(label=label, trace=trace, step_times_ns=np.diff(ends, prepend=begin))


def path_of(run: AlignedRun) -> CriticalPath | None:
    """The critical path of a trace, None where it does not know which op feeds which."""
    try:
        return critical_path(run.trace)
    except TraceError:
        return None


def run_times(run: AlignedRun, path: CriticalPath | None) -> RunTimes:
    """Sums the time of a trace by node.

    Args:
      run: the trace.
      path: explains the time of its steps; None explains it by the op time of main steps, and
        what that exceeds or leaves is EVERYTHING_ELSE.
    """
    trace, count = run.trace, len(run.trace.nodes)
    node = trace.events["node"].to_numpy(np.int64)
    track = trace.events["track"].to_numpy(np.int64)
    self_ns = self_times(trace)
    staged = (trace.tracks["kind"] == "prefetch").to_numpy(bool)[track]
    in_step = _summed(node[~staged], self_ns[~staged], count)
    ran_in_step = np.bincount(node[~staged], minlength=count) > 0
    rows = np.flatnonzero(np.bincount(node, minlength=count))
    waits: dict[tuple[str, str], int]
    if path is None:
        explained = in_step
        waits = {(EVERYTHING_ELSE, ""): run.total_ns - int(in_step.sum())}
    else:
        explained, waits = _on_path(path, count)
    ran = trace.nodes.iloc[rows]
    about = zip(ran["name"].tolist(), ran["op"].tolist(), ran_in_step[rows].tolist(), strict=True)
    return RunTimes(
        nodes=[RanNode(name=name, op=op, in_step=in_step) for name, op, in_step in about],
        sources=ran["source"].tolist(),
        work_ns=(in_step / run.steps + _in_stage_runs(trace, self_ns))[rows],
        busy_ns=_summed(node, self_ns, count)[rows],
        explained_ns=explained[rows],
        waits_ns=waits,
    )


def _on_path(path: CriticalPath, count: int) -> tuple[np.ndarray, dict[tuple[str, str], int]]:
    """Time on the chain of each node, and of what is no op, by kind and side."""
    segments = path.segments
    is_op = (segments["kind"] == "op").to_numpy(bool)
    duration = segments["dur_ns"].to_numpy(np.int64)
    nodes = _summed(segments["node"].to_numpy(np.int64)[is_op], duration[is_op], count)
    waits = segments[~is_op].groupby(["kind", "side"], sort=False, as_index=False)["dur_ns"].sum()
    kinds = zip(waits["kind"].tolist(), waits["side"].tolist(), strict=True)
    return nodes, dict(zip(kinds, waits["dur_ns"].tolist(), strict=True))


def _in_stage_runs(trace: Trace, self_ns: np.ndarray) -> np.ndarray:
    """Op time of each node in a run of its stage: a step takes the item of one run."""
    tracks, count = trace.tracks, len(trace.nodes)
    node = trace.events["node"].to_numpy(np.int64)
    stage_of = tracks["stage"].to_numpy(object)
    of_event = stage_of[trace.events["track"].to_numpy(np.int64)]
    of_run = stage_of[trace.runs["track"].to_numpy(np.int64)]
    total = np.zeros(count)
    for stage in set(stage_of[(tracks["kind"] == "prefetch").to_numpy(bool)]):
        runs = int((of_run == stage).sum())
        here = of_event == stage
        total += _summed(node[here], self_ns[here], count) / max(1, runs)
    return total


def _summed(rows: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Sums of integers by row; `np.bincount` would make floats of them."""
    total = np.zeros(count, np.int64)
    np.add.at(total, rows, values)
    return total
