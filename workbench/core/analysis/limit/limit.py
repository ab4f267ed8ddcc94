"""Limit: how far a step is from what the machine can do, and where the rest of it goes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.limit.core_use import CoreUse, core_use
from workbench.core.analysis.limit.op_work import work_of
from workbench.core.analysis.limit.peaks import Peaks
from workbench.core.analysis.limit.work import Work, least_ns
from workbench.core.graph.op_families import FAMILY_NAMES, families_of
from workbench.core.graph.tensor_shapes import parsed_shapes
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import TraceError

# Of the ops' time, what may be faster than the peaks before these are called too low.
_EXCEEDED = 0.02
_COLUMNS = ["name", "op", "family", "runs", "flops", "bytes", "bound", "least_ns", "took_ns"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Limit(Displayed):
    """How far the steps of a trace are from what the machine can do.

    The time of a step is `floor_ns` and what is more: the parts. They sum to it exactly.

    Attributes:
      trace: of which it is.
      peaks: of the machine.
      cores: that the steps had.
      steps: main steps in the trace.
      step_ns: time of one.
      floor_ns: the least time of a step: its work at the peaks, with all cores busy all the time.
      one_core_ns: the same of one core, one op after another.
      below_peak_ns: the time of a step that ops took more than that, were all cores busy.
      beside_ns: likewise of what the process did beside its ops, such as threads of the input.
      ready_ns: idle cores, although an op was ready, or while the step is called or returns.
      waits_ns: idle cores, while the step waits for its input, or no step runs.
      narrow_ns: idle cores, because no other op was ready.
      df: one row for each node that worked, the most time first: name, op, family, runs, flops and
        bytes, bound, least_ns and took_ns. Numbers are of a step, times those of a core. The bound
        is "" where the work is not known, and "nothing" where there is none.
      exceeded: whether ops were faster than the peaks, which are too low then.
    """

    trace: Trace
    peaks: Peaks
    cores: int
    steps: int
    step_ns: int
    floor_ns: int
    one_core_ns: int
    below_peak_ns: int
    beside_ns: int
    ready_ns: int
    waits_ns: int
    narrow_ns: int
    df: pd.DataFrame
    exceeded: bool

    def __repr__(self) -> str:
        return f"Limit({self.step_ns / 1e6:.1f} ms a step, at least {self.floor_ns / 1e6:.1f})"

    @property
    def idle_ns(self) -> int:
        """The time of a step in which its cores idle, for whatever reason, as one core's share."""
        return self.ready_ns + self.waits_ns + self.narrow_ns

    @property
    def unknown_share(self) -> float:
        """The part of the ops' time in ops whose least work is not known, 0 to 1."""
        took = float(self.df["took_ns"].sum())
        return float(self.df["took_ns"][self.df["bound"] == ""].sum()) / took if took else 0.0

    def parts(self) -> pd.DataFrame:
        """What the time of a step consists of: part, ns, share; it sums to `step_ns`."""
        rows = [
            ("least", self.floor_ns),
            ("below peak", self.below_peak_ns),
            ("beside the ops", self.beside_ns),
            ("idle: an op is ready", self.ready_ns),
            ("idle: waits", self.waits_ns),
            ("idle: nothing is ready", self.narrow_ns),
        ]
        table = pd.DataFrame(rows, columns=["part", "ns"])
        return table.assign(share=table["ns"] / max(self.step_ns, 1))

    def by_family(self) -> pd.DataFrame:
        """One row for each op family: family, ops, flops, bytes, least_ns, took_ns.

        The times are those of a step whose cores all do nothing else; they sum to `floor_ns` and
        to that plus `below_peak_ns`.
        """
        sums = self.df.groupby("family", sort=False).agg(
            ops=("name", "size"),
            flops=("flops", "sum"),
            bytes=("bytes", "sum"),
            least_ns=("least_ns", "sum"),
            took_ns=("took_ns", "sum"),
        )
        sums[["least_ns", "took_ns"]] /= self.cores
        ordered = sums.sort_values("took_ns", ascending=False, kind="stable")
        return ordered.reset_index()


