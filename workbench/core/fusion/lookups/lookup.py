"""A stock lookup as a value, and what every one must be that a grouped op does."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import RefusedError

# What combines the rows of a table, by the combiner's name.
COMBINERS = {"SparseSegmentSum": "sum", "SparseSegmentMean": "mean", "SparseSegmentSqrtN": "sqrtn"}
# TensorFlow's numbers of float32, half and bfloat16, and of int32 and int64.
FLOATS = (1, 19, 14)
_ID_DTYPES = (3, 9)
# TensorFlow looks for row 0 there where a row of ids is empty, and ends with an error.
NO_ROWS = "its table has no rows"
WAITS = "it waits for other ops"


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightGradient:
    """The gradient of a lookup's weights.

    Attributes:
      nodes: names of the nodes that give it, each of them all of it.
      given: the tensor of the gradient of the embeddings, or of what became them.
    """

    nodes: tuple[str, ...]
    given: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class StockLookup:
    """A lookup that a grouped op can do. Tensors are named "node:output".

    Attributes:
      name: what users call it: the scope that it was built in; of dense ids the node itself.
      combines: the node that combines rows, or gathers those of dense ids; of weighted ids the one
        that sums them.
      table: the tensor of the table, [rows, dim], or of the variable's handle.
      is_resource: whether it is a handle.
      unique, gather: the nodes that make the ids unique, and gather their rows; "" where none do.
      dtype, id_dtype: numbers of TensorFlow's data types.
      dim: columns of the table.
      combiner: "sum", "mean" or "sqrtn".
      ids, indices, dense_shape: of the ids as they come, a SparseTensor. Of dense ids there are
        no indices and no shape, of ids that its rows end with no shape: "".
      prune: whether ids below 0 are dropped, and of weighted ids that are not summed those with a
        weight that is not above 0.
      default_id: the id of rows without ids; None makes them 0.
      zero_id: the row that then has a gradient of 0 where there are rows without ids, because
        TensorFlow looks these up there; None for no row.
      read: the node that reads the variable's value for this lookup alone, which reads the variable
        itself; "" where there is none.
      result: the node whose output is the embeddings.
      selects, shapes: the nodes that make rows without ids 0, and give the ids' shape; "" where
        there is none.
      device: where the rows are combined.
      place: where the variable is, of a function that captures it; "" where that is not known.
      ends_with_ids: whether the embeddings end with the last row that has an id.
      weights: of the ids as they come; "" where they have none.
      max_norm: longer rows are shortened to this length; None shortens none.
      weight_gradient: the gradient of the weights, where something reads it.
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
    read: str = ""
    selects: str = ""
    zero_id: int | None = None
    shapes: str = ""
    device: str = ""
    place: str = ""
    ends_with_ids: bool = False
    weights: str = ""
    max_norm: float | None = None
    weight_gradient: WeightGradient | None = None


def gathers_rows(graph: Definition, gather: Any, ids: str) -> bool:
    """Whether a node gathers whole rows of its first input at these ids, and waits for nothing."""
    inputs = graph.inputs(gather)
    by_row = gather.op == "ResourceGather" or graph.is_value(inputs[2], 0)
    waits = len(inputs) < len(gather.input)
    return bool(
        graph.same(inputs[1]) == ids and by_row and not waits and not gather.attr["batch_dims"].i
    )


def require_plain(graph: Definition, node: Any, *, dtype: int, id_dtype: int) -> None:
    """Raises RefusedError where a lookup's types or place in the graph are no grouped op's."""
    if dtype not in FLOATS:
        raise RefusedError("its table is neither float32, half nor bfloat16")
    if id_dtype not in _ID_DTYPES:
        raise RefusedError("its ids are neither int32 nor int64")
    if node.name in graph.conditional:
        raise RefusedError("it is in a branch or a loop")
    if any(text.startswith("^") for text in node.input):
        raise RefusedError(WAITS)
