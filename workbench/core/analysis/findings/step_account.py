"""StepAccount: each moment of a trace's steps, charged to the op that held them up just then."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath, critical_path
from workbench.core.analysis.path.walk import NOT_TRACED, OP, SEGMENT_KINDS, THREAD_WAIT
from workbench.core.graph.op_families import families_of, stock_op
from workbench.core.graph.op_types import INPUTS, VARIABLES
from workbench.core.trace import intervals
from workbench.core.trace.trace import Trace

# What the waits of ready ops consist of; other kinds are the critical path's.
BEHIND, HANDOVER = "behind", "handover"
_OP, _WAIT, _UNKNOWN = (SEGMENT_KINDS[kind] for kind in (OP, THREAD_WAIT, NOT_TRACED))
NO_NODE = -1
# Tracks of ops that leave their thread while they go on, such as a call of a function.
_NO_THREAD = "Async "


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class StepAccount:
    """The critical path of a trace, each of its moments charged to a node or to a named wait.

    Attributes:
      path: the critical path.
      pieces: kind (a kind of segment; "behind" and "handover" in place of "wait for a thread"),
        start_ns, dur_ns, node, event and side. An op of the path is charged to its node. Where the
        path's op was ready and its thread ran other ops, "behind", the time is charged to these;
        where its thread ran none, "handover", to the op that was ready. Durations sum to the time
        of all steps. Column starts: how many ops the thread started in a handover; 1 of the rest.
    """

    path: CriticalPath
    pieces: pd.DataFrame

    @property
    def trace(self) -> Trace:
        """The trace that it accounts for."""
        return self.path.trace

    @property
    def steps(self) -> int:
        """Main steps in it."""
        return self.path.steps

    @property
    def step_ns(self) -> float:
        """Time of a step."""
        return self.path.step_ns

    @functools.cached_property
    def dur_ns(self) -> np.ndarray:
        """Duration of each piece, int64."""
        return self.pieces["dur_ns"].to_numpy(np.int64)

    @functools.cached_property
    def node(self) -> np.ndarray:
        """Node that each piece is charged to, int64; NO_NODE for none."""
        return self.pieces["node"].to_numpy(np.int64)

    def of_kind(self, *kinds: str) -> np.ndarray:
        """Which pieces are of these kinds, bool."""
        return self.pieces["kind"].isin(kinds).to_numpy(bool)

    @property
    def per_start_ns(self) -> np.ndarray:
        """How long an op of each piece took to be started: its length by its starts, float64."""
        return np.asarray(self.dur_ns / self.pieces["starts"].to_numpy(float))

    def of_nodes(self, nodes: np.ndarray) -> np.ndarray:
        """Which pieces are charged to nodes of a mask, bool."""
        return (self.node != NO_NODE) & nodes[self.node] if len(nodes) else self.node < NO_NODE

    def per_step(self, weights: np.ndarray) -> float:
        """Time in a step of the pieces, each times its weight, in ns."""
        return float((self.dur_ns * weights).sum()) / self.steps

    @functools.cached_property
    def op(self) -> np.ndarray:
        """Type of each node as it was built, text."""
        return np.array([stock_op(op) for op in self.trace.nodes["op"].tolist()], object)

    @functools.cached_property
    def name(self) -> np.ndarray:
        """Name of each node, text."""
        return self.trace.nodes["name"].to_numpy(object)

    @functools.cached_property
    def on_gpu(self) -> np.ndarray:
        """Nodes that are placed on a GPU, bool."""
        return self.trace.nodes["device"].str.contains("GPU:").to_numpy(bool)

    @functools.cached_property
    def family(self) -> np.ndarray:
        """Op family of each node, uint8."""
        return families_of(self.op.tolist(), self.name.tolist())

    @functools.cached_property
    def inputs(self) -> dict[int, list[int]]:
        """Of each node the nodes whose outputs it reads."""
        return self._sources(control=False)

    @functools.cached_property
    def before(self) -> dict[int, list[int]]:
        """Of each node the nodes that only run before it."""
        return self._sources(control=True)

    def _sources(self, *, control: bool) -> dict[int, list[int]]:
        edges = self.trace.edges[self.trace.edges["control"] == int(control)]
        found: dict[int, list[int]] = {}
        for source, target in zip(edges["source"].tolist(), edges["target"].tolist(), strict=True):
            found.setdefault(target, []).append(source)
        return found

    def variable_of(self, node: int) -> int:
        """The variable that a node reads or updates; the node itself where the trace has none."""
        return next((s for s in self.inputs.get(node, ()) if self.op[s] in VARIABLES), node)

    @functools.cached_property
    def is_input(self) -> np.ndarray:
        """Nodes that deliver a batch, and wait for it, bool."""
        return np.isin(self.op, list(INPUTS))

    @functools.cached_property
    def staged_event(self) -> np.ndarray:
        """Events of stage runs, bool."""
        staged = (self.trace.tracks["kind"] == "prefetch").to_numpy(bool)
        return staged[self.trace.events["track"].to_numpy(np.int64)]

    @functools.cached_property
    def node_ns(self) -> np.ndarray:
        """Op time of each node in a step, on its main side, float64 ns."""
        events = self.trace.events[~self.staged_event]
        nodes = events["node"].to_numpy(np.int64)
        weights = events["dur_ns"].to_numpy(np.float64)
        return np.bincount(nodes, weights, len(self.op)) / self.steps

    @functools.cached_property
    def node_runs(self) -> np.ndarray:
        """How often each node ran in a step, on its main side, float64."""
        nodes = self.trace.events["node"].to_numpy(np.int64)[~self.staged_event]
        return np.bincount(nodes, minlength=len(self.op)) / self.steps

    @functools.cached_property
    def works(self) -> np.ndarray:
        """Events that keep a thread, bool: none that waits for a batch, or goes on without it."""
        tracks, events = self.trace.tracks, self.trace.events
        loose = tracks["name"].str.startswith(_NO_THREAD).to_numpy(bool)
        waits = self.is_input[events["node"].to_numpy(np.int64)]
        return ~waits & ~loose[events["track"].to_numpy(np.int64)]

    @functools.cached_property
    def work_ns(self) -> float:
        """Op time in a step of all that kept a thread, staged sides too."""
        return float(self.trace.events["dur_ns"].to_numpy(np.int64)[self.works].sum()) / self.steps

    def charged(self, which: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """The nodes that these pieces are charged to, and what they are charged.

        Returns:
          Rows of nodes, the most time first; and the time of each node in a step, float64 ns.
        """
        which = which & (self.node != NO_NODE)
        spent = np.bincount(self.node[which], self.dur_ns[which], len(self.op)) / self.steps
        order = np.lexsort((self.name, -spent))
        return tuple(order[spent[order] > 0].tolist()), spent

    @property
    def least_ns(self) -> float:
        """In no order can the threads do the ops of a step in less: an equal part of them each."""
        return self.work_ns / self.threads

    @functools.cached_property
    def threads(self) -> int:
        """Inter-op threads of the session: as it was told, else one for each core."""
        meta = self.trace.meta
        lanes = int((self.trace.tracks["kind"] == "inter_op").sum())
        return meta.inter_op_threads or meta.cores or max(1, lanes)

    @functools.cached_property
    def taking(self) -> np.ndarray:
        """The part of each piece during which a step waits in take, float64, 0 to 1."""
        items = self.trace.items
        taken = items[items["take_track"] >= 0]
        start = self.pieces["start_ns"].to_numpy(np.int64)
        waits = intervals.union(taken["take_start_ns"].to_numpy(), taken["take_end_ns"].to_numpy())
        return intervals.covered(start, start + self.dur_ns, waits) / self.dur_ns

    @functools.cached_property
    def waits(self) -> np.ndarray:
        """The part of each piece in which the step only waits, float64, 0 to 1.

        On the main side all but its ops; of these, the ones that deliver a batch. Where the path
        goes through a stage, or through what was not traced, as long as the step waits in take.
        """
        staged = (self.pieces["side"] == "stage").to_numpy(bool) | self.of_kind(_UNKNOWN)
        own = ~self.of_kind(_OP) | self.of_nodes(self.is_input)
        return np.where(staged, self.taking, own.astype(float))

    @functools.cached_property
    def running(self) -> tuple[np.ndarray, np.ndarray]:
        """How many ops run from each moment on: times ascending, and counts."""
        events = self.trace.events[self.works]
        start = events["start_ns"].to_numpy(np.int64)
        time = np.concatenate((start, start + events["dur_ns"].to_numpy(np.int64)))
        moments, place = np.unique(time, return_inverse=True)
        change = np.repeat([1.0, -1.0], len(start))
        return moments, np.cumsum(np.bincount(place, change, len(moments))).round().astype(np.int64)


def step_account(trace: Trace) -> StepAccount:
    """Charges the time of all steps of a trace.

    Raises:
      TraceError: it has no steps, or does not know which op feeds which.
    """
    path = critical_path(trace)
    segments = path.segments
    ready = (segments["kind"] == _WAIT).to_numpy(bool)
    behind = _behind(trace, segments[ready])
    rest = segments[ready].assign(kind=HANDOVER)
    others = behind.groupby("wait")["dur_ns"]
    rest["dur_ns"] -= others.sum().reindex(range(len(rest)), fill_value=0).to_numpy(np.int64)
    rest["starts"] = 1 + others.size().reindex(range(len(rest)), fill_value=0).to_numpy(np.int64)
    behind = behind.drop(columns="wait").assign(starts=1)
    parts = [segments[~ready].assign(starts=1), rest[rest["dur_ns"] > 0], behind]
    pieces = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return StepAccount(path=path, pieces=pieces)


def _behind(trace: Trace, waits: pd.DataFrame) -> pd.DataFrame:
    """What the threads of main steps ran while an op was ready that ran on them later.

    Columns: those of segments, and wait, the row among the waits.
    """
    events = trace.events
    start = events["start_ns"].to_numpy(np.int64)
    end = start + events["dur_ns"].to_numpy(np.int64)
    track = events["track"].to_numpy(np.int64)
    begin = waits["start_ns"].to_numpy(np.int64)
    finish = begin + waits["dur_ns"].to_numpy(np.int64)
    lane = track[waits["event"].to_numpy(np.int64)]
    tables = []
    for number in np.flatnonzero((trace.tracks["kind"] == "inter_op").to_numpy(bool)).tolist():
        here, ops = np.flatnonzero(lane == number), np.flatnonzero(track == number)
        # A thread runs one op at a time; where a trace says otherwise, the earlier one counts.
        low, high = start[ops], np.maximum.accumulate(end[ops])
        low = np.maximum(low, np.concatenate((low[:1], high[:-1])))
        first = np.searchsorted(high, begin[here], side="right")
        count = np.maximum(np.searchsorted(low, finish[here], side="left") - first, 0)
        wait = np.repeat(here, count)
        place = np.arange(len(wait)) - np.repeat(np.cumsum(count) - count, count)
        place += np.repeat(first, count)
        since = np.maximum(low[place], begin[wait])
        lasted = np.minimum(high[place], finish[wait]) - since
        rows = pd.DataFrame({"wait": wait, "event": ops[place], "start_ns": since})
        tables.append(rows.assign(dur_ns=lasted)[lasted > 0])
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"wait": []})
    table = table.reindex(columns=["wait", "event", "start_ns", "dur_ns"], fill_value=0)
    table = table.astype(np.int64)
    node = events["node"].to_numpy(np.int64)[table["event"].to_numpy()]
    side = waits["side"].to_numpy(object)[table["wait"].to_numpy()]
    return table.assign(kind=BEHIND, node=node, side=side)
