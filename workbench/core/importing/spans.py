"""Spans that another tool recorded, as columns → Trace. Needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.core.trace.builder import client_name
from workbench.core.trace.intervals import parents
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.op_columns import NODE_COLUMNS
from workbench.core.trace.tables import column_names
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

NO_GROUP = -1
SUMMARIES = "summaries of other lanes"
# Lanes of a device on which a profiler's viewer sums up what stands on the others.
SUMMARY_LANES = frozenset(
    f"{what} {lane}" for what in ("TensorFlow", "Framework") for lane in ("Name Scope", "Ops")
) | {"Steps", "XLA Modules", "Source code"}

_STEP_NAME = re.compile(r"(?:train|test|predict|step|profilerstep)[ #](\d{1,18})", re.I)
# "dense/MatMul:MatMul": a node and its type, but "Iterator::Root" is neither.
_NODE_AND_TYPE = re.compile(r"(?P<node>.*[^:]):(?P<op>[A-Z_]\w*)", re.S)
_WITH_ID = re.compile(r"(?P<name>.*\S)[ /]-?\d{6,}", re.S)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Spans:
    """What threads did, one row for each span, in any order.

    Attributes:
      start_ns, end_ns: int64 [spans], in this order.
      node: int64 [spans], rows of `nodes`.
      thread: int64 [spans], rows of `threads`.
      group: int64 [spans], what the tool counts as one step; NO_GROUP where it does not say.
      step: int64 [spans], number of the step whose run the span marks; -1 for work.
      nodes: name, op, device; each once.
      threads: names.
    """

    start_ns: np.ndarray
    end_ns: np.ndarray
    node: np.ndarray
    thread: np.ndarray
    group: np.ndarray
    step: np.ndarray
    nodes: Sequence[tuple[str, str, str]]
    threads: Sequence[str]


def step_number(name: str) -> int:
    """The step that a span of this name marks: 12 of "train 12"; -1 for any other name."""
    found = _STEP_NAME.fullmatch(name)
    return int(found[1]) if found else -1


def name_and_op(name: str) -> tuple[str, str]:
    """Node and op type in the name of a span; what names no type is a type of its own."""
    found = _NODE_AND_TYPE.fullmatch(name)
    return (found["node"], found["op"]) if found else (name, name)


def trace_of(spans: Spans, meta: TraceMeta) -> Trace:
    """The Trace of these spans.

    Marks of steps become runs; of marks inside each other on one thread the inner ones. Without
    any, one step goes from the first span to the last. A span is of the step of its group, else
    of the step that had begun last when it started, or of the first one.

    Raises:
      TraceError: there is no span.
    """
    work = np.flatnonzero(spans.step < 0)
    if not len(work):
        raise TraceError(
            "it holds no span of an op or a call, so there is nothing to show; "
            "expected events with a start and a duration"
        )
    work = work[np.argsort(spans.start_ns[work], kind="stable")]
    steps = _steps(spans)
    clients = int(steps["track"].max()) + 1
    threads, thread = np.unique(spans.thread[work], return_inverse=True)
    names = [spans.threads[each] for each in threads.tolist()]
    labels = _labels(names)
    ran, node = np.unique(spans.node[work], return_inverse=True)
    start, end = spans.start_ns[work], spans.end_ns[work]
    events = {
        "start_ns": start,
        "dur_ns": end - start,
        "delay_ns": np.zeros(len(work), np.int64),
        "node": node,
        "track": clients + thread,
        "step": _step_of(start, spans.group[work], steps),
    }
    system_names = {a: b for a, b in zip(labels, names, strict=True) if a != b}
    return Trace(
        events=pd.DataFrame(events),
        nodes=pd.DataFrame([spans.nodes[row] for row in ran.tolist()], columns=NODE_COLUMNS),
        tracks=_tracks(clients, labels),
        runs=steps[column_names("runs")],
        items=pd.DataFrame({name: [] for name in column_names("items")}),
        meta=dataclasses.replace(meta, threads="recorded", thread_names=system_names),
    )


def _tracks(clients: int, labels: Sequence[str]) -> pd.DataFrame:
    """Main steps, then threads."""
    rows = [(client_name(i), "step", i, "") for i in range(clients)]
    rows += [(label, "inter_op", i, "") for i, label in enumerate(labels)]
    return pd.DataFrame(rows, columns=column_names("tracks"))


def _steps(spans: Spans) -> pd.DataFrame:
    """Runs of steps by start: track, number, start_ns, end_ns, group."""
    marks = _innermost(spans, np.flatnonzero(spans.step >= 0))
    if not len(marks):
        whole = (0, 1, int(spans.start_ns.min()), int(spans.end_ns.max()), NO_GROUP)
        return pd.DataFrame([whole], columns=[*column_names("runs"), "group"])
    marks = marks[np.argsort(spans.start_ns[marks], kind="stable")]
    steps = pd.DataFrame(
        {
            "track": pd.factorize(spans.thread[marks])[0],
            "number": spans.step[marks],
            "start_ns": spans.start_ns[marks],
            "end_ns": spans.end_ns[marks],
            "group": spans.group[marks],
        }
    )
    # Steps of a training and of a test that one thread runs have the same numbers.
    doubled = steps["track"].isin(steps["track"][steps.duplicated(["track", "number"])])
    steps.loc[doubled, "number"] = steps[doubled].groupby("track").cumcount() + 1
    return steps


def _innermost(spans: Spans, marks: np.ndarray) -> np.ndarray:
    """The marks that contain no other mark of their thread."""
    outer = np.zeros(len(marks), bool)
    for thread in np.unique(spans.thread[marks]):
        own = np.flatnonzero(spans.thread[marks] == thread)
        around = parents(spans.start_ns[marks[own]], spans.end_ns[marks[own]])
        outer[own[around[around >= 0]]] = True
    return marks[~outer]


def _step_of(start: np.ndarray, group: np.ndarray, steps: pd.DataFrame) -> np.ndarray:
    numbers = steps["number"].to_numpy(np.int64)
    begun = np.searchsorted(steps["start_ns"].to_numpy(), start, side="right") - 1
    step = numbers[np.maximum(begun, 0)]
    known = steps[steps["group"] != NO_GROUP].drop_duplicates("group")
    if len(known):
        order = known.sort_values("group")
        ids = order["group"].to_numpy(np.int64)
        place = np.minimum(np.searchsorted(ids, group), len(ids) - 1)
        step = np.where(ids[place] == group, order["number"].to_numpy(np.int64)[place], step)
    return step


def _labels(names: Sequence[str]) -> list[str]:
    """Names of threads without the system's ids, each once: "tf_Compute", "tf_Compute 2"."""
    taken: set[str] = set()
    labels = []
    for name in names:
        found = _WITH_ID.fullmatch(name)
        label = stem = found["name"] if found else name
        count = 1
        while label in taken:
            count += 1
            label = f"{stem} {count}"
        taken.add(label)
        labels.append(label)
    return labels
