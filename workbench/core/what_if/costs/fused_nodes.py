"""A graph with fused lookups → which table each of their ops works for, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable, find_tables
from workbench.core.graph.graph_view import GraphView
from workbench.core.graph.workbench_ops import HAND_ON, WORKBENCH_OPS
from workbench.core.what_if.costs.fused_costs import FusedCosts, LookupLoad, kind_of
from workbench.core.what_if.costs.likened_costs import LIKENED

_PREFIX = "Workbench"
_HANDS_ON = ("Identity", "ReadVariableOp")
_LOOKUPS = frozenset(op.type for op in WORKBENCH_OPS.values() if op.is_part)
# They work for all lookups of a table at once.
_OF_TABLE = ("WorkbenchRowsApply", "WorkbenchGroupedApply")


def fused_ns(
    view: GraphView, costs: FusedCosts, ids: Mapping[str, IdStatistics]
) -> tuple[dict[int, float], set[str], set[str]]:
    """What the ops of fused lookups take in a step.

    Args:
      view: the graph with fused lookups.
      costs: of such ops on this machine.
      ids: what each table is asked for, by its name.

    Returns:
      ns by number of the node; the names of tables of which the ids or the size are not known; and
      the types of ops whose costs are not.
    """
    tables = {table.node: table for table in find_tables(view)}
    ns_of: dict[int, float] = {}
    unknown: set[str] = set()
    unmeasured: set[str] = set()
    for node, names in _tables_of(view, tables).items():
        kind = kind_of(view.ops[node])
        read = [tables[name] for name in names]
        loads = {table.name: _load(table, ids.get(table.name), kind) for table in read}
        known = [load for load in loads.values() if load]
        ns = costs.ns(view.ops[node], known) if known else None
        if len(known) < len(loads):
            unknown |= {name for name, load in loads.items() if load is None}
        elif ns is None:
            unmeasured.add(view.ops[node])
        else:
            ns_of[node] = ns
    return ns_of, unknown, unmeasured


def _load(table: EmbeddingTable, ids: IdStatistics | None, kind: str) -> LookupLoad | None:
    if ids is None or ids.unique_share is None or table.dim is None or table.bytes is None:
        return None
    lookups = 1 if kind.startswith(_OF_TABLE) else max(1, len(table.lookups))
    each = ids.per_batch / lookups
    return LookupLoad(
        ids=each, unique=each * ids.unique_share, dim=table.dim, table_bytes=float(table.bytes)
    )


def _tables_of(view: GraphView, tables: Mapping[str, EmbeddingTable]) -> dict[int, tuple[str, ...]]:
    """The tables that each op of a fused lookup works for: what it is connected with reads them."""
    ours = {
        node
        for node, op in enumerate(view.ops)
        if op.startswith(_PREFIX) and op not in LIKENED and op != HAND_ON
    }
    scopes = {scope: table.node for table in tables.values() for scope in table.lookups}
    tables_of: dict[int, tuple[str, ...]] = {}
    for node in ours:
        scope = scopes.get(view.names[node])
        reads = [_read(view, source) for source, _ in view.inputs(node)]
        read = tuple(dict.fromkeys(name for name in reads if name in tables))
        if scope and len(read) < 2:
            tables_of[node] = (scope,)
        elif read:
            tables_of[node] = read
    # By data from op to op: ids to the lookup, and from there to its gradient.
    beside: dict[int, set[int]] = {node: set() for node in ours}
    for source, _, target, _ in view.data.tolist():
        if source in ours and target in ours:
            beside[source].add(target)
            beside[target].add(source)
    last = list(tables_of)
    while last:
        node = last.pop()
        for other in beside[node]:
            if other not in tables_of and not kind_of(view.ops[other]).startswith(_OF_TABLE):
                tables_of[other] = tables_of[node]
                last.append(other)
    # A gradient of several lookups reads their ids once more, and nothing of the lookup itself.
    asked = {node: set(view.inputs(node)) for node in ours}
    lookups = [node for node in tables_of if view.ops[node] in _LOOKUPS]
    for node in ours - set(tables_of):
        if kind_of(view.ops[node]).startswith(_OF_TABLE):
            continue
        shared = {other: len(asked[node] & asked[other]) for other in lookups}
        nearest = max(shared, key=shared.__getitem__, default=None)
        if nearest is not None and shared[nearest]:
            tables_of[node] = tables_of[nearest]
    return tables_of


def _read(view: GraphView, node: int) -> str:
    """The name of a variable, of which a node may only hand on the value."""
    while view.ops[node] in _HANDS_ON and (inputs := view.inputs(node)):
        node = inputs[0][0]
    return view.names[node]
