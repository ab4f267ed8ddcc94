"""Stock lookups of sparse ids: TensorFlow's `embedding_lookup_sparse` in a finished graph.

How TensorFlow builds a safe one, from ids [d_0, …, d_n] to embeddings [d_0, …, d_(n-1), dim];
parts in brackets are there or not:

    ids ─ [SparseReshape to 2-D] ─ [GatherV2 where id ≥ 0] ─ SparseFillEmptyRows ─┐
    table ─ [gathered at Unique(ids)] ── SparseSegment{Sum,Mean,SqrtN}(table, ids, rows)
        ─ [Select: zeros where the row was empty] ─ [Reshape to the shape of the ids]

Ids are made unique and rows gathered where TensorFlow takes the table to be on another device,
which it does with resource variables. One that is not safe lacks SparseFillEmptyRows, and its
embeddings end with the last row that has an id. Lookups with weights or of several shards are
refused.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.lookup_fusion.definition import Definition

# What combines the rows of a table, by the combiner's name.
COMBINERS = {"SparseSegmentSum": "sum", "SparseSegmentMean": "mean", "SparseSegmentSqrtN": "sqrtn"}
_WEIGHTED = ("SegmentSum", "SegmentSumV2")
_GATHERS = ("GatherV2", "ResourceGather")
# TensorFlow's numbers of float32, half and bfloat16, and of int32 and int64.
FLOATS = (1, 19, 14)
_ID_DTYPES = (3, 9)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StockLookup:
    """A lookup that a grouped op can do. Tensors are named "node:output".

    Attributes:
      name: what users call it: the scope that it was built in; of dense ids the node itself.
      combines: the node that combines rows, or gathers those of dense ids.
      table: the tensor of the table, [rows, dim], or of the variable's handle.
      is_resource: whether it is a handle.
      unique, gather: the nodes that make the ids unique, and gather their rows; "" where none do.
      dtype, id_dtype: numbers of TensorFlow's data types.
      dim: columns of the table.
      combiner: "sum", "mean" or "sqrtn".
      ids, indices, dense_shape: of the ids as they come, a SparseTensor. Of dense ids there are
        no indices and no shape, of ids that its rows end with no shape: "".
      prune: whether ids below 0 are dropped.
      default_id: the id of rows without ids; None makes them 0.
      result: the node whose output is the embeddings.
      selects, shapes: the nodes that make rows without ids 0, and give the ids' shape; "" where
        there is none.
      device: where the rows are combined.
      ends_with_ids: whether the embeddings end with the last row that has an id.
    """

    name: str
    combines: str
    table: str
    is_resource: bool
    unique: str
    gather: str
    dtype: int
    id_dtype: int
    dim: int
    combiner: str
    ids: str
    indices: str
    dense_shape: str
    prune: bool
    default_id: int | None
    result: str
    selects: str = ""
    shapes: str = ""
    device: str = ""
    ends_with_ids: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class LookupRefusal:
    """A lookup that stays as it is.

    Attributes:
      name: as of `StockLookup`.
      reason: why, a clause.
    """

    name: str
    reason: str


class RefusedError(Exception):
    """A lookup stays; the text is the reason."""


def find_lookups(
    graph: Definition, *, gpu: bool = False
) -> tuple[list[StockLookup], list[LookupRefusal]]:
    """The stock lookups of a graph that a grouped op can do, in its order, and the others.

    Args:
      graph: the graph.
      gpu: whether what names no device may run on a GPU, which has no grouped op.
    """
    found: list[StockLookup] = []
    refused: list[LookupRefusal] = []
    for node in graph.ordered:
        try:
            if node.op in COMBINERS:
                require_cpu(node, gpu=gpu)
                found.append(_lookup(graph, node))
            elif node.op.removesuffix("WithNumSegments") in COMBINERS:
                raise RefusedError("the number of its rows is given")
            elif node.op in _WEIGHTED and _rows_of(graph, graph.inputs(node)[1]):
                raise RefusedError("its ids have weights")
        except RefusedError as refusal:
            refused.append(LookupRefusal(name=_scope(node.name), reason=str(refusal)))
    return found, _once(refused)


def _once(refused: list[LookupRefusal]) -> list[LookupRefusal]:
    """One reason for each name: a weighted mean sums twice."""
    return list({each.name: each for each in reversed(refused)}.values())[::-1]


def _lookup(graph: Definition, node: Any) -> StockLookup:
    read = _read(graph, node)
    require_plain(graph, node, dtype=node.attr["T"].type, id_dtype=read.id_dtype)
    if read.device != node.device:
        raise RefusedError("its table is on another device than the ids")
    indices = _rows_of(graph, graph.inputs(node)[2])
    if indices is None:
        raise RefusedError("its rows are not the first column of indices")
    shape = graph.shape(graph.inputs(node)[0])
    if shape is None or len(shape) != 2 or shape[1] < 1:
        raise RefusedError("the number of columns of its table is not known")
    filled = graph.made_by(read.ids, "SparseFillEmptyRows", output=1)
    if filled is None:
        asked = _plain_ids(graph, node, read.ids, indices)
    else:
        if graph.same(indices) != f"{filled.name}:0":
            raise RefusedError("its rows are not those of its ids")
        asked = _safe_ids(graph, node, filled)
    return StockLookup(
        combines=node.name,
        table=read.table,
        is_resource=read.is_resource,
        unique=read.unique,
        gather=read.gather,
        dtype=node.attr["T"].type,
        id_dtype=read.id_dtype,
        dim=shape[1],
        combiner=COMBINERS[node.op],
        device=node.device,
        **asked,
    )


def _plain_ids(graph: Definition, node: Any, ids: str, indices: str) -> dict[str, Any]:
    """What a lookup that is not safe asks for, and its result: fields of `StockLookup`."""
    shape = graph.shape(indices)
    if shape is None or len(shape) != 2 or shape[1] != 2:
        raise RefusedError("its ids are not known to be a matrix")
    return {
        "name": _scope(node.name),
        "ids": graph.same(ids),
        "indices": graph.same(indices),
        "dense_shape": "",
        "prune": False,
        "default_id": None,
        "result": node.name,
        "ends_with_ids": True,
    }


def _safe_ids(graph: Definition, node: Any, filled: Any) -> dict[str, Any]:
    """What a safe lookup asks for, and its result: fields of `StockLookup`."""
    default = graph.value(graph.inputs(filled)[3])
    if default is None:
        raise RefusedError("the id that empty rows get is computed by the graph")
    selects = _selects(graph, node, filled)
    result = selects or node
    indices, values, dense_shape = graph.inputs(filled)[:3]
    values, indices, dense_shape, prune = _pruned(graph, values, indices, dense_shape)
    shapes = None
    given = _reshaped(graph, indices, dense_shape)
    if given is not None:
        shapes = _shapes(graph, result, given[1])
        if shapes is not None:
            (indices, dense_shape), result = given, shapes
    if shapes is None and graph.shape(dense_shape) != (2,):
        raise RefusedError("its ids are not known to be a matrix")
    return {
        "name": _scope(result.name),
        "ids": graph.same(values),
        "indices": indices,
        "dense_shape": dense_shape,
        "prune": prune,
        "default_id": None if selects is not None else int(default),
        "result": result.name,
        "selects": "" if selects is None else selects.name,
        "shapes": "" if shapes is None else shapes.name,
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


def _read(graph: Definition, node: Any) -> _Read:
    rows, ids, _ = graph.inputs(node)
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
            id_dtype=node.attr["Tidx"].type,
            device=graph.source(rows).device,
        )
    gather = graph.made_by(rows, *_GATHERS)
    if gather is None or not gathers_rows(graph, gather, f"{unique.name}:0"):
        raise RefusedError("its table has several shards, or max_norm")
    return _Read(
        table=graph.inputs(gather)[0],
        is_resource=gather.op == "ResourceGather",
        unique=unique.name,
        gather=gather.name,
        ids=graph.inputs(unique)[0],
        id_dtype=unique.attr["T"].type,
        device=gather.device,
    )


def gathers_rows(graph: Definition, gather: Any, ids: str) -> bool:
    """Whether a node gathers whole rows of its first input at these ids, and waits for nothing."""
    inputs = graph.inputs(gather)
    by_row = gather.op == "ResourceGather" or graph.is_value(inputs[2], 0)
    waits = len(inputs) < len(gather.input)
    return bool(
        graph.same(inputs[1]) == ids and by_row and not waits and not gather.attr["batch_dims"].i
    )


def require_cpu(node: Any, *, gpu: bool) -> None:
    """Raises RefusedError where a lookup may run on a GPU; `gpu` as of `find_lookups`."""
    if gpu and "CPU" not in node.device.upper():
        raise RefusedError("it may run on a GPU, which has no grouped lookup")


def require_plain(graph: Definition, node: Any, *, dtype: int, id_dtype: int) -> None:
    """Raises RefusedError where a lookup's types or place in the graph are no grouped op's."""
    if dtype not in FLOATS:
        raise RefusedError("its table is neither float32, half nor bfloat16")
    if id_dtype not in _ID_DTYPES:
        raise RefusedError("its ids are neither int32 nor int64")
    if node.name in graph.conditional:
        raise RefusedError("it is in a branch or a loop")
    if any(text.startswith("^") for text in node.input):
        raise RefusedError("it waits for other ops")


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


def _selects(graph: Definition, node: Any, filled: Any) -> Any | None:
    """The node that makes rows without ids 0."""
    for reader in graph.readers(f"{node.name}:0", "Select", "SelectV2"):
        empty, zeros, rows = graph.inputs(reader)
        own = graph.same(rows) == f"{node.name}:0"
        if own and graph.is_zeros(zeros) and _tells(graph, empty, filled):
            return reader
    return None


def _tells(graph: Definition, empty: str, filled: Any) -> bool:
    """Whether a tensor says of each value of the embeddings whether its row had no id."""
    tiled = graph.made_by(empty, "Tile")
    if tiled is None:
        return False
    column = graph.made_by(graph.inputs(tiled)[0], "Reshape")
    if column is None or not graph.is_value(graph.inputs(column)[1], [-1, 1]):
        return False
    return graph.same(graph.inputs(column)[0]) == f"{filled.name}:2"


def _pruned(
    graph: Definition, values: str, indices: str, dense_shape: str
) -> tuple[str, str, str, bool]:
    """Ids, indices and shape before ids below 0 were dropped, and whether they are."""
    ids = graph.made_by(values, "GatherV2")
    rows = graph.made_by(indices, "GatherV2")
    if ids is None or rows is None:
        return values, indices, dense_shape, False
    kept = {graph.same(graph.inputs(each)[1]) for each in (ids, rows)}
    where = graph.made_by(next(iter(kept)), "Reshape")
    axes = all(graph.is_value(graph.inputs(each)[2], 0) for each in (ids, rows))
    if len(kept) != 1 or where is None or not axes:
        return values, indices, dense_shape, False
    places = graph.made_by(graph.inputs(where)[0], "Where")
    compared = graph.made_by(graph.inputs(places)[0], "GreaterEqual") if places else None
    all_ids = graph.inputs(ids)[0]
    if (
        compared is None
        or graph.same(graph.inputs(compared)[0]) != graph.same(all_ids)
        or not graph.is_value(graph.inputs(compared)[1], 0)
    ):
        return values, indices, dense_shape, False
    return all_ids, graph.inputs(rows)[0], graph.same(dense_shape), True


def _reshaped(graph: Definition, indices: str, dense_shape: str) -> tuple[str, str] | None:
    """Indices and shape before all dimensions but the last became one; None where none did."""
    node = graph.made_by(indices, "SparseReshape")
    if node is None:
        return None
    own_indices, own_shape, wished = graph.inputs(node)
    cast = graph.made_by(wished, "Cast")
    packed = graph.made_by(graph.inputs(cast)[0] if cast else wished, "Pack")
    if packed is None or len(graph.inputs(packed)) != 2:
        return None
    rows, columns = graph.inputs(packed)
    product = graph.made_by(rows, "Prod")
    last = graph.made_by(columns, "GatherV2")
    if product is None or last is None:
        return None
    leading = graph.made_by(graph.inputs(product)[0], "Slice")
    if leading is None or not graph.is_value(graph.inputs(leading)[1], [0]):
        return None
    same_shape = {graph.same(each) for each in (graph.inputs(leading)[0], graph.inputs(last)[0])}
    if same_shape != {graph.same(own_shape)}:
        return None
    rank = graph.shape(own_shape)
    count = None if rank is None else rank[0] - 1
    if not count or count < 1:
        return None
    one_less = graph.is_value(graph.inputs(last)[1], count)
    if not one_less or not graph.is_value(graph.inputs(leading)[2], [count]):
        return None
    known = graph.source(graph.same(dense_shape))
    if known.name != node.name and known.op != "Const":
        return None
    return own_indices, own_shape


def _shapes(graph: Definition, result: Any, dense_shape: str) -> Any | None:
    """The node that gives the rows of `result` the shape of the ids."""
    for reader in graph.readers(f"{result.name}:0", "Reshape"):
        rows, shape = graph.inputs(reader)
        joined = graph.made_by(shape, "ConcatV2")
        if graph.same(rows) != f"{result.name}:0" or joined is None:
            continue
        leading = graph.made_by(graph.inputs(joined)[0], "Slice")
        if leading is None or not graph.is_value(graph.inputs(leading)[1], [0]):
            continue
        cast = graph.made_by(graph.inputs(leading)[0], "Cast")
        if cast is not None and graph.same(graph.inputs(cast)[0]) == graph.same(dense_shape):
            return reader
    return None


def _scope(name: str) -> str:
    """The scope of a node; its own name at the top."""
    return name.rpartition("/")[0] or name