def limit_of(trace: Trace, peaks: Peaks) -> Limit:
    """Holds the steps of a trace against the peaks of the machine that it was taken on.

    Raises:
      TraceError: it has no steps, does not know the shapes of its tensors, is of a cluster, or of
        steps that compute on a GPU.
    """
    require_limited(trace)
    cores = trace.meta.cores or peaks.cores
    use = core_use(trace, cores)
    steps = len(trace.steps())
    table, exceeded = _nodes(trace, use, peaks, steps)
    step_ns = (use.end_ns - use.begin_ns) // steps
    # In core time of a step, from here on.
    room = float(step_ns * cores)
    took, least = float(table["took_ns"].sum()), float(table["least_ns"].sum())
    if took > room:
        # Ops that used cores which idle in the trace, and together more than there were.
        table[["least_ns", "took_ns"]] *= room / took
        exceeded, took, least = True, room, least * room / took
    beside = _beside(trace, cores, room, took)
    idle = [part / steps for part in (use.ready_ns, use.waits_ns, use.narrow_ns)]
    left = room - took - beside
    scale = left / sum(idle) if sum(idle) else 0.0
    floor, below, beside_ns, ready, waits = (
        int(part / cores)
        for part in (least, took - least, beside, idle[0] * scale, idle[1] * scale)
    )
    return Limit(
        trace=trace,
        peaks=peaks,
        cores=cores,
        steps=steps,
        step_ns=step_ns,
        floor_ns=floor,
        one_core_ns=int(least),
        below_peak_ns=below,
        beside_ns=beside_ns,
        ready_ns=ready,
        waits_ns=waits,
        narrow_ns=step_ns - floor - below - beside_ns - ready - waits,
        df=table,
        exceeded=exceeded,
    )


def knows_shapes(trace: Trace) -> bool:
    """Whether a trace knows the shapes of its tensors."""
    return bool((trace.nodes["outputs"] != "").any())


def require_limited(trace: Trace) -> None:
    """Requires a trace that `limit_of` takes.

    Raises:
      TraceError: as `limit_of`.
    """
    if not len(trace.steps()):
        raise TraceError("the trace has no steps, so there is none to hold against the machine")
    if trace.meta.task or (trace.tracks["task"] != "").any():
        raise TraceError(
            "the trace is of a cluster, whose tasks have cores of their own; trace one task alone"
        )
    if trace.on_a_gpu:
        raise TraceError(
            "the trace is of steps that compute on a GPU, of which only the CPU's peaks are known"
        )
    if not knows_shapes(trace):
        raise TraceError(
            "the trace does not know the shapes of its tensors, from which the least work follows; "
            "wb.trace(program) and wb.compare(…) note them of sessions, and "
            "CaptureHook.start(shapes=True)"
        )


def _nodes(trace: Trace, use: CoreUse, peaks: Peaks, steps: int) -> tuple[pd.DataFrame, bool]:
    """Of each node what it did in a step and had to do, and whether one beat the peaks."""
    nodes = trace.nodes
    works = np.flatnonzero((use.node_span_ns > 0) | (use.node_ns > 0))
    columns = (nodes[name].to_numpy(object)[works] for name in ("name", "op", "inputs", "outputs"))
    rows, excess = [], 0.0
    for node, name, op, read, made in zip(works.tolist(), *columns, strict=True):
        runs = use.node_runs[node] / steps
        took = use.node_ns[node] / steps
        work = work_of(op, parsed_shapes(read), parsed_shapes(made)) if read or made else None
        one, bound = least_ns(work, peaks) if work else (0.0, "")
        # No op can have needed more than all cores while it ran.
        most = use.cores * use.node_span_ns[node] / steps
        excess += max(0.0, one * runs - most)
        least = min(one * runs, most)
        known = work or Work()
        rows.append(
            (name, op, runs, known.flops * runs, known.bytes * runs, bound, least, max(took, least))
        )
    table = pd.DataFrame(rows, columns=[name for name in _COLUMNS if name != "family"])
    family = families_of(table["op"].tolist(), table["name"].tolist())
    table["family"] = np.array(FAMILY_NAMES, object)[family]
    ordered = table.sort_values(["took_ns", "name"], ascending=[False, True], kind="stable")
    exceeded = excess > _EXCEEDED * float(table["took_ns"].sum())
    return ordered[_COLUMNS].reset_index(drop=True), exceeded


def _beside(trace: Trace, cores: int, room: float, took: float) -> float:
    """Core time in a step of what the process did beside its ops; 0 where it is not known."""
    untraced = trace.meta.untraced
    if untraced is None or not untraced.cpu_ns or not untraced.step_ns:
        return 0.0
    used = min(room, room * untraced.cpu_ns / (untraced.step_ns * cores))
    return max(0.0, used - took)
