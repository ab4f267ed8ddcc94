"""CoreUse: what the cores do at each moment of a trace's steps: run ops, or idle, and why."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.analysis.step_phases import StepPhases, step_phases
from workbench.core.graph.op_families import stock_op
from workbench.core.graph.op_types import INPUTS
from workbench.core.trace import intervals
from workbench.core.trace.intervals import Intervals
from workbench.core.trace.trace import Trace

# Tracks of ops that leave their thread while they go on, such as a call of a function.
_NO_THREAD = "Async "


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class CoreUse:
    """Core time of all steps, in ns: of two cores a second has two.

    Attributes:
      begin_ns, end_ns: begin of the first step, end of the last.
      cores: of the machine.
      node_ns: float64 [nodes], in which each node's ops had a core. More ops than cores share them.
      node_runs: float64 [nodes], how often each node ran; a part of a run counts in part.
      node_span_ns: float64 [nodes], how long its ops lasted.
      waits_ns: idle, while a step waits for its input, or no step runs.
      ready_ns: idle, although an op was ready, or while a step is called or returns.
      narrow_ns: idle, as no other op was ready.
    """

    begin_ns: int
    end_ns: int
    cores: int
    node_ns: np.ndarray
    node_runs: np.ndarray
    node_span_ns: np.ndarray
    waits_ns: float
    ready_ns: float
    narrow_ns: float


def core_use(trace: Trace, cores: int) -> CoreUse:
    """What the cores do in the steps of a trace, which has at least one."""
    steps = trace.steps()
    low, high = int(steps["start_ns"].min()), int(steps["end_ns"].max())
    events, nodes = trace.events, len(trace.nodes)
    node = events["node"].to_numpy(np.int64)
    begin = events["start_ns"].to_numpy(np.int64)
    lasted = events["dur_ns"].to_numpy(np.int64)
    ready = begin - events["delay_ns"].to_numpy(np.int64)
    start, end = np.clip(begin, low, high), np.clip(begin + lasted, low, high)
    works, delivers = _works(trace, node)
    inside = np.divide(end - start, lasted, out=np.ones(len(node)), where=lasted > 0)
    inside[(begin >= high) | (begin + lasted < low)] = 0.0

    begun, finished = start[works], end[works]
    phases = step_phases(trace)
    waits = _waits(phases, start[delivers], end[delivers], low, high)
    between = intervals.union(*map(np.concatenate, zip(phases.calls, phases.returns, strict=True)))
    asked = np.clip(ready[works], low, high)
    moments = np.unique(np.concatenate((begun, finished, asked, *waits, *between, [low, high])))
    moments = moments[(moments >= low) & (moments <= high)]
    length = np.diff(moments).astype(np.float64)
    running = _open(begun, finished, moments)
    waiting = _open(asked, begun, moments)
    idle = np.maximum(cores - running, 0) * length
    in_wait = _inside(moments, waits)
    held = np.where(_inside(moments, between), cores, np.minimum(waiting, cores))
    late = np.minimum(idle, held * length)
    share = np.minimum(1.0, cores / np.maximum(running, 1))
    had = np.concatenate(([0.0], np.cumsum(share * length)))
    at = np.searchsorted(moments, np.concatenate((begun, finished)))
    core_ns = had[at[len(begun) :]] - had[at[: len(begun)]]
    return CoreUse(
        begin_ns=low,
        end_ns=high,
        cores=cores,
        node_ns=np.bincount(node[works], core_ns, nodes),
        node_runs=np.bincount(node, inside, nodes),
        node_span_ns=np.bincount(node[works], (finished - begun).astype(float), nodes),
        waits_ns=float(idle[in_wait].sum()),
        ready_ns=float(late[~in_wait].sum()),
        narrow_ns=float((idle - late)[~in_wait].sum()),
    )


def _works(trace: Trace, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which events keep a thread, and which deliver a batch, and wait for it."""
    op = np.array([stock_op(each) for each in trace.nodes["op"].tolist()], object)
    delivers = np.isin(op, list(INPUTS))[node] if len(op) else np.zeros(len(node), bool)
    loose = trace.tracks["name"].str.startswith(_NO_THREAD).to_numpy(bool)
    track = trace.events["track"].to_numpy(np.int64)
    main = (trace.tracks["kind"] != "prefetch").to_numpy(bool)
    return ~delivers & ~loose[track], delivers & main[track]


def _waits(
    phases: StepPhases, start: np.ndarray, end: np.ndarray, low: int, high: int
) -> Intervals:
    """While a step waits in take, or for its batch, or no step runs."""
    delivered = intervals.union(start, end)
    outside = intervals.gaps(*phases.runs, low, high)
    parts = (phases.waits, delivered, outside)
    begin, finish = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return intervals.union(np.clip(begin, low, high), np.clip(finish, low, high))


def _open(start: np.ndarray, end: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """How many intervals are open from each moment to the next."""
    begun = np.searchsorted(np.sort(start), moments[:-1], side="right")
    ended = np.searchsorted(np.sort(end), moments[:-1], side="right")
    return begun - ended


def _inside(moments: np.ndarray, when: Intervals) -> np.ndarray:
    """Which stretches between two moments lie in a union whose ends are moments."""
    start, end = when
    if not len(start):
        return np.zeros(max(0, len(moments) - 1), bool)
    place = np.searchsorted(start, moments[:-1], side="right") - 1
    inside: np.ndarray = (place >= 0) & (moments[:-1] < end[np.maximum(place, 0)])
    return inside
