"""What is around a lookup that is safe: ids below 0 are dropped, rows without ids filled or made 0.

stock_lookups.py says how TensorFlow builds it.
"""

from __future__ import annotations

from typing import Any

from workbench.core.lookup_fusion.patterns.definition import Definition
from workbench.core.lookup_fusion.patterns.lookup import RefusedError, scope_of


def safe_ids(graph: Definition, node: Any, filled: Any) -> dict[str, Any]:
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
        "name": scope_of(result.name),
        "ids": graph.same(values),
        "indices": indices,
        "dense_shape": dense_shape,
        "prune": prune,
        "default_id": None if selects is not None else int(default),
        "result": result.name,
        "selects": "" if selects is None else selects.name,
        "shapes": "" if shapes is None else shapes.name,
    }


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
