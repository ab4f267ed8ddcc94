"""Trace → time of each table's lookups, of their gradients and of the table's update."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection

import numpy as np
import pandas as pd

from workbench.core.analysis.embedding_lens.readers import lookup_of, row_readers, table_names
from workbench.core.analysis.mean_interval import mean_interval
from workbench.core.graph.op_families import GRADIENTS, UPDATE, family_of
from workbench.core.graph.op_types import VARIABLES
from workbench.core.trace.trace import Trace

LOOKUP, GRADIENT, UPDATING = range(3)
PART_NAMES = ("lookup", "gradient", "update")
_PARTS = 3
_NONE = -1
# What an optimizer calls the scope in which it updates a variable.
_UPDATE_SCOPE = re.compile(r"(^|/)update_")
_GRADIENT_SCOPE = re.compile(rf"(?:^|(?<=/)){GRADIENTS}")
# They hold a value and take no time.
_NO_WORK = VARIABLES | {"Const", "Identity", "NoOp"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartTime:
    """What a part of a table's work takes.

    Attributes:
      ops: nodes that do it; those that only hold or hand on a value do not count.
      ns: their op time in a step; of ops in a stage, in one of its runs.
      interval_ns: 95 % interval of that mean, steps taken as independent; None of a single step.
    """

    ops: int
    ns: float
    interval_ns: tuple[float, float] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTimes:
    """What a table takes in a step.

    Attributes:
      lookups: how many lookups read it.
      lookup: from its ids to the combined vectors.
      gradient: the gradients of its lookups.
      update: the ops in the scope of the optimizer's op that updates it.
    """

    lookups: int
    lookup: PartTime
    gradient: PartTime
    update: PartTime


_NOTHING = PartTime(ops=0, ns=0.0, interval_ns=None)
NO_TIMES = TableTimes(lookups=0, lookup=_NOTHING, gradient=_NOTHING, update=_NOTHING)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TableNodes:
    """Which nodes of a trace work for which embedding table.

    Attributes:
      names: of the tables, and one for what works for several at once, if anything does.
      lookups: int64 [tables], how many lookups read each.
      table: int64 [nodes], the table that each node works for; -1 for none.
      part: int64 [nodes], LOOKUP, GRADIENT or UPDATING; of a node of no table -1.
    """

    names: tuple[str, ...]
    lookups: np.ndarray
    table: np.ndarray
    part: np.ndarray


def lookup_times(trace: Trace) -> dict[str, TableTimes]:
    """What the tables of which rows were read took, by name of their variable.

    A variable that a function gets as an argument is called by the scope that reads it. Ops that
    work for several tables at once are listed as if they had a table of their own.

    Args:
      trace: with edges; without them no op is known to read a variable.
    """
    nodes = table_nodes(trace)
    of_node = np.where(nodes.table == _NONE, _NONE, nodes.table * _PARTS + nodes.part)
    parts = _part_times(trace, of_node, len(nodes.names) * _PARTS)
    return {
        name: TableTimes(
            lookups=int(nodes.lookups[i]),
            lookup=parts[i * _PARTS + LOOKUP],
            gradient=parts[i * _PARTS + GRADIENT],
            update=parts[i * _PARTS + UPDATING],
        )
        for i, name in enumerate(nodes.names)
    }


def table_nodes(trace: Trace) -> TableNodes:
    """Which nodes look up rows of a table, make their gradient, or update it.

    Args:
      trace: as of `lookup_times`.
    """
    stages = {*trace.tracks["stage"], *trace.items["stage"]} - {""}
    names = [_own_name(name, stages) for name in trace.nodes["name"]]
    ops = trace.nodes["op"].tolist()
    consumers = _consumers(trace)
    readers = row_readers(ops, consumers)
    tables = sorted(readers, key=lambda variable: names[variable])
    reads = Counter(node for variable in tables for node in readers[variable])
    together = {node for node, count in reads.items() if count > 1}
    scopes: dict[str, int] = {}
    for number, variable in enumerate(tables):
        for node in readers[variable]:
            if node not in together:
                scopes[lookup_of(names[node], ops[node])] = number
    table = np.full(len(names), _NONE, np.int64)
    part = table.copy()
    for node, (name, op) in enumerate(zip(names, ops, strict=True)):
        found = lookup_part(name, scopes) if op not in _NO_WORK else None
        if found:
            table[node], part[node] = found
    updated: Counter[int] = Counter()
    for number, variable in enumerate(tables):
        for node in _update_nodes(names, ops, consumers.get(variable, [])):
            updated[node] += 1
            table[node], part[node] = number, UPDATING
    of_own = {variable: readers[variable] for variable in tables}
    called = [table_names(names, ops, of_own)[variable] for variable in tables]
    lookups = np.bincount(list(scopes.values()), minlength=len(tables))
    if together:
        # What several tables share is none's.
        called.append(f"{max(reads.values())} tables in one op")
        lookups = np.append(lookups, len(together))
        for node in together:
            table[node], part[node] = len(tables), LOOKUP
        for node, count in updated.items():
            if count > 1:
                table[node] = len(tables)
    return TableNodes(names=tuple(called), lookups=lookups, table=table, part=part)


def _own_name(name: str, stages: Collection[str]) -> str:
    """A node's name without the scope of the stage that copied it."""
    scope, _, rest = name.partition("/")
    return rest if rest and scope in stages else name


