"""What is around a lookup that is safe: ids below 0 are dropped, rows without ids filled or made 0.

stock_lookups.py says how TensorFlow builds it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import RefusedError, scope_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class GivenIds:
    """Ids as they come to a safe lookup; fields as of `StockLookup`."""

    ids: str
    indices: str
    dense_shape: str
    prune: bool


def safe_ids(
    graph: Definition, node: Any, filled: Any, given: GivenIds | None = None
) -> dict[str, Any]:
    """What a safe lookup asks for, and its result: fields of `StockLookup`.

    Args:
      graph: the graph.
      node: the node that gives the combined rows.
      filled: the SparseFillEmptyRows of its ids.
      given: its ids before any were dropped; None looks for those of ids without weights.
    """
    default = graph.value(graph.inputs(filled)[3])
    if default is None:
        raise RefusedError("the id that empty rows get is computed by the graph")
    selects = _selects(graph, node, filled)
    result = selects or node
    given = given or _pruned(graph, filled)
    indices, dense_shape = given.indices, given.dense_shape
    shapes = None
    reshaped = _reshaped(graph, indices, dense_shape)
    if reshaped is not None:
        shapes = _shapes(graph, result, reshaped[1])
        if shapes is not None:
            (indices, dense_shape), result = reshaped, shapes
    if shapes is None and graph.shape(dense_shape) != (2,):
        raise RefusedError("its ids are not known to be a matrix")
    return {
        "name": scope_of(result.name),
        "ids": given.ids,
        "indices": indices,
        "dense_shape": dense_shape,
        "prune": given.prune,
        "default_id": None if selects is not None else int(default),
        "zero_id": None if selects is None else int(default),
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


def retained(graph: Definition, values: str, indices: str) -> tuple[str, str, str] | None:
    """Values and indices before some were dropped, and what tells those that stay.

    None where none were dropped.
    """
    kept = [graph.made_by(each, "GatherV2") for each in (values, indices)]
    if kept[0] is None or kept[1] is None:
        return None
    places = {graph.same(graph.inputs(each)[1]) for each in kept}
    where = graph.made_by(next(iter(places)), "Reshape")
    axes = all(graph.is_value(graph.inputs(each)[2], 0) for each in kept)
    told = graph.made_by(graph.inputs(where)[0], "Where") if where is not None else None
    if len(places) != 1 or told is None or not axes:
        return None
    return graph.inputs(kept[0])[0], graph.inputs(kept[1])[0], graph.same(graph.inputs(told)[0])


def compares(graph: Definition, tensor: str, op: str, values: str) -> bool:
    """Whether a tensor tells which of some values are beyond 0, by this op."""
    compared = graph.made_by(tensor, op)
    if compared is None:
        return False
    one, other = graph.inputs(compared)
    return graph.same(one) == graph.same(values) and graph.is_value(other, 0)


def _pruned(graph: Definition, filled: Any) -> GivenIds:
    """Ids before those below 0 were dropped, and whether they are."""
    indices, ids, dense_shape = graph.inputs(filled)[:3]
    found = retained(graph, ids, indices)
    if found is None or not compares(graph, found[2], "GreaterEqual", found[0]):
        return GivenIds(ids=ids, indices=indices, dense_shape=dense_shape, prune=False)
    ids, indices, _ = found
    return GivenIds(ids=ids, indices=indices, dense_shape=dense_shape, prune=True)


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
