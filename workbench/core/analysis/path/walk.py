"""The walk back through a trace: from the end of the last step to what it had to wait for, and on.

Each moment is explained once, so that the segments join without a hole or an overlap.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.analysis.path.executed_graph import NO_EVENT, ExecutedGraph
from workbench.core.analysis.path.rows import Items, Runs
from workbench.core.trace.items import WAIT_MIN_NS

# What the chain of a step is made of, by code.
SEGMENT_KINDS = (
    "op",
    "dispatch",
    "wait for a thread",
    "call of the step",
    "return of the step",
    "between steps",
    "put",
    "take",
    "between stage runs",
    "not traced",
    "travel",
)
OP, DISPATCH, THREAD_WAIT, CALL, RETURN, BETWEEN_STEPS, PUT, TAKE, BETWEEN_RUNS, NOT_TRACED = range(
    10
)
# A tensor goes from one task to another; the walk takes it for an op.
TRAVEL = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the chain: kind (of SEGMENT_KINDS), times in ns, event (row, or NO_EVENT)."""

    kind: int
    start_ns: int
    end_ns: int
    event: int = NO_EVENT


def walk_back(graph: ExecutedGraph, begin_ns: int, end_ns: int, last_run: int) -> list[Segment]:
    """Explains the time from `begin_ns` to `end_ns`, at which a run of the main step ended.

    Args:
      graph: of the trace.
      begin_ns, end_ns: of the stretch.
      last_run: row of that run in the trace's `runs`.

    Returns:
      Segments by time; they join, from `begin_ns` to `end_ns`. Empty ones are left out.
    """
    walk = _Walk(graph, begin_ns, end_ns)
    walk.from_end_of(last_run)
    return walk.segments[::-1]


class _Walk:
    """The segments so far, latest first, and `now`, the moment that is to be explained next."""

    def __init__(self, graph: ExecutedGraph, begin_ns: int, end_ns: int) -> None:
        self.segments: list[Segment] = []
        self._graph = graph
        self._begin = begin_ns
        self._now = end_ns
        self._producer = graph.producer
        self._begins_round = graph.trace.nodes["op"].isin(("Merge", "RefMerge")).to_numpy(bool)
        self._items = Items(graph)
        self._runs = Runs(graph)

    def from_end_of(self, run: int) -> None:
        """Walks until the begin is reached, or nothing is known of what was before."""
        where: tuple[str, int] | None = ("returned", run)
        visited: set[tuple[str, int]] = set()
        # A damaged trace may lead in a circle.
        while where is not None and where not in visited and self._now > self._begin:
            visited.add(where)
            kind, number = where
            where = getattr(self, f"_{kind}")(number)
        self._reach(NOT_TRACED, self._begin)

    def _reach(self, kind: int, moment: int, event: int = NO_EVENT) -> None:
        """Explains the time back to a moment."""
        moment = max(moment, self._begin)
        if moment < self._now:
            self.segments.append(Segment(kind, moment, self._now, event))
            self._now = moment

    def _returned(self, run: int) -> tuple[str, int] | None:
        """A main step ended: before that, its last op."""
        event = int(self._graph.last_of_run[run])
        if event == NO_EVENT:
            return self._called_or_took(run)
        self._reach(RETURN, int(self._graph.end_ns[event]))
        return "event", event

    def _event(self, event: int) -> tuple[str, int] | None:
        graph = self._graph
        self._reach(OP, int(graph.start_ns[event]), event)
        before, run = self._released_by(event), int(graph.run[event])
        item = self._items.taken_for(event)
        took = self._items.take_end[item] if item >= 0 else -1
        ended = int(graph.end_ns[before]) if before != NO_EVENT else -1
        if max(took, ended) < 0:
            return self._first_of(run, event)
        self._reach(THREAD_WAIT, max(int(graph.ready_ns[event]), took, ended), event)
        self._reach(DISPATCH, max(took, ended), event)
        return ("take", item) if took >= ended else ("event", before)

    def _released_by(self, event: int) -> int:
        """The event that an event had to wait for, NO_EVENT for none.

        Of a loop that runs as many rounds at a time as it may, the next round begins when an
        earlier one has ended, not with its inputs: what ended last before it counts.
        """
        graph, before = self._graph, int(self._producer[event])
        if before == NO_EVENT or not self._begins_round[graph.nodes[event]]:
            return before
        ready = int(graph.ready_ns[event])
        if ready - int(graph.end_ns[before]) < WAIT_MIN_NS:
            return before
        return max(before, self._last_before(int(graph.run[event]), ready), key=self._end_of)

    def _end_of(self, event: int) -> int:
        return int(self._graph.end_ns[event]) if event != NO_EVENT else -1

    def _first_of(self, run: int, event: int) -> tuple[str, int] | None:
        """An op that waits for no other: its run had begun, or what it is called by."""
        begun = self._runs.start[run] if run >= 0 else self._begin
        self._reach(THREAD_WAIT, max(int(self._graph.ready_ns[event]), begun), event)
        if run < 0:
            return None
        self._reach(CALL if self._runs.is_step[run] else BETWEEN_RUNS, begun)
        return "begun", run

    def _called_or_took(self, run: int) -> tuple[str, int] | None:
        """A step without ops that were traced."""
        self._reach(CALL, self._runs.start[run])
        return "begun", run

    def _take(self, item: int) -> tuple[str, int] | None:
        """A step took an item: where it waited, for the put of that item."""
        items = self._items
        put, take_start = items.put_end[item], items.take_start[item]
        waited = items.take_end[item] - take_start >= WAIT_MIN_NS
        # Of an item that was made before the trace knows its stage, the wait is all there is.
        if (
            put > take_start
            and waited
            and self._runs.of(items.put_track[item], items.put_run[item]) >= 0
        ):
            self._reach(TAKE, put)
            return "put", item
        self._reach(TAKE, take_start)
        run = self._runs.of(items.take_track[item], items.take_step[item])
        if run < 0:
            return None
        self._reach(CALL, self._runs.start[run])
        return "begun", run

    def _put(self, item: int) -> tuple[str, int] | None:
        """A producer put an item: where it waited for room, for the take that made room."""
        items = self._items
        begun, ended = items.put_start[item], items.put_end[item]
        run = self._runs.of(items.put_track[item], items.put_run[item])
        if begun >= 0 and ended - begun >= WAIT_MIN_NS:
            freed = items.freed_room_for(item)
            if freed >= 0:
                self._reach(PUT, items.take_end[freed])
                return "take", freed
        if run < 0:
            return None
        last = self._last_before(run, begun if begun >= 0 else self._now)
        if last == NO_EVENT:
            self._reach(PUT, self._runs.start[run])
            return "begun", run
        self._reach(PUT, int(self._graph.end_ns[last]))
        return "event", last

    def _last_before(self, run: int, moment: int) -> int:
        """The op of a run that ended last, not after a moment."""
        events = self._runs.events_of(run)
        ends = self._graph.end_ns[events]
        place = int(np.searchsorted(ends, moment, side="right")) - 1
        return int(events[place]) if place >= 0 else NO_EVENT

    def _begun(self, run: int) -> tuple[str, int] | None:
        """A run began: its client had ended the one before."""
        before = self._runs.before(run)
        if before < 0:
            return None
        if self._runs.is_step[run]:
            self._reach(BETWEEN_STEPS, self._runs.end[before])
            return "returned", before
        item = self._items.put_by(self._runs.track[before], self._runs.number[before])
        if item < 0:
            return None
        self._reach(BETWEEN_RUNS, self._items.put_end[item])
        return "put", item
