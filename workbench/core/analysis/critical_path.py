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
from workbench.core.analysis.lane_time import lane_table
from workbench.core.analysis.path.executed_graph import NO_EVENT, ExecutedGraph, executed_graph
from workbench.core.analysis.path.slack import slack_ns
from workbench.core.analysis.path.walk import OP, SEGMENT_KINDS, TRAVEL, Segment, walk_back
from workbench.core.cluster.client import clients, of_client, slowest_client
from workbench.core.cluster.transfer_events import with_transfers
from workbench.core.graph.op_families import family_names
from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import OptionError, TraceError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CriticalPath(Displayed):
    """The chain that the steps of a trace took as long as.

    Attributes:
      trace: of which it is; of a cluster's the part of one worker.
      client: that worker; "" in a trace of one task.
      begin_ns, end_ns: the time that it explains: from the begin of the first step that ended to
        the end of the last.
      steps: how many steps ended in that time.
      segments: the chain by time. The durations sum to end_ns - begin_ns exactly.
        - start_ns, dur_ns.
        - kind: one of SEGMENT_KINDS.
        - event: row in the trace's events, -1 for none.
        - node: row in its nodes, -1 for none; of a travel the tensor.
        - side: "step" or "stage".
      graph: the events of the trace, and what travels, by what each had to wait for.
      rows: of each event of that graph the row in the trace's events, int64, -1 of what travels.
    """

    trace: Trace
    client: str
    begin_ns: int
    end_ns: int
    steps: int
    segments: pd.DataFrame
    graph: ExecutedGraph
    rows: np.ndarray

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
        found = np.full(len(self.trace.events), -1, np.int64)
        ops = self.rows >= 0
        found[self.rows[ops]] = slack_ns(self.graph)[ops]
        return found

    @property
    def df(self) -> pd.DataFrame:
        """One row for each node or wait on the chain, the largest first.

        Columns:

        - name, op, family, kind, side.
        - ns: in a step.
        - share: of the step, 0 to 1.
        - times: how often it was on the chain, in a step.
        - slack_ns: of the node in all steps, its median.
        - source: the line of the user's code.
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

    def by_task(self) -> pd.DataFrame:
        """Time in a step of each kind of segment by where it is: kind, place, ns, share.

        place is the task of an op, or of a thread that one waits for. Of what travels it is "worker
        0 → ps 0". It is "" of the rest, and in a trace of one task.
        """
        task = tasks_of(self.trace.nodes["device"])
        task[task == ""] = self.client
        segments = self.segments
        node = segments["node"].to_numpy(np.int64)
        place = np.where(node >= 0, task[node], "") if len(task) else np.full(len(node), "", object)
        travels = (segments["kind"] == SEGMENT_KINDS[TRAVEL]).to_numpy(bool)
        transfers = self.trace.transfers
        source = dict(zip(transfers["node"].tolist(), transfers["source"].tolist(), strict=True))
        place[travels] = [f"{task[source[row]]} → {task[row]}" for row in node[travels].tolist()]
        return self._summed(["kind", "place"], segments.assign(place=place))

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


def critical_path(trace: Trace, client: str | None = None) -> CriticalPath:
    """The chain of ops and waits that the steps of a trace took as long as.

    It is walked back from the end of the last step:

    - from an op to the input that came last. Through what travels this leads to the op on another
      task that made it.
    - from a take that waited to the put of its item.
    - from a put that waited to the take that made room.
    - from the first op of a run to the run before of the same thread.

    Args:
      trace: taken by Workbench's own tracer, see `CaptureHook`; or of a cluster.
      client: of a cluster's trace the worker whose steps it is of, such as "worker 0"; None takes
        the one whose steps take longest.

    Raises:
      TraceError: the trace has no steps, or does not know which op feeds which.
      OptionError: it has no steps of that worker.
    """
    if not len(trace.steps()):
        raise TraceError("the trace has no step, so it has no critical path; capture some steps")
    chosen = slowest_client(trace) if client is None else client
    part = of_client(trace, chosen)
    steps = part.steps()
    if not len(steps):
        names = ", ".join(map(repr, clients(trace)))
        raise OptionError(f"the trace has no step of client {chosen!r}; it has steps of {names}")
    seen, rows = with_transfers(part, chosen)
    graph = executed_graph(seen)
    last = int(steps["end_ns"].to_numpy().argmax())
    begin, end = int(steps["start_ns"].min()), int(steps["end_ns"].iloc[last])
    runs = part.runs
    row = np.flatnonzero(
        (runs["track"] == steps["track"].iloc[last]).to_numpy(bool)
        & (runs["number"] == steps["number"].iloc[last]).to_numpy(bool)
    )
    found = walk_back(graph, begin, end, int(row[0]))
    return CriticalPath(
        trace=part,
        client=chosen,
        begin_ns=begin,
        end_ns=end,
        steps=len(steps),
        segments=_table(seen, found, rows),
        graph=graph,
        rows=rows,
    )


def _table(trace: Trace, segments: list[Segment], rows: np.ndarray) -> pd.DataFrame:
    start = np.array([s.start_ns for s in segments], np.int64)
    end = np.array([s.end_ns for s in segments], np.int64)
    event = np.array([s.event for s in segments], np.int64)
    known = event != NO_EVENT
    at = np.maximum(event, 0)
    node = trace.events["node"].to_numpy(np.int64)
    track = trace.events["track"].to_numpy(np.int64)
    staged = (trace.tracks["kind"] == "prefetch").to_numpy(bool)
    kinds = np.array([SEGMENT_KINDS[s.kind] for s in segments], object)
    if len(rows):
        travels = known & (rows[at] < 0)
        kinds[travels & (kinds == SEGMENT_KINDS[OP])] = SEGMENT_KINDS[TRAVEL]
    of_stage = np.isin(kinds, ("put", "between stage runs"))
    if len(node):
        of_stage |= known & staged[track[at]]
    return pd.DataFrame(
        {
            "start_ns": start,
            "dur_ns": end - start,
            "kind": kinds,
            "event": np.where(known, rows[at], NO_EVENT) if len(rows) else event,
            "node": np.where(known, node[at], -1) if len(node) else event,
            "side": np.where(of_stage, "stage", "step"),
        }
    )
