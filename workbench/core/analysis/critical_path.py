"""Critical path of a trace: the chain of ops and waits that its steps took as long as.

Over the dependencies of the graph that ran, across threads, stages and steps.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.analysis.embedding_lens.lookup_times import PART_NAMES, table_nodes
from workbench.core.analysis.executed_graph import NO_EVENT, ExecutedGraph, executed_graph
from workbench.core.analysis.lane_time import lane_table
from workbench.core.analysis.path_walk import OP, SEGMENT_KINDS, Segment, walk_back
from workbench.core.analysis.slack import slack_ns
from workbench.core.graph.op_families import family_names
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import TraceError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CriticalPath(Displayed):
    """The chain that the steps of a trace took as long as.

    Attributes:
      trace: of which it is.
      begin_ns, end_ns: the time that it explains: from the begin of the first step that ended to
        the end of the last.
      steps: how many steps ended in that time.
      segments: the chain by time: start_ns, dur_ns, kind (one of SEGMENT_KINDS), event (row in
        the trace's events, -1 for none), node (row in its nodes, -1), side ("step" or "stage").
        Their durations sum to end_ns - begin_ns exactly.
      graph: the events of the trace, by what each had to wait for.
    """

    trace: Trace
    begin_ns: int
    end_ns: int
    steps: int
    segments: pd.DataFrame
    graph: ExecutedGraph

    def __repr__(self) -> str:
        return f"CriticalPath({self.steps} steps, {self.step_ns / 1e6:.3f} ms a step)"

    @property
    def step_ns(self) -> float:
        """Time of a step, from the end of one to the end of the next, in ns."""
        return (self.end_ns - self.begin_ns) / self.steps

    @functools.cached_property
    def slack_ns(self) -> np.ndarray:
        """How much later each event could have ended without the last op of its run ending later.

        int64 [events]; 0 on the chain within a run, -1 for an event of no run.
        """
        return slack_ns(self.graph)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each node or wait on the chain, the largest first.

        Columns: name, op, family, kind, side, ns (in a step), share (of the step, 0 to 1), times
        (how often it was on the chain, in a step), slack_ns (of the node in all steps, its
        median), source (line of the user's code).
        """
        nodes, segments = self.trace.nodes, self.segments
        rows = segments.groupby(["node", "kind", "side"], sort=False, as_index=False).agg(
            ns=("dur_ns", "sum"), times=("dur_ns", "size")
        )
        known = rows["node"].to_numpy() >= 0
        at = np.maximum(rows["node"].to_numpy(), 0)

        def of_node(column: str, otherwise: Any) -> np.ndarray:
            return np.where(known, nodes[column].to_numpy(object)[at], otherwise)

        names = of_node("name", rows["kind"].to_numpy(object))
        ops = of_node("op", "")
        table = pd.DataFrame(
            {
                "name": names,
                "op": ops,
                "family": np.where(known, family_names(list(ops), list(names)), ""),
                "kind": rows["kind"],
                "side": rows["side"],
                "ns": rows["ns"] / self.steps,
                "share": rows["ns"] / (self.end_ns - self.begin_ns),
                "times": rows["times"] / self.steps,
                "slack_ns": self._median_slack(rows["node"].to_numpy()),
                "source": of_node("source", ""),
            }
        )
        return table.sort_values(["ns", "name"], ascending=[False, True], ignore_index=True)

    def by_kind(self) -> pd.DataFrame:
        """Time in a step of each kind of segment: kind, side, ns, share; the largest first."""
        return self._summed(["kind", "side"], self.segments)

    def by_family(self) -> pd.DataFrame:
        """Time in a step of the ops on the chain by op family: family, ns, share."""
        ops = self.segments[self.segments["kind"] == SEGMENT_KINDS[OP]]
        nodes = self.trace.nodes
        names = family_names(nodes["op"].tolist(), nodes["name"].tolist())
        return self._summed(["family"], ops.assign(family=np.array(names)[ops["node"].to_numpy()]))

    def by_scope(self, depth: int = 2) -> pd.DataFrame:
        """Time in a step of the ops on the chain by name scope: scope, ns, share.

        Args:
          depth: parts of the scope that count.
        """
        ops = self.segments[self.segments["kind"] == SEGMENT_KINDS[OP]]
        scopes = np.array(
            ["/".join(name.split("/")[:-1][:depth]) or name for name in self.trace.nodes["name"]],
            object,
        )
        return self._summed(["scope"], ops.assign(scope=scopes[ops["node"].to_numpy()]))

    def by_feature(self) -> pd.DataFrame:
        """Time in a step of the ops on the chain that work for an embedding table.

        Columns: feature (name of the table), lookup, gradient, update (ns of each), ns, share; the
        largest first. Without rows where the trace does not know which op feeds which.
        """
        nodes = table_nodes(self.trace)
        ops = self.segments[self.segments["kind"] == SEGMENT_KINDS[OP]]
        table = nodes.table[ops["node"].to_numpy()]
        part = nodes.part[ops["node"].to_numpy()]
        sums = np.zeros((len(nodes.names), len(PART_NAMES)))
        np.add.at(sums, (table[table >= 0], part[table >= 0]), ops["dur_ns"].to_numpy()[table >= 0])
        found = pd.DataFrame(sums / self.steps, columns=list(PART_NAMES))
        found.insert(0, "feature", list(nodes.names))
        found["ns"] = found[list(PART_NAMES)].sum(axis=1)
        found["share"] = found["ns"] * self.steps / (self.end_ns - self.begin_ns)
        on_path = found[found["ns"] > 0]
        return on_path.sort_values(["ns", "feature"], ascending=[False, True], ignore_index=True)

    @property
    def lanes(self) -> pd.DataFrame:
        """Where the time of each thread goes: see `lane_table`."""
        return lane_table(self.trace)

    def _summed(self, by: list[str], segments: pd.DataFrame) -> pd.DataFrame:
        table = segments.groupby(by, sort=False, as_index=False).agg(ns=("dur_ns", "sum"))
        table["share"] = table["ns"] / (self.end_ns - self.begin_ns)
        table["ns"] = table["ns"] / self.steps
        return table.sort_values(
            ["ns", *by], ascending=[False] + [True] * len(by), ignore_index=True
        )

    def _median_slack(self, nodes: np.ndarray) -> np.ndarray:
        """Of each node, float64; nan for a wait."""
        of_event = pd.Series(np.where(self.slack_ns < 0, np.nan, self.slack_ns))
        median = of_event.groupby(self.trace.events["node"].to_numpy()).median()
        return median.reindex(nodes).to_numpy(float)


def critical_path(trace: Trace) -> CriticalPath:
    """The chain of ops and waits that the steps of a trace took as long as.

    It is walked back from the end of the last step: each op to the input that came last, a take
    that waited to the put of its item, a put that waited to the take that made room, the first op
    of a run to the run before of the same thread.

    Args:
      trace: taken by Workbench's own tracer, see `CaptureHook`.

    Raises:
      TraceError: the trace has no steps, or does not know which op feeds which.
    """
    steps = trace.steps()
    if not len(steps):
        raise TraceError("the trace has no step, so it has no critical path; capture some steps")
    graph = executed_graph(trace)
    last = int(steps["end_ns"].to_numpy().argmax())
    begin, end = int(steps["start_ns"].min()), int(steps["end_ns"].iloc[last])
    runs = trace.runs
    row = np.flatnonzero(
        (runs["track"] == steps["track"].iloc[last]).to_numpy(bool)
        & (runs["number"] == steps["number"].iloc[last]).to_numpy(bool)
    )
    found = walk_back(graph, begin, end, int(row[0]))
    return CriticalPath(
        trace=trace,
        begin_ns=begin,
        end_ns=end,
        steps=len(steps),
        segments=_table(trace, found),
        graph=graph,
    )


def _table(trace: Trace, segments: list[Segment]) -> pd.DataFrame:
    start = np.array([s.start_ns for s in segments], np.int64)
    end = np.array([s.end_ns for s in segments], np.int64)
    event = np.array([s.event for s in segments], np.int64)
    known = event != NO_EVENT
    at = np.maximum(event, 0)
    node = trace.events["node"].to_numpy(np.int64)
    track = trace.events["track"].to_numpy(np.int64)
    staged = (trace.tracks["kind"] == "prefetch").to_numpy(bool)
    kinds = np.array([SEGMENT_KINDS[s.kind] for s in segments], object)
    of_stage = np.isin(kinds, ("put", "between stage runs"))
    if len(node):
        of_stage |= known & staged[track[at]]
    return pd.DataFrame(
        {
            "start_ns": start,
            "dur_ns": end - start,
            "kind": kinds,
            "event": event,
            "node": np.where(known, node[at], -1) if len(node) else event,
            "side": np.where(of_stage, "stage", "step"),
        }
    )
