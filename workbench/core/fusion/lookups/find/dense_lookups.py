"""Stock lookups of dense ids: rows of variables, gathered by TensorFlow's `embedding_lookup`.

variable ─ ResourceGather(handle, ids), or GatherV2(its value, ids, axis 0) → [*ids, dim]
"""

from __future__ import annotations

from typing import Any

from workbench.core.fusion.lookups.lookup import FLOATS, StockLookup, gathers_rows, require_plain
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import Refusal, RefusedError
from workbench.core.graph.op_types import VARIABLES

# What gives ids to the gathers of a lookup of sparse ids.
_OF_SPARSE_IDS = ("Unique", "DynamicPartition")


def find_dense_lookups(graph: Definition) -> tuple[list[StockLookup], list[Refusal]]:
    """The gathers of rows of float variables that a grouped op can do, in order, and the others.

    What gathers single numbers, other types, or from anything but a variable is no lookup, nor is
    the part of one of sparse ids.
    """
    lookups: list[StockLookup] = []
    refused: list[Refusal] = []
    for node in graph.ordered:
        if not _is_lookup(graph, node):
            continue
        try:
            lookups.append(_lookup(graph, node))
        except RefusedError as refusal:
            refused.append(Refusal(name=node.name, reason=str(refusal)))
    return lookups, refused


def _is_lookup(graph: Definition, node: Any) -> bool:
    """Whether a node gathers vectors of a variable."""
    if node.op not in ("ResourceGather", "GatherV2"):
        return False
    if graph.source(graph.same(graph.inputs(node)[1])).op in _OF_SPARSE_IDS:
        return False
    shape = graph.shape(f"{node.name}:0")
    if shape is not None and len(shape) < 2:
        return False
    table = graph.same(graph.inputs(node)[0])
    read = graph.made_by(table, "ReadVariableOp")
    source = graph.source(table if read is None else graph.same(graph.inputs(read)[0]))
    is_handle = source.op in ("Placeholder", "_Arg", "VarHandleOp")
    own = is_handle if read is not None or node.op == "ResourceGather" else source.op in VARIABLES
    return own and _dtype(node) in FLOATS


def _dtype(node: Any) -> int:
    return int(node.attr["dtype" if node.op == "ResourceGather" else "Tparams"].type)


def _lookup(graph: Definition, node: Any) -> StockLookup:
    table, ids = graph.inputs(node)[:2]
    id_dtype = node.attr["Tindices"].type
    require_plain(graph, node, dtype=_dtype(node), id_dtype=id_dtype)
    if not gathers_rows(graph, node, graph.same(ids)):
        raise RefusedError("it gathers along another axis than the first")
    shape, asked = graph.shape(f"{node.name}:0"), graph.shape(ids)
    if shape is None or asked is None or len(shape) != len(asked) + 1 or shape[-1] < 1:
        raise RefusedError("the number of columns of its table is not known")
    if not asked:
        raise RefusedError("it looks up one id alone")
    return StockLookup(
        name=node.name,
        combines=node.name,
        table=table,
        is_resource=node.op == "ResourceGather",
        unique="",
        gather="",
        dtype=_dtype(node),
        id_dtype=id_dtype,
        dim=shape[-1],
        combiner="sum",
        ids=ids,
        indices="",
        dense_shape="",
        prune=False,
        default_id=None,
        result=node.name,
        device=node.device,
    )