def _consumers(trace: Trace) -> dict[int, list[int]]:
    edges = trace.edges[trace.edges["control"] == 0]
    found: dict[int, list[int]] = {}
    for source, target in zip(edges["source"].tolist(), edges["target"].tolist(), strict=True):
        found.setdefault(source, []).append(target)
    return found


def lookup_part(name: str, scopes: dict[str, int]) -> tuple[int, int] | None:
    """The table and the part that a node works for; None for neither lookup nor gradient."""
    of_gradient = _GRADIENT_SCOPE.search(name) is not None
    parts = _GRADIENT_SCOPE.sub("", name, count=1).split("/")
    if of_gradient:
        parts = [part.removesuffix("_grad") for part in parts]
    for length in range(len(parts), 0, -1):
        table = scopes.get("/".join(parts[:length]))
        if table is not None:
            return table, GRADIENT if of_gradient else LOOKUP
    return None


def _update_nodes(names: list[str], ops: list[str], reads: list[int]) -> set[int]:
    """The ops that update a variable, and those in the scope that they have to themselves."""
    nodes = set()
    for update in reads:
        if family_of(ops[update]) != UPDATE:
            continue
        nodes.add(update)
        scope = f"{names[update].rpartition('/')[0]}/"
        if _UPDATE_SCOPE.search(scope):
            nodes |= {
                node
                for node, name in enumerate(names)
                if name.startswith(scope) and ops[node] not in _NO_WORK
            }
    return nodes


def _part_times(trace: Trace, of_node: np.ndarray, count: int) -> list[PartTime]:
    """Time of each part in a step; what a stage does for it counts once for each of its runs."""
    events, tracks = trace.events, trace.tracks
    part = of_node[events["node"].to_numpy(np.int64)]
    track = events["track"].to_numpy(np.int64)
    stage = np.where(tracks["kind"] == "prefetch", tracks["stage"], "")
    table = pd.DataFrame(
        {
            "part": part,
            "stage": stage[track],
            "run": np.where(stage[track] == "", _NONE, track),
            "step": events["step"].to_numpy(np.int64),
            "ns": events["dur_ns"].to_numpy(np.float64),
        }
    )[part != _NONE]
    sums = table.groupby(["stage", "part", "run", "step"], sort=False)["ns"].sum().reset_index()
    runs_of = pd.Series(stage[trace.runs["track"].to_numpy(np.int64)]).value_counts()
    runs = {str(name): int(many) for name, many in runs_of.items()}
    ran = np.bincount(events["node"].to_numpy(np.int64), minlength=len(of_node)) > 0
    nodes = np.bincount(of_node[ran & (of_node != _NONE)], minlength=count)
    mean = np.zeros(count)
    margin = np.zeros(count)
    for (name, number), own in sums.groupby(["stage", "part"], sort=False)["ns"]:
        values = np.zeros(max(runs.get(name, 0), len(own)))
        values[: len(own)] = own.to_numpy()
        mean[number] += values.mean()
        interval = mean_interval(values)
        margin[number] += ((interval[1] - interval[0]) / 2) ** 2 if interval else np.inf
    half = np.sqrt(margin)
    return [
        PartTime(
            ops=int(nodes[i]),
            ns=float(mean[i]),
            interval_ns=(float(mean[i] - half[i]), float(mean[i] + half[i]))
            if np.isfinite(half[i])
            else None,
        )
        for i in range(count)
    ]
