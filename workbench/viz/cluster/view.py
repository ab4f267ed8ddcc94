"""ClusterReport → its tables and sentences, every string finished."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from workbench.core.analysis.cluster_report import ClusterReport
from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.cluster.step_split import PARTS
from workbench.core.cluster.traffic import GRADIENT, LOOKUP, OTHER, PACKED, VARIABLE
from workbench.number_words import decimal
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain, wrapped
from workbench.viz.style.table import Table, table_lines

# What is less of a chain is one row.
_LEAST_SHARE = 0.01
_PART_WORDS = ("stage", "compute", "token", "queue", "wait for ps", "other")
_KIND_WORDS = {
    LOOKUP: "lookups",
    VARIABLE: "variables",
    GRADIENT: "gradients of variables",
    PACKED: "several together",
    OTHER: "others",
}


@dataclasses.dataclass(frozen=True)
class ClusterView:
    """What is shown: tables, then sentences."""

    title: str
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]

    def describe(self) -> str:
        """Tables below each other, then sentences."""
        blocks = ["\n".join([table.caption, *table_lines(table)]) for table in self.tables]
        blocks += ["\n".join(wrapped(text)) for text in self.sentences]
        return "\n\n".join([self.title, *blocks])


def cluster_view(report: ClusterReport) -> ClusterView:
    """What a report shows."""
    return ClusterView(
        title=plain(report.trace.meta.title) or "Cluster",
        tables=(_clocks(report), _split(report), *_chains(report), _edges(report), _kinds(report)),
        sentences=tuple(plain(text) for text in _sentences(report)),
    )


def _clocks(report: ClusterReport) -> Table:
    task = report.trace.meta.task
    rows = tuple(
        (plain(str(name)), format.duration(offset), f"±{format.duration(error)}")
        for name, offset, error in report.clocks.itertuples(index=False, name=None)
    )
    return Table(f"Clocks, against that of {plain(task)}", ("task", "ahead", "error"), rows)


def _split(report: ClusterReport) -> Table:
    mean = report.split.groupby("client")[["dur_ns", *PARTS]].mean()
    count = report.split["client"].value_counts().to_dict()
    rows = tuple(
        (
            plain(str(client)),
            format.integer(count[client]),
            *(format.duration(float(row[name])) for name in ("dur_ns", *PARTS)),
        )
        for client, row in mean.iterrows()
    )
    return Table("A step's time, mean", ("task", "steps", "step", *_PART_WORDS), rows)


def _chains(report: ClusterReport) -> list[Table]:
    """What the longest chain of a worker's steps is made of, by task."""
    if not report.paths:
        return []
    rows = tuple(row for path in report.paths for row in _chain(path))
    heads = ("for", "what", "where", "a step", "share")
    return [Table("The longest chain of a step, mean", heads, rows, words=frozenset({1, 2}))]


def _chain(path: CriticalPath) -> Iterator[tuple[str, ...]]:
    found = path.by_task()
    small = found["share"] < _LEAST_SHARE
    rest = {"kind": "the rest", "place": "", **found[small][["ns", "share"]].sum()}
    for row in [*found[~small].to_dict("records"), *([rest] if small.any() else [])]:
        what = str(row["kind"]), plain(str(row["place"]))
        times = format.duration(float(row["ns"])), format.share(float(row["share"]))
        yield (plain(path.client), *what, *times)


def _edges(report: ClusterReport) -> Table:
    rows = tuple(map(_edge_row, report.edges.itertuples(index=False)))
    heads = ("for", "edge", "Recv", "bytes")
    return Table("What travels in a step", heads, rows, words=frozenset({1}))


def _edge_row(row: Any) -> tuple[str, ...]:
    return (
        plain(row.client),
        f"{plain(row.sender)} → {plain(row.receiver)}",
        _count(row.recvs),
        format.size(row.bytes),
    )


def _kinds(report: ClusterReport) -> Table:
    sums = report.owners.groupby(["client", "kind"], as_index=False).agg(
        owners=("owner", "nunique"), recvs=("recvs", "sum"), bytes=("bytes", "sum")
    )
    rows = tuple(map(_kind_row, sums.itertuples(index=False)))
    return Table(
        "What it belongs to",
        ("for", "of", "different", "Recv", "bytes"),
        rows,
        words=frozenset({1}),
    )


def _kind_row(row: Any) -> tuple[str, ...]:
    return (
        plain(row.client),
        _KIND_WORDS[row.kind],
        format.integer(int(row.owners)),
        _count(row.recvs),
        format.size(row.bytes),
    )


def _count(value: float) -> str:
    whole = round(value)
    return format.integer(whole) if abs(value - whole) < 0.05 else decimal(value, 1)


def _sentences(report: ClusterReport) -> list[str]:
    said = [report.straggler.words]
    for each in report.findings:
        said.append(f"{each.title} ({format.duration(each.cost_ns)} a step). {each.evidence}")
        said.append(f"Mend: {each.mend}.")
    lost = report.trace.meta.lost_transfers
    if lost:
        said.append(
            f"{format.integer(lost)} transfers are missing, which servers did not record; the "
            "numbers above are without them."
        )
    left = report.trace.meta.left_out
    said += [f"Left out: {format.integer(count)} {what}." for what, count in left.items()]
    return said
