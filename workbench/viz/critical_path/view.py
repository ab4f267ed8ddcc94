"""Critical path view: what bounds a step, as finished words, fractions and tables."""

from __future__ import annotations

import dataclasses
import math
import os.path
from collections.abc import Mapping
from typing import Any

import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.embedding_lens.lookup_times import PART_NAMES
from workbench.core.analysis.lane_time import GAP_NAMES
from workbench.core.analysis.path.walk import OP, SEGMENT_KINDS
from workbench.core.graph.op_families import FAMILY_NAMES
from workbench.viz.critical_path.sentence import Pieces, sentence
from workbench.viz.critical_path.slack import Slack, slack_of, slack_words
from workbench.viz.critical_path.step import ShownStep, fastest_and_slowest, shown_step
from workbench.viz.critical_path.waterfall import Bar, waterfall
from workbench.viz.style import colors, format
from workbench.viz.style.table import Table

_MOST_NODES = 20
_MOST_SCOPES = 12
_SMALL_SHARE = 0.002
# What a table of tenths of a percent would show as nothing.
_TINY_SHARE = 0.0005


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """An op family, or what is waited for: its time in a step and its share of the path."""

    name: str
    family: int
    time: str
    share: str
    width: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepBars:
    """The waterfall of one step, with its heading."""

    heading: str
    bars: tuple[Bar, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeRow:
    """A node on the path, or what is waited for; `source` is a file and line, with its path.

    `node` is the node's name, "" of a wait that is before no op.
    """

    name: str
    node: str
    op: str
    kind: str
    family: int
    side: str
    time: str
    share: str
    slack: str
    source: str
    source_title: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class CriticalPathView:
    """A critical path, ready for every outlet.

    Attributes:
      title: what was traced.
      sentence: the answer, as (text, strong) pieces.
      step: the waterfall of one step. others: of the fastest and the slowest step beside it.
      parts_caption: what `parts` is the mean of. parts: op families, then waits, largest first.
      slack_caption: heading of `slack`. slack: of groups of ops of that step.
      kinds, scopes: tables. features: of the embedding tables on the path; None without any.
      lanes: where the time of each thread goes.
      nodes_caption: how many nodes `nodes` shows. nodes: the largest on the path.
      staged: whether a stage is in the trace.
    """

    title: str
    sentence: Pieces
    step: StepBars
    others: tuple[StepBars, ...]
    parts_caption: str
    parts: tuple[Part, ...]
    slack_caption: str
    slack: Slack
    kinds: Table
    scopes: Table
    features: Table | None
    lanes: Table
    nodes_caption: str
    nodes: tuple[NodeRow, ...]
    staged: bool


def critical_path_view(path: CriticalPath, step: int | None = None) -> CriticalPathView:
    """The view of a critical path.

    Args:
      path: what `workbench.critical_path` returned.
      step: number of the step that the waterfall shows; by default the one nearest to the median.

    Raises:
      OptionError: the trace holds no such step.
    """
    shown = shown_step(path, step)
    rows = path.df
    count = format.integer(len(rows))
    most = f"The largest {_MOST_NODES} of {count}" if len(rows) > _MOST_NODES else f"All {count}"
    return CriticalPathView(
        title=_title(path),
        sentence=sentence(path),
        step=_bars(path, shown, f"Step {shown.number}"),
        others=_others(path, shown.number),
        parts_caption=f"Share of the path, {_mean(path)}",
        parts=_parts(path),
        slack_caption=f"Slack in step {shown.number}",
        slack=slack_of(path, shown.number),
        kinds=_kinds(path),
        scopes=_scopes(path),
        features=_features(path),
        lanes=_lanes(path),
        nodes_caption=f"{most} ops and waits on the path, {_mean(path)}",
        nodes=tuple(_node(row) for row in rows.head(_MOST_NODES).to_dict("records")),
        staged=bool(len(path.trace.items)),
    )


def _title(path: CriticalPath) -> str:
    """What was traced; of a cluster with the worker."""
    title = path.trace.meta.title
    return title if path.client in ("", title) else f"{title}, steps of {path.client}".lstrip(", ")


def _bars(path: CriticalPath, step: ShownStep, name: str) -> StepBars:
    heading = f"{name}, {format.duration(step.duration_ns)}"
    return StepBars(heading=heading, bars=waterfall(path, step))


def _others(path: CriticalPath, shown: int) -> tuple[StepBars, ...]:
    fastest, slowest = fastest_and_slowest(path)
    if fastest == slowest:
        return ()
    named = ((fastest, "Fastest step"), (slowest, "Slowest step"))
    return tuple(
        _bars(path, shown_step(path, number), f"{words}, {number}")
        for number, words in named
        if number != shown
    )


def _mean(path: CriticalPath) -> str:
    return "one step" if path.steps == 1 else f"mean of {format.integer(path.steps)} steps"


def _parts(path: CriticalPath) -> tuple[Part, ...]:
    families = path.by_family().rename(columns={"family": "name"})
    kinds = path.by_kind().groupby("kind", sort=False, as_index=False)[["ns", "share"]].sum()
    waits = kinds[kinds["kind"] != SEGMENT_KINDS[OP]].rename(columns={"kind": "name"})
    waits = waits.sort_values("ns", ascending=False)
    # Of several that hardly count, one row.
    small = waits["share"] < _SMALL_SHARE
    if small.sum() > 1:
        rest = {"name": "other waits", **waits[small][["ns", "share"]].sum()}
        waits = pd.concat([waits[~small], pd.DataFrame([rest])])
    rows = pd.concat([families, waits])
    columns = (rows[column].tolist() for column in ("name", "ns", "share"))
    return tuple(
        Part(
            name=name[:1].upper() + name[1:],
            family=FAMILY_NAMES.index(name) if name in FAMILY_NAMES else colors.WAIT,
            time=format.duration(ns),
            share=format.share(share),
            width=float(share),
        )
        for name, ns, share in zip(*columns, strict=True)
    )


def _kinds(path: CriticalPath) -> Table:
    frame = path.by_kind()
    if not len(path.trace.items):
        return _table("By kind", "Kind", frame["kind"].tolist(), frame, path)
    names = [
        f"{kind}, {_side(side)}" for kind, side in zip(frame["kind"], frame["side"], strict=True)
    ]
    return _table("By kind and side", "Kind", names, frame, path)


def _scopes(path: CriticalPath) -> Table:
    frame = path.by_scope()
    shown = _folded(frame, min(len(frame), _MOST_SCOPES), "scope", "scope")
    return _table("Ops by name scope", "Scope", shown["scope"].tolist(), shown, path)


def _features(path: CriticalPath) -> Table | None:
    frame = path.by_feature()
    if not len(frame):
        return None
    count = min(int((frame["share"] >= _TINY_SHARE).sum()), _MOST_SCOPES)
    shown = _folded(frame, count, "feature", "table")
    parts = list(PART_NAMES)
    rows = tuple(
        (
            row["feature"],
            *(format.duration(row[part]) if row[part] else format.UNKNOWN for part in parts),
            format.duration(row["ns"]),
            format.share(row["share"]),
        )
        for row in shown.to_dict("records")
    )
    heads = ("Table", *parts, "a step", "share")
    # of all others together there is no name
    names = (*frame["feature"].iloc[:count].tolist(), *[""] * (len(rows) - count))
    return Table(f"Ops by embedding table, {_mean(path)}", heads, rows, tables=names)


def _lanes(path: CriticalPath) -> Table:
    """Shares of each thread's time; a name that no thread spends time on has no column."""
    frame = path.lanes.rename(columns={"busy_ns": "busy"})
    names = [name for name in ("busy", *GAP_NAMES) if frame[name].any()]
    rows = tuple(
        (row["lane"], *(_part_of(row[name], row["wall_ns"]) for name in names))
        for row in frame.to_dict("records")
    )
    return Table("Where the time of each thread goes", ("Thread", *names), rows)


def _part_of(ns: int, wall_ns: int) -> str:
    return format.share(ns / wall_ns) if ns else format.UNKNOWN


def _folded(frame: pd.DataFrame, count: int, column: str, what: str) -> pd.DataFrame:
    """The first rows, and the sum of the others as one more, which says how many they are."""
    shown, rest = frame.iloc[:count], frame.iloc[count:]
    if not len(rest):
        return shown
    name = f"{format.integer(len(rest))} other {what}" + "s" * (len(rest) != 1)
    others = {column: name, **rest.sum(numeric_only=True)}
    return pd.concat([shown, pd.DataFrame([others])], ignore_index=True)


def _table(
    caption: str, head: str, names: list[str], frame: pd.DataFrame, path: CriticalPath
) -> Table:
    rows = tuple(
        (name, format.duration(ns), format.share(share))
        for name, ns, share in zip(
            names, frame["ns"].tolist(), frame["share"].tolist(), strict=True
        )
    )
    return Table(f"{caption}, {_mean(path)}", (head, "a step", "share"), rows)


def _side(side: str) -> str:
    return "in the stage" if side == "stage" else "in the step"


def _node(row: Mapping[Any, Any]) -> NodeRow:
    ops = row["kind"] == SEGMENT_KINDS[OP]
    source, slack = str(row["source"]), float(row["slack_ns"])
    return NodeRow(
        name=row["name"],
        node=row["name"] if row["op"] else "",
        op=row["op"],
        kind=row["family"] if ops else row["kind"],
        family=FAMILY_NAMES.index(row["family"]) if ops else colors.WAIT,
        side=row["side"],
        time=format.duration(float(row["ns"])),
        share=format.share(float(row["share"])),
        slack=format.UNKNOWN if math.isnan(slack) else slack_words(slack),
        source=os.path.basename(source),
        source_title=source,
    )
