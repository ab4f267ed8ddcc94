"""The walk back through a trace: from the end of the last step to what it had to wait for, and on.

Each moment is explained once, so that the segments join without a hole or an overlap.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from workbench.core.analysis.executed_graph import NO_EVENT, ExecutedGraph
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
        self._items = _Items(graph)
        self._runs = _Runs(graph)

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
        put, asked = items.put_end[item], items.take_start[item]
        waited = items.take_end[item] - asked >= WAIT_MIN_NS
        # Of an item that was made before the trace knows its stage, the wait is all there is.
        if (
            put > asked
            and waited
            and self._runs.of(items.put_track[item], items.put_run[item]) >= 0
        ):
            self._reach(TAKE, put)
            return "put", item
        self._reach(TAKE, asked)
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


class _Runs:
    """The runs of a trace as lists."""

    def __init__(self, graph: ExecutedGraph) -> None:
        trace = graph.trace
        runs = trace.runs
        self.track = runs["track"].to_numpy(np.int64).tolist()
        self.number = runs["number"].to_numpy(np.int64).tolist()
        self.start = runs["start_ns"].to_numpy(np.int64).tolist()
        self.end = runs["end_ns"].to_numpy(np.int64).tolist()
        step = (trace.tracks["kind"] == "step").to_numpy(bool)
        self.is_step = step[runs["track"].to_numpy(np.int64)].tolist()
        self._row = {pair: i for i, pair in enumerate(zip(self.track, self.number, strict=True))}
        by_end = np.lexsort((graph.end_ns, graph.run))
        bounds = np.searchsorted(graph.run[by_end], np.arange(len(runs) + 1))
        self._events, self._bounds = by_end, bounds.tolist()
        order = np.lexsort((runs["start_ns"].to_numpy(), runs["track"].to_numpy())).tolist()
        self._before = dict.fromkeys(order, -1)
        for one, other in itertools.pairwise(order):
            if self.track[one] == self.track[other]:
                self._before[other] = one

    def of(self, track: int, number: int) -> int:
        """Row of a run, -1 for none."""
        return self._row.get((track, number), -1)

    def before(self, run: int) -> int:
        """The run before, of the same client or producer; -1 for none."""
        return self._before[run]

    def events_of(self, run: int) -> np.ndarray:
        """Events of a run, by their ends."""
        return self._events[self._bounds[run] : self._bounds[run + 1]]


class _Items:
    """The items of a trace as lists, and which one an event or a run stands for."""

    def __init__(self, graph: ExecutedGraph) -> None:
        items = graph.trace.items
        self._graph = graph
        for name in ("put_start", "put_end", "take_start", "take_end"):
            setattr(self, name, items[f"{name}_ns"].to_numpy(np.int64).tolist())
        for name in ("put_track", "put_run", "take_track", "take_step"):
            setattr(self, name, items[name].to_numpy(np.int64).tolist())
        self._stage = items["stage"].to_numpy(object).tolist()
        rows = range(len(items))
        took = [i for i in rows if self.take_end[i] >= 0]
        self._taken = {(self._stage[i], self.take_step[i]): i for i in took}
        self._put = {(self.put_track[i], self.put_run[i]): i for i in rows if self.put_end[i] >= 0}
        self._stages_of = self._stages_by_node()
        self._by_take: dict[str, tuple[np.ndarray, list[int]]] = {}
        for stage in set(self._stage):
            own = [i for i in rows if self._stage[i] == stage and self.take_end[i] >= 0]
            own.sort(key=self.take_end.__getitem__)
            self._by_take[stage] = (np.array([self.take_end[i] for i in own], np.int64), own)

    put_start: list[int]
    put_end: list[int]
    take_start: list[int]
    take_end: list[int]
    put_track: list[int]
    put_run: list[int]
    take_track: list[int]
    take_step: list[int]

    def _stages_by_node(self) -> dict[int, list[str]]:
        """For each node the stages whose take feeds it."""
        found: dict[int, list[str]] = {}
        takes = self._graph.takes_of
        edges = self._graph.trace.edges
        for source, target in zip(edges["source"].tolist(), edges["target"].tolist(), strict=True):
            if source in takes:
                found.setdefault(target, []).append(takes[source])
        return found

    def taken_for(self, event: int) -> int:
        """The item that an event's node took its inputs from, the last one taken; -1 for none."""
        graph = self._graph
        stages = self._stages_of.get(int(graph.nodes[event]))
        if not stages:
            return -1
        number = int(graph.trace.events["step"].iloc[event])
        taken = [self._taken.get((stage, number), -1) for stage in stages]
        known = [i for i in taken if i >= 0 and self.take_end[i] <= graph.start_ns[event]]
        return max(known, key=self.take_end.__getitem__, default=-1)

    def put_by(self, track: int, run: int) -> int:
        """The item that a stage run put, -1 for none."""
        return self._put.get((track, run), -1)

    def freed_room_for(self, item: int) -> int:
        """The item whose take let a waiting put in, -1 for none."""
        ends, own = self._by_take[self._stage[item]]
        place = int(np.searchsorted(ends, self.put_end[item], side="right")) - 1
        # An item that was handed straight over made no room for itself.
        if place >= 0 and own[place] == item:
            place -= 1
        if place < 0 or ends[place] < self.put_start[item]:
            return -1
        return own[place]
