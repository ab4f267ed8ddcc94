"""Alignment → view: the answer, the bars of the waterfall, both runs, the nodes that changed most.

Every number an outlet shows becomes a string here; bars come as fractions of their axis.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

from workbench.core.analysis.aligned_run import EVERYTHING_ELSE
from workbench.core.analysis.alignment import CRITICAL_PATH, Alignment
from workbench.core.analysis.matched_nodes import MATCHED, STATUSES
from workbench.core.graph.op_families import FAMILY_NAMES
from workbench.viz.alignment.runs import runs_table
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain
from workbench.viz.style.short_names import without_folders
from workbench.viz.style.table import Table, table_lines

_MOST_BARS, _MOST_NODES = 12, 20
_WORDS = ("op", "became", "source")
# What takes the place of a family for a bar that waits, and for one that sums others.
WAITS, SUMS = "wait", "sum"

Pieces = tuple[tuple[str, bool], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One part of the difference.

    Attributes:
      label, about: what it is, and what became of it.
      kind: number of the op family, WAITS or SUMS.
      a, b, difference: times in a step.
      at, width: of the bar, as fractions of the axis.
    """

    label: str
    about: str
    kind: str
    a: str
    b: str
    difference: str
    at: float
    width: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignmentView:
    """An alignment, ready for every outlet.

    Attributes:
      labels: of both runs.
      sentence: the answer, as (text, strong) pieces.
      counts: what became of the nodes.
      notes: what a reader must know, a sentence each.
      bars: parts of the difference, the largest first; their total last.
      zero: where the axis is 0, a fraction of it.
      caption: what the bars sum.
      runs: facts of both.
      nodes: those that changed most.
      place: what sets it apart from another of the same page.
    """

    labels: tuple[str, str]
    sentence: Pieces
    counts: str
    notes: tuple[str, ...]
    bars: tuple[Bar, ...]
    zero: float
    caption: str
    runs: Table
    nodes: Table
    place: str = ""

    @property
    def hatch(self) -> str:
        """The name of its hatch in a page: one that stands in a hidden view fills nothing."""
        drawn = repr((self.place, self.labels, self.sentence, self.bars))
        return f"wba-hatch-{zlib.crc32(drawn.encode()):08x}"

    def describe(self) -> str:
        """The answer, notes, parts of the difference, nodes and runs."""
        rows = [(bar.label, bar.about, bar.a, bar.b, bar.difference) for bar in self.bars]
        lines = ["".join(text for text, _ in self.sentence), self.counts, *self.notes, ""]
        lines += aligned([("", "", *self.labels, "difference"), *rows], left={0, 1})
        lines += [self.caption, ""]
        for table in (self.nodes, self.runs):
            lines += [f"{table.caption}:", *table_lines(table), ""]
        return "\n".join(plain(line) for line in lines).rstrip()


def alignment_view(alignment: Alignment) -> AlignmentView:
    """The view of an alignment."""
    parts = _parts(alignment)
    low = min(0.0, *(part["difference_ns"] for part in parts))
    span = max(0.0, *(part["difference_ns"] for part in parts)) - low or 1.0
    return AlignmentView(
        labels=(alignment.a.label, alignment.b.label),
        sentence=_sentence(alignment, parts[0]),
        counts=_counts(alignment),
        notes=alignment.notes,
        bars=tuple(_bar(part, low, span) for part in parts),
        zero=-low / span,
        caption=_caption(alignment),
        runs=runs_table(alignment),
        nodes=_nodes(alignment),
    )


def _parts(alignment: Alignment) -> list[dict[str, Any]]:
    """Rows of the waterfall, those that are too many as one, and the total."""
    waterfall = alignment.waterfall
    columns = zip(*(waterfall[name].tolist() for name in waterfall.columns), strict=True)
    found = [dict(zip(waterfall.columns, row, strict=True)) for row in columns]
    rows = [{**row, **_named(row)} for row in found]
    if len(rows) > _MOST_BARS + 1:
        rest = rows[_MOST_BARS:]
        rows = [*rows[:_MOST_BARS], _sum(rest, f"everything else ({len(rest)})", alignment)]
    return [*rows, _sum(rows, "Step time", alignment)]


def _named(row: dict[str, Any]) -> dict[str, str]:
    if row["kind"] == EVERYTHING_ELSE:
        return {"label": "no op, less what ran at the same time", "about": "", "bar": SUMS}
    if row["kind"] != "op":
        return {
            "label": row["kind"],
            "about": "on a stage" * (row["side"] == "stage"),
            "bar": WAITS,
        }
    nodes = f"{format.integer(row['nodes'])} node{'s' * (row['nodes'] != 1)}"
    status = "" if row["status"] == MATCHED else f"{row['status']}, "
    family = row["family"]
    return {"label": family, "about": status + nodes, "bar": str(FAMILY_NAMES.index(family))}


