"""Runs and items of a trace as the walk back through it looks them up, one row at a time."""

from __future__ import annotations

import itertools

import numpy as np

from workbench.core.analysis.path.executed_graph import ExecutedGraph


class Runs:
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


class Items:
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
