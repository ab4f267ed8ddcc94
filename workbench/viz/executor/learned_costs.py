"""Learned costs as tables: one of the executors, and one of each executor's critical nodes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import pandas as pd

from workbench.core.executor.learned_costs import LearnedCosts
from workbench.viz.style import format
from workbench.viz.style.table import Table, table_html, table_lines

# The nodes that decide how long a step takes.
_MOST_NODES = 20
_NOTHING = (
    "No cost-model executor is alive in this process, or none has run a step; ask for one with "
    "executor_options('cost_model')."
)


def learned_costs_tables(costs: LearnedCosts) -> list[Table]:
    """What each executor has learned, then its nodes, by longest path to an end."""
    executors = costs.executors()
    if executors.empty:
        return []
    tables = [_executors(executors)]
    for number in executors.index[executors["learned"]].tolist():
        nodes = costs.nodes[costs.nodes["executor"] == number]
        tables.append(_nodes(number, nodes))
    return tables


def learned_costs_text(tables: Sequence[Table]) -> str:
    """Learned costs as plain text."""
    blocks = ["\n".join([table.caption, *table_lines(table)]) for table in tables]
    return "\n\n".join(blocks) or _NOTHING


def learned_costs_html(tables: Sequence[Table]) -> str:
    """Learned costs as HTML that needs nothing else."""
    return "\n".join(map(table_html, tables)) or f"<p>{html.escape(_NOTHING)}</p>"


def _executors(executors: pd.DataFrame) -> Table:
    # Those that have something to show first, the largest of them on top.
    ordered = executors.reset_index().sort_values(
        ["learned", "nodes", "executor"], ascending=[False, False, True]
    )
    rows = tuple(
        (
            str(row["executor"]),
            "yes" if row["learned"] else "not yet",
            row["order"] or format.UNKNOWN,
            format.integer(row["steps"]),
            format.integer(row["nodes"]),
            format.duration(row["work_ns"]) if row["learned"] else format.UNKNOWN,
            format.duration(row["critical_path_ns"]) if row["learned"] else format.UNKNOWN,
        )
        for row in _rows(ordered)
    )
    heads = (
        "Executor",
        "learned",
        "nodes run",
        "steps measured",
        "nodes",
        "all work",
        "critical path",
    )
    return Table("Cost-model executors of this process", heads, rows)


def _nodes(number: int, nodes: pd.DataFrame) -> Table:
    costly = nodes[nodes["average_ns"] > 0]
    ordered = costly.sort_values(["critical_path_ns", "node"], ascending=[False, True])
    rows = tuple(
        (
            row["node"],
            row["op"],
            format.integer(row["count"]),
            format.duration(row["average_ns"]),
            format.duration(row["critical_path_ns"]),
            format.duration(row["slack_ns"]),
            format.UNKNOWN if row["batch"] < 0 else format.integer(row["batch"]),
        )
        for row in _rows(ordered.head(_MOST_NODES))
    )
    shown = f", {_MOST_NODES} of {format.integer(len(costly))} nodes" * (len(costly) > _MOST_NODES)
    return Table(
        f"Executor {number}: longest path to an end of the step{shown}",
        ("Node", "op", "runs", "average", "to the end", "slack", "task"),
        rows,
    )


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): cell for name, cell in row.items()} for row in frame.to_dict("records")]
