"""Stock lookups of sparse ids: TensorFlow's `embedding_lookup_sparse` in a finished graph.

How TensorFlow builds a safe one, from ids [d_0, …, d_n] to embeddings [d_0, …, d_(n-1), dim];
parts in brackets are there or not:

    ids ─ [SparseReshape to 2-D] ─ [GatherV2 where id ≥ 0] ─ SparseFillEmptyRows ─┐
    table ─ [gathered at Unique(ids) ─ [shortened]]
      ── SparseSegment{Sum,Mean,SqrtN}(table, ids, rows)
        ─ [Select: zeros where the row was empty] ─ [Reshape to the shape of the ids]

Ids are made unique and rows gathered where TensorFlow takes the table to be on another device,
which it does with resource variables. One that is not safe lacks SparseFillEmptyRows, and its
embeddings end with the last row that has an id. How ids with weights are combined instead says
weighted/lookups.py. Lookups of several shards are refused.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.find.safe_lookups import safe_ids
from workbench.core.fusion.lookups.find.shortened_rows import shortened_rows
from workbench.core.fusion.lookups.lookup import (
    COMBINERS,
    NO_ROWS,
    WAITS,
    StockLookup,
    gathers_rows,
    require_plain,
)
from workbench.core.fusion.lookups.weighted.lookups import (
    WeightedSum,
    weighted_ids,
    weighted_sum,
)
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import Refusal, RefusedError, scope_of
from workbench.core.graph.op_types import FLOAT32

_WEIGHTED = ("SegmentSum", "SegmentSumV2")
_GATHERS = ("GatherV2", "ResourceGather")


def find_lookups(graph: Definition) -> tuple[list[StockLookup], list[Refusal]]:
    """The stock lookups of a graph that a grouped op can do, in its order, and the others."""
    lookups: list[StockLookup] = []
    refused: list[Refusal] = []
    for node in graph.ordered:
        try:
            if node.op in COMBINERS:
                lookups.append(_lookup(graph, node))
            elif node.op.removesuffix("WithNumSegments") in COMBINERS:
                raise RefusedError("the number of its rows is given")
            elif node.op in _WEIGHTED and _rows_of(graph, graph.inputs(node)[1]):
                weighted = weighted_sum(graph, node)
                if weighted is not None:
                    lookups.append(_weighted_lookup(graph, weighted))
        except RefusedError as refusal:
            refused.append(Refusal(name=scope_of(node.name), reason=str(refusal)))
    return lookups, refused


def _lookup(graph: Definition, node: Any) -> StockLookup:
    rows, ids, segments = graph.inputs(node)
    read = _read(graph, rows, ids, node.attr["Tidx"].type)
    indices, filled = _placed(graph, node, read, segments)
    if filled is None:
        fields = _plain_ids(graph, node, read.ids, indices)
    else:
        fields = safe_ids(graph, node, filled)
    return _stock_lookup(graph, node, read, rows, combiner=COMBINERS[node.op], **fields)


def _weighted_lookup(graph: Definition, weighted: WeightedSum) -> StockLookup:
    unique = graph.inputs(weighted.gathered)[1]
    read = _read(graph, weighted.rows, unique)
    indices, filled = _placed(graph, weighted.sums, read, weighted.segments)
    if filled is None:
        fields, weights = _plain_ids(graph, weighted.result, read.ids, indices), weighted.weights
    else:
        given, weights = weighted_ids(graph, weighted, filled)
        fields = safe_ids(graph, weighted.result, filled, given)
    return _stock_lookup(
        graph,
        weighted.sums,
        read,
        weighted.rows,
        combiner=weighted.combiner,
        weights=weights,
        **fields,
    )


def _placed(graph: Definition, node: Any, read: _Read, segments: str) -> tuple[str, Any | None]:
    """The indices of the ids that a node combines, and what fills their rows, if it does."""
    require_plain(graph, node, dtype=node.attr["T"].type, id_dtype=read.id_dtype)
    if read.device != node.device:
        raise RefusedError("its table is on another device than the ids")
    indices = _rows_of(graph, segments)
    if indices is None:
        raise RefusedError("its rows are not the first column of indices")
    filled = graph.made_by(read.ids, "SparseFillEmptyRows", output=1)
    if filled is not None and graph.same(indices) != f"{filled.name}:0":
        raise RefusedError("its rows are not those of its ids")
    return indices, filled


def _stock_lookup(
    graph: Definition, node: Any, read: _Read, rows: str, **fields: Any
) -> StockLookup:
    """The lookup whose rows a node combines."""
    shape = graph.shape(rows)
    if shape is None or len(shape) != 2 or shape[1] < 1:
        raise RefusedError("the number of columns of its table is not known")
    if _rows_of_table(graph, read) == 0:
        raise RefusedError(NO_ROWS)
    if read.max_norm is not None and node.attr["T"].type != FLOAT32:
        raise RefusedError("its table is not float32, and its rows are shortened to max_norm")
    return StockLookup(
        combines=node.name,
        table=read.table,
        is_resource=read.is_resource,
        unique=read.unique,
        gather=read.gather,
        dtype=node.attr["T"].type,
        id_dtype=read.id_dtype,
        dim=shape[1],
        device=node.device,
        max_norm=read.max_norm,
        **fields,
    )


def _rows_of_table(graph: Definition, read: _Read) -> int:
    """How many rows a table has; -1 where that is not known."""
    if not read.is_resource:
        shape = graph.shape(read.table)
        return shape[0] if shape else -1
    variable = graph.made_by(read.table, "VarHandleOp")
    sizes = variable.attr["shape"].shape.dim if variable is not None else ()
    return sizes[0].size if sizes else -1


def _plain_ids(graph: Definition, node: Any, ids: str, indices: str) -> dict[str, Any]:
    """What a lookup that is not safe asks for, and its result: fields of `StockLookup`."""
    shape = graph.shape(indices)
    if shape is None or len(shape) != 2 or shape[1] != 2:
        raise RefusedError("its ids are not known to be a matrix")
    return {
        "name": scope_of(node.name),
        "ids": ids,
        "indices": indices,
        "dense_shape": "",
        "prune": False,
        "default_id": None,
        "result": node.name,
        "ends_with_ids": True,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Read:
    """How a lookup reads its table; fields as of `StockLookup`."""

    table: str
    is_resource: bool
    unique: str
    gather: str
    ids: str
    id_dtype: int
    device: str
    max_norm: float | None = None


def _read(graph: Definition, rows: str, ids: str, id_dtype: int = 0) -> _Read:
    """How rows are read; `id_dtype` of those that are not gathered at unique ids."""
    unique = graph.made_by(ids, "Unique", output=1)
    if unique is None:
        if graph.made_by(rows, *_GATHERS) is not None:
            raise RefusedError("its rows are gathered in a way that is not TensorFlow's own")
        return _Read(
            table=rows,
            is_resource=False,
            unique="",
            gather="",
            ids=ids,
            id_dtype=id_dtype,
            device=graph.source(rows).device,
        )
    shortened = shortened_rows(graph, rows)
    gather = graph.made_by(rows if shortened is None else shortened.rows, *_GATHERS)
    if gather is not None and any(text.startswith("^") for text in gather.input):
        raise RefusedError(WAITS)
    if gather is None or not gathers_rows(graph, gather, f"{unique.name}:0"):
        raise RefusedError(
            "its table has several shards, or a max_norm that is not TensorFlow's own"
        )
    return _Read(
        table=graph.inputs(gather)[0],
        is_resource=gather.op == "ResourceGather",
        unique=unique.name,
        gather=gather.name,
        ids=graph.inputs(unique)[0],
        id_dtype=unique.attr["T"].type,
        device=gather.device,
        max_norm=None if shortened is None else shortened.max_norm,
    )


def _rows_of(graph: Definition, rows: str) -> str | None:
    """The indices of which `rows` is the first column; None where it is no such column."""
    cast = graph.made_by(rows, "Cast")
    node = graph.made_by(graph.inputs(cast)[0] if cast else rows, "StridedSlice")
    if node is None:
        return None
    indices, begin, _, strides = graph.inputs(node)
    masks = [node.attr[f"{name}_mask"].i for name in ("begin", "end", "shrink_axis")]
    masks += [node.attr[f"{name}_mask"].i for name in ("ellipsis", "new_axis")]
    # indices[:, 0]
    plain = masks[0] & 1 and masks[1] & 1 and masks[2] == 2 and not any(masks[3:])
    begins = graph.value(begin)
    if not plain or begins is None or len(begins) != 2 or begins[1] != 0:
        return None
    return indices if graph.is_value(strides, [1, 1]) else None
