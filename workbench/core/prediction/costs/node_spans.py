"""Trace and graph → how long each node ran in a step or an item, on which side, and its inputs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.prediction.costs.added_ops import AddedOp, added_ops
from workbench.core.prediction.costs.disturbed import few_and_long, is_disturbed, undisturbed
from workbench.core.prediction.costs.handling import Handling, handling_of
from workbench.core.prediction.costs.shared_cores import shared_cores
from workbench.core.prediction.costs.whole_steps import ClientTime, client_time_of, step_scales_of
from workbench.core.simulation.intra_op import splits_work
from workbench.core.trace import intervals
from workbench.core.trace.trace import Trace

# Within this time of an op's end the executor finds the next one; later, it lacked a core.
_FOUND_NS = 10_000
# Steps of which each node's time is kept.
_SOME_STEPS = 8


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class InputSpans:
    """Every run of one input that a trace saw, in order of their ends.

    Attributes:
      node: its number in the graph; of what a function's client fetches that of an argument.
      start_ns, end_ns: int64 [runs].
    """

    node: int
    start_ns: np.ndarray
    end_ns: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SideSpans:
    """What a trace saw of a stage in one item, or of the compute side in one step.

    Attributes:
      ns: float64 [nodes], time of each node, all its runs together, with all the cores that it can
        use; inputs left out.
      wall_ns: the same, but of a node that calls a function the time in which any of the
        function's ops ran or the next one was found; less than `ns` where some ran side by side.
      calls: the nodes that call a function of which the ops were seen.
      ran: the nodes that ran, inputs too.
      runs: float64 [nodes], how often each ran.
      added: ops that the graph lacks, with their places in it.
      unmatched_ns: time of the others that it lacks.
      threads: producers, or clients.
      capacity: of the stage's buffer.
    """

    ns: np.ndarray
    wall_ns: np.ndarray
    calls: Bools
    ran: Bools
    runs: np.ndarray
    added: tuple[AddedOp, ...]
    unmatched_ns: float
    threads: int
    capacity: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class NodeSpans:
    """Where the time of a trace went, by nodes of a graph.

    Attributes:
      step: the compute side.
      stages: what ran ahead, by name of the stage.
      inputs: what delivered the items, wherever it ran.
      client: of a step outside of its ops.
      step_scales: time of all ops of each step against the mean.
      handling: what the executor took beside the ops.
      splits: bool [nodes], which split their work among threads.
      split_cores: that such an op keeps busy when no other runs.
      each_step: float64 [nodes] of some steps, time of each node of the compute side in it.
    """

    step: SideSpans
    stages: Mapping[str, SideSpans]
    inputs: tuple[InputSpans, ...]
    client: ClientTime
    step_scales: tuple[float, ...]
    handling: Handling
    splits: Bools
    split_cores: float = 1.0
    each_step: tuple[np.ndarray, ...] = ()


def node_spans(trace: Trace, view: GraphView) -> NodeSpans:
    """Counts a trace by the nodes of the graph that its session ran.

    A node that runs ahead may be named "<stage>/<node>" there. Ops inside a function count for the
    node that calls it, unless that one has a time of its own.
    """
    count = _Count(trace, view)
    main = count.on("inter_op", "")
    client = client_time_of(trace, main, count.is_input[main["node"].to_numpy()])
    count.share_cores(client.ns)
    main = count.on("inter_op", "")
    steps = int(main["step"].nunique())
    clients = int((trace.tracks["kind"] == "step").sum())
    stages = {}
    for name, capacity in _stages(trace).items():
        runs = trace.runs[trace.runs["track"].isin(count.tracks("prefetch", name))]
        stages[name] = count.side(
            count.on("prefetch", name),
            len(runs),
            name,
            threads=int(runs["track"].nunique()),
            capacity=capacity,
        )
    return NodeSpans(
        step=count.side(main, steps, "", threads=max(1, clients)),
        stages={name: side for name, side in stages.items() if side.threads},
        inputs=count.inputs(),
        client=client,
        step_scales=step_scales_of(main[~count.is_input[main["node"].to_numpy()]]),
        handling=handling_of(main),
        splits=count.splits(),
        split_cores=count.split_cores,
        each_step=count.each_step(main),
    )


def _stages(trace: Trace) -> dict[str, int]:
    """Capacity of every stage that ran, by name."""
    ran = trace.tracks["stage"][trace.tracks["kind"] == "prefetch"]
    return {str(name): trace.meta.capacity.get(name, 1) for name in ran.unique()}


class _Count:
    """Sums events of a trace by nodes of a graph."""

    def __init__(self, trace: Trace, view: GraphView) -> None:
        self._trace = trace
        self._view = view
        self._names = trace.nodes["name"].astype(str).tolist()
        self._matches: dict[bool, tuple[np.ndarray, np.ndarray]] = {}
        ops = trace.nodes["op"].astype(object)
        self.is_input = ops.isin(op_types.INPUTS).to_numpy(bool)
        self._counts = ~self.is_input & ~ops.isin(op_types.BUFFER_OPS).to_numpy(bool)
        events = undisturbed(trace)
        self._events = events.assign(alone_ns=events["dur_ns"].astype(float))
        row = events["node"].to_numpy()
        runs = np.bincount(row, minlength=len(self._names))
        total = np.bincount(row, weights=events["dur_ns"], minlength=len(self._names))
        self._splits = splits_work(ops.tolist(), total / np.maximum(runs, 1)) & self._counts
        self.split_cores = 1.0

    def share_cores(self, client_ns: float) -> None:
        """Takes out of the times of ops what others took from them.

        Args:
          client_ns: of a step outside of its ops.
        """
        if not self._trace.meta.cores:
            return
        row = self._events["node"].to_numpy()
        ops = self._counts[row]
        events = self._events[ops]
        shared = shared_cores(
            events,
            self._splits[events["node"].to_numpy()],
            cores=self._trace.meta.cores,
            busy_ns=self._busy_ns(client_ns),
        )
        self._events.loc[ops, "alone_ns"] = shared.alone_ns
        self.split_cores = shared.split_cores

    def _busy_ns(self, client_ns: float) -> float | None:
        """CPU time of the ops of all steps; None where it is not known."""
        untraced, steps = self._trace.meta.untraced, self._trace.steps()
        if untraced is None or untraced.cpu_ns is None:
            return None
        of_inputs = self.is_input[self._events["node"].to_numpy()]
        inputs_ns = float(self._events["dur_ns"][of_inputs].sum())
        count = int((~is_disturbed(steps)).sum())
        busy_ns = (untraced.cpu_ns - client_ns) * count
        return busy_ns - inputs_ns * (self._trace.meta.source_cores or 0.0)

    def splits(self) -> Bools:
        """Which nodes of the graph split their work, bool [nodes]."""
        node, exact = self._matched(False)
        return self._view.mask(np.unique(node[exact & self._splits]))

    def tracks(self, kind: str, stage: str) -> np.ndarray:
        """Rows of the tracks of one kind and stage."""
        tracks = self._trace.tracks
        return np.flatnonzero((tracks["kind"] == kind) & (tracks["stage"] == stage))

    def on(self, kind: str, stage: str) -> pd.DataFrame:
        """The events on these tracks."""
        return self._events[self._events["track"].isin(self.tracks(kind, stage))]

    def side(
        self, events: pd.DataFrame, times: int, stage: str, *, threads: int, capacity: int = 1
    ) -> SideSpans:
        """What `times` steps or items took, divided by their number."""
        node, exact = self._matched(bool(stage))
        row = events["node"].to_numpy()
        lasted = events["alone_ns"].to_numpy()
        totals = np.bincount(row, weights=lasted, minlength=len(node)) * self._counts
        often = np.bincount(row, minlength=len(node)).astype(float)
        seen = often > 0
        # Inlined ops of a function count where the call itself has no time.
        called = self._view.mask(node[exact & seen])
        kept = exact | ((node >= 0) & ~called[node])
        count = max(1, times)

        def summed(of_rows: np.ndarray) -> np.ndarray:
            whole: np.ndarray = np.bincount(
                node[kept], weights=of_rows[kept], minlength=len(self._view)
            )
            return whole / count

        ns = summed(totals)
        wall_ns = ns.copy()
        inlined = kept & ~exact & seen & self._counts
        for called_node in np.unique(node[inlined]).tolist():
            own = events[(inlined & (node == called_node))[row]]
            begin = own["start_ns"].to_numpy(np.int64)
            first, last = intervals.union(
                begin, begin + own["dur_ns"].to_numpy(np.int64) + _FOUND_NS
            )
            wall_ns[called_node] = (last - first - _FOUND_NS).sum() / count
        each_ns = totals / count
        added, placed = added_ops(self._view, self._names, self._trace.edges, node, each_ns)
        return SideSpans(
            ns=ns,
            wall_ns=wall_ns,
            calls=self._view.mask(np.unique(node[inlined])),
            ran=self._view.mask(node[kept & seen]),
            runs=summed(often * self._counts),
            added=added,
            unmatched_ns=float(each_ns[(node < 0) & ~placed].sum()),
            threads=threads,
            capacity=capacity,
        )

    def each_step(self, events: pd.DataFrame) -> tuple[np.ndarray, ...]:
        """What the nodes took in each of some steps, those that a graph lacks left out."""
        node, _ = self._matched(False)
        known = node >= 0
        found = []
        for _, own in itertools.islice(events.groupby("step"), _SOME_STEPS):
            row, lasted = own["node"].to_numpy(), own["alone_ns"].to_numpy()
            totals = np.bincount(row, weights=lasted, minlength=len(node)) * self._counts
            found.append(np.bincount(node[known], weights=totals[known], minlength=len(self._view)))
        return tuple(found)

    def inputs(self) -> tuple[InputSpans, ...]:
        """Runs of the inputs that the graph has, or that its client fetches as its arguments."""
        rows: dict[int, list[int]] = {}
        arguments = self._view.arguments
        for row in np.flatnonzero(self.is_input).tolist():
            node = max(int(self._matched(staged)[0][row]) for staged in (False, True))
            if node < 0 and arguments:
                node = arguments[0]
            if node >= 0:
                rows.setdefault(node, []).append(row)
        spans = []
        for node, own in rows.items():
            events = self._events[self._events["node"].isin(own)]
            # Of a stage's items nothing is left out yet that came late for once.
            events = events[~few_and_long(events["dur_ns"].to_numpy(np.int64))]
            start = events["start_ns"].to_numpy(np.int64)
            end = start + events["dur_ns"].to_numpy(np.int64)
            order = np.argsort(end, kind="stable")
            spans.append(InputSpans(node=node, start_ns=start[order], end_ns=end[order]))
        return tuple(spans)

    def _matched(self, staged: bool) -> tuple[np.ndarray, np.ndarray]:
        """For each node of the trace the one of the graph, or -1; and whether it is it."""
        if staged not in self._matches:
            found = [self._match(name, staged) for name in self._names]
            nodes, exact = zip(*found, strict=True) if found else ((), ())
            self._matches[staged] = np.array(nodes, np.int64), np.array(exact, bool)
        return self._matches[staged]

    def _match(self, name: str, staged: bool) -> tuple[int, bool]:
        index = self._view.index
        if name in index:
            return index[name], True
        if staged:
            # A copy has the name of its stage, or of what widened it, before its own.
            name = name.partition("/")[2]
            if name in index:
                return index[name], True
        while "/" in name:
            name = name.rpartition("/")[0]
            if index.get(name) in self._view.functions:
                return index[name], False
        return -1, False