def _sum(rows: Sequence[dict[str, Any]], label: str, alignment: Alignment) -> dict[str, Any]:
    a = sum(row["a_total_ns"] for row in rows)
    b = sum(row["b_total_ns"] for row in rows)
    a_ns, b_ns = a / alignment.a.steps, b / alignment.b.steps
    return {
        "label": label,
        "about": "",
        "bar": SUMS,
        "a_total_ns": a,
        "b_total_ns": b,
        "a_ns": a_ns,
        "b_ns": b_ns,
        "difference_ns": b_ns - a_ns,
    }


def _bar(part: dict[str, Any], low: float, span: float) -> Bar:
    difference = part["difference_ns"]
    return Bar(
        label=part["label"],
        about=part["about"],
        kind=part["bar"],
        a=format.duration(part["a_ns"]),
        b=format.duration(part["b_ns"]),
        difference=format.difference(difference),
        at=(min(0.0, difference) - low) / span,
        width=abs(difference) / span,
    )


def _sentence(alignment: Alignment, first: dict[str, Any]) -> Pieces:
    a, b, difference = alignment.a, alignment.b, alignment.difference_ns
    interval = alignment.difference_interval_ns
    times = format.duration(a.step_ns), format.duration(b.step_ns)
    about = "a single traced step of one, so without an interval"
    if interval:
        low, high = (format.difference(edge) for edge in interval)
        about = f"95{format.NBSP}% interval of the difference {low} to {high}, of traced steps"
    part = f"{first['label']}{', ' * bool(first['about'])}{first['about']}"
    largest = f" The largest part is {part}: {format.difference(first['difference_ns'])}."
    if difference == 0 and first["difference_ns"] == 0:
        return (("No difference", True), (f": a step takes {times[0]} in both.", False))
    if interval and interval[0] <= 0 <= interval[1]:
        lead = f": a step takes {times[0]} in {a.label} and {times[1]} in {b.label} ({about})."
        return (("No clear difference", True), (lead + largest, False))
    more = f"{format.duration(abs(difference))} {'more' if difference > 0 else 'less'}"
    return (
        (f"A step of {b.label} takes {times[1]}, ", False),
        (more, True),
        (f" than one of {a.label} with {times[0]} ({about}).{largest}", False),
    )


def _counts(alignment: Alignment) -> str:
    nodes = alignment.nodes
    most = nodes[["nodes_a", "nodes_b"]].max(axis=1).groupby(nodes["status"]).sum()
    counted = [f"{format.integer(int(most[s]))} {s}" for s in STATUSES if s in most.index]
    return f"Nodes: {', '.join(counted)}."


def _caption(alignment: Alignment) -> str:
    if alignment.basis == CRITICAL_PATH:
        return (
            "Time in a step that is on the critical path: it sums to the step time. Ops that ran "
            "beside the path are not in it."
        )
    return "Op time in a step, and what it leaves or exceeds: together the step time."


def _nodes(alignment: Alignment) -> Table:
    table = alignment.df
    changed = table[(table["difference_ns"] != 0) | (table["path_difference_ns"].fillna(0) != 0)]
    shown = changed.head(_MOST_NODES)
    columns = [
        ("Node", shown["name"]),
        ("op", shown["op"]),
        ("became", shown["status"]),
        (alignment.a.label, shown["a_ns"].map(format.duration)),
        (alignment.b.label, shown["b_ns"].map(format.duration)),
        ("difference", shown["difference_ns"].map(format.difference)),
    ]
    if alignment.basis == CRITICAL_PATH:
        columns.append(("on the path", shown["path_difference_ns"].map(format.difference)))
    if shown["source"].any():
        columns.append(("source", shown["source"].map(without_folders)))
    more = f", {_MOST_NODES} of {format.integer(len(changed))}" * (len(changed) > _MOST_NODES)
    caption = f"Op time of nodes in a step, wherever they ran; of a stage, in one of its runs{more}"
    cells = zip(*(values.tolist() for _, values in columns), strict=True)
    # a group of nodes is named after their scope, which is no node
    known = {*alignment.a.trace.nodes["name"], *alignment.b.trace.nodes["name"]}
    nodes = tuple(name if name in known else "" for name in shown["name"].tolist())
    heads = tuple(head for head, _ in columns)
    words = frozenset(place for place, head in enumerate(heads) if head in _WORDS)
    return Table(caption, heads, tuple(cells), nodes=nodes, words=words)
