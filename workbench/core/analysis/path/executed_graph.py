"""ExecutedGraph: the events of a trace as runs of a graph: which event an event had to wait for."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from workbench.core.graph.op_types import STAGE_TAKE
from workbench.core.staging.buffer_scope import stages_of_takes
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

NO_EVENT = -1


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ExecutedGraph:
    """The events of a trace by the session run that they are of, and the edges between their nodes.

    Attributes:
      trace: of which it is; times and rows below are the trace's.
      run: int64 [events], row of each event's run in `trace.runs`; -1 for none.
      start_ns, end_ns, ready_ns: int64 [events]; ready is when the last input was there, never
        before the last producer's end.
    """

    trace: Trace
    run: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    ready_ns: np.ndarray

    @functools.cached_property
    def nodes(self) -> np.ndarray:
        """Node of each event, int64 [events]."""
        return self.trace.events["node"].to_numpy(np.int64)

    @functools.cached_property
    def dependencies(self) -> tuple[np.ndarray, np.ndarray]:
        """(producer, consumer) for each edge between events of one run, int64 rows of events.

        Of a producer that ran several times, in a loop, the last run that ended before the
        consumer began.
        """
        edges = np.unique(self.trace.edges[["target", "source"]].to_numpy(np.int64), axis=0)
        target, source = edges.T
        begin = np.searchsorted(target, np.arange(len(self.trace.nodes) + 1))
        counts = np.diff(begin)[self.nodes]
        event = np.repeat(np.arange(len(self.nodes)), counts)
        within = np.arange(len(event)) - np.repeat(np.cumsum(counts) - counts, counts)
        node = source[begin[self.nodes[event]] + within]
        producer = self.last_run_of(self.run[event], node, self.start_ns[event])
        known = producer != NO_EVENT
        return producer[known], event[known]

    @functools.cached_property
    def producer(self) -> np.ndarray:
        """For each event its producer that ended last, int64 [events]; NO_EVENT for none."""
        producer, event = self.dependencies
        order = np.lexsort((producer, self.end_ns[producer], event))
        latest = np.full(len(self.nodes), NO_EVENT, np.int64)
        latest[event[order]] = producer[order]
        return latest

    def last_run_of(self, run: np.ndarray, node: np.ndarray, by_ns: np.ndarray) -> np.ndarray:
        """For each of these runs and nodes the event that ended last, not after a moment.

        Returns:
          Rows of events, int64; NO_EVENT where there is none.
        """
        keys, first, ends, order = self._by_node
        key = self._key(run, node)
        slot = np.searchsorted(keys, key)
        slot_in = np.minimum(slot, max(len(keys) - 1, 0))
        if not len(keys):
            return np.full(len(key), NO_EVENT, np.int64)
        known = (keys[slot_in] == key) & (run >= 0)
        # Ends, made to grow from one key to the next, are searched for all keys at once.
        place = np.searchsorted(ends, slot_in * self._span + (by_ns - self._origin), side="right")
        place -= 1
        known &= place >= first[slot_in]
        return np.where(known, order[np.maximum(place, 0)], NO_EVENT)

    @functools.cached_property
    def _origin(self) -> int:
        return int(self.start_ns.min()) if len(self.start_ns) else 0

    @functools.cached_property
    def _span(self) -> int:
        return int(self.end_ns.max()) - self._origin + 1 if len(self.end_ns) else 1

    @functools.cached_property
    def _by_node(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Keys of (run, node), the first event of each, ends by key, and events in this order."""
        key = self._key(self.run, self.nodes)
        order = np.lexsort((self.end_ns, key))
        order = order[self.run[order] >= 0]
        keys, first, slot = np.unique(key[order], return_index=True, return_inverse=True)
        return keys, first, slot * self._span + (self.end_ns[order] - self._origin), order

    def _key(self, run: np.ndarray, node: np.ndarray) -> np.ndarray:
        return run * len(self.trace.nodes) + node

    @functools.cached_property
    def last_of_run(self) -> np.ndarray:
        """The event of each run that ended last, int64 [runs]; NO_EVENT of a run without any."""
        last = np.full(len(self.trace.runs), NO_EVENT, np.int64)
        order = np.argsort(self.end_ns, kind="stable")
        order = order[self.run[order] >= 0]
        last[self.run[order]] = order
        return last

    @functools.cached_property
    def takes_of(self) -> dict[int, str]:
        """For each node that takes from a stage's buffer: the name of the stage."""
        names = self.trace.nodes["name"].to_numpy(object)
        takes = np.flatnonzero((self.trace.nodes["op"] == STAGE_TAKE).to_numpy(bool)).tolist()
        of = stages_of_takes(names[takes].tolist(), self.trace.items["stage"].unique().tolist())
        return {row: of[names[row]] for row in takes if names[row] in of}


def executed_graph(trace: Trace) -> ExecutedGraph:
    """Reads the runs of a trace.

    Raises:
      TraceError: the trace has no edges: it was taken by TensorFlow's step stats, by an older
        version, or elsewhere.
    """
    if len(trace.events) and not len(trace.edges):
        raise TraceError(
            "the trace does not know which op feeds which: TensorFlow's step stats, an older "
            "version or another tool took it; capture it again without step_stats"
        )
    start = trace.events["start_ns"].to_numpy(np.int64)
    graph = ExecutedGraph(
        trace=trace,
        run=_run_of_events(trace),
        start_ns=start,
        end_ns=start + trace.events["dur_ns"].to_numpy(np.int64),
        ready_ns=start - trace.events["delay_ns"].to_numpy(np.int64),
    )
    before = graph.producer
    ended = np.where(before == NO_EVENT, 0, graph.end_ns[np.maximum(before, 0)])
    np.maximum(graph.ready_ns, ended, out=graph.ready_ns)
    return graph


def _run_of_events(trace: Trace) -> np.ndarray:
    """Row in `trace.runs` of each event's run: ops of main steps are on lanes of threads."""
    kind = trace.tracks["kind"].to_numpy(object)
    events, runs = trace.events, trace.runs
    track, number = events["track"].to_numpy(np.int64), events["step"].to_numpy(np.int64)
    # Numbers of steps are the session's, whichever client ran them.
    event_track = np.where(kind[track] == "inter_op", -1, track)
    run_track = runs["track"].to_numpy(np.int64)
    run_track = np.where(kind[run_track] == "step", -1, run_track)
    pairs = zip(run_track.tolist(), runs["number"].tolist(), strict=True)
    row = {pair: i for i, pair in enumerate(pairs)}
    if not len(event_track):
        return np.zeros(0, np.int64)
    # One number for each pair: numpy sorts numbers ten times as fast as rows.
    low, many = int(number.min()), int(np.ptp(number)) + 1
    distinct, inverse = np.unique((event_track + 1) * many + (number - low), return_inverse=True)
    rows = [row.get((key // many - 1, key % many + low), -1) for key in distinct.tolist()]
    return np.array(rows, np.int64)[inverse]
