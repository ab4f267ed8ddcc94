"""Weighted sums of rows in a finished graph: TensorFlow's lookups of sparse ids that have weights.

How TensorFlow builds one, from rows gathered at unique ids and the weights as a column [n, 1]:

    products ─ GatherV2(rows, places of the ids) · column
    sum      ─ SegmentSum(products)
    mean     ─ DivNoNan(SegmentSum(products), SegmentSum(column))
    sqrtn    ─ DivNoNan(SegmentSum(products), Sqrt(SegmentSum(Pow(column, 2))))

A safe one drops ids below 0 with their weights, a mean or sqrtn then ids whose weight is not above
0, and a row without ids gets one of weight 1.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.find.safe_lookups import GivenIds, compares, retained
from workbench.core.fusion.lookups.lookup import gathers_rows
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import RefusedError
from workbench.core.graph.op_types import FLOAT32


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightedSum:
    """The nodes of a weighted sum of rows; tensors are named "node:output".

    Attributes:
      result: the node that gives the combined rows.
      sums, products, gathered: those that sum products, make them, and gather a row for each id.
      column: the tensor of the weights, [n, 1].
      divisor: what the sums are divided by; "" where the combiner is "sum".
      combiner: "sum", "mean" or "sqrtn".
      weights: the tensor of the weights that are multiplied with, [n].
      rows: the tensor of the unique rows that are gathered from.
      segments: the tensor that says which row of the batch each id is of.
    """

    result: Any
    sums: Any
    products: Any
    gathered: Any
    column: str
    divisor: str
    combiner: str
    weights: str
    rows: str
    segments: str


def weighted_sum(graph: Definition, node: Any) -> WeightedSum | None:
    """The weighted sum of which a node sums products; None of what is none.

    Raises:
      RefusedError: it is one of another kind than TensorFlow's own of float32.
    """
    summed, segments = graph.inputs(node)
    products = graph.made_by(summed, "Mul")
    if products is None:
        return None
    factors = graph.inputs(products)
    if graph.made_by(factors[0], "Cast") is not None:
        raise RefusedError("its table is not float32, and its ids have weights")
    gathered = graph.made_by(factors[0], "GatherV2")
    unique = graph.made_by(graph.inputs(gathered)[1], "Unique", output=1) if gathered else None
    reshape = graph.made_by(factors[1], "Reshape")
    if (
        unique is None
        or reshape is None
        or node.attr["T"].type != FLOAT32
        or not gathers_rows(graph, gathered, f"{unique.name}:1")
    ):
        raise RefusedError("its ids are weighted in a way that is not TensorFlow's own")
    column = f"{reshape.name}:0"
    weights = graph.inputs(reshape)[0]
    if (graph.shape(column) or ())[1:] != (1,) or len(graph.shape(weights) or ()) != 1:
        raise RefusedError("its weights are not known to be one for each id")
    found = _divided(graph, node, column)
    result, divisor, combiner = found if found is not None else (node, "", "sum")
    return WeightedSum(
        result=result,
        sums=node,
        products=products,
        gathered=gathered,
        column=column,
        divisor=divisor,
        combiner=combiner,
        weights=weights,
        rows=graph.inputs(gathered)[0],
        segments=segments,
    )


def _divided(graph: Definition, node: Any, column: str) -> tuple[Any, str, str] | None:
    """What divides a sum by its weights, by which tensor, and the combiner that this is."""
    divisions = []
    for quotient in graph.readers(f"{node.name}:0", "DivNoNan"):
        above, divisor = graph.inputs(quotient)
        combiner = _combiner(graph, divisor, column, graph.inputs(node)[1])
        if combiner and graph.same(above) == f"{node.name}:0":
            divisions.append((quotient, graph.same(divisor), combiner))
    if len(divisions) > 1:
        raise RefusedError("its weighted sums are divided more than once")
    return divisions[0] if divisions else None


def _combiner(graph: Definition, divisor: str, column: str, segments: str) -> str:
    """The combiner that divides by this; "" where none does."""
    root = graph.made_by(divisor, "Sqrt")
    total = graph.made_by(graph.inputs(root)[0] if root else divisor, "SegmentSum", "SegmentSumV2")
    if total is None or graph.same(graph.inputs(total)[1]) != graph.same(segments):
        return ""
    summed = graph.inputs(total)[0]
    if root is None:
        return "mean" if graph.same(summed) == column else ""
    power = graph.made_by(summed, "Pow")
    if power is None or graph.same(graph.inputs(power)[0]) != column:
        return ""
    return "sqrtn" if graph.is_value(graph.inputs(power)[1], 2) else ""


def weighted_ids(graph: Definition, weighted: WeightedSum, filled: Any) -> tuple[GivenIds, str]:
    """The ids, and their weights, as they come to a safe lookup.

    Args:
      graph: the graph.
      weighted: the sum of the lookup.
      filled: the SparseFillEmptyRows of its ids.

    Raises:
      RefusedError: weights are not dropped and filled in as their ids are.
    """
    filled_weights = graph.made_by(weighted.weights, "SparseFillEmptyRows", output=1)
    if filled_weights is None or not graph.is_value(graph.inputs(filled_weights)[3], 1.0):
        raise RefusedError("a row without ids does not get one of weight 1")
    indices, ids, dense_shape = graph.inputs(filled)[:3]
    own_indices, weights, own_shape = graph.inputs(filled_weights)[:3]
    same_shape = graph.same(dense_shape) == graph.same(own_shape)
    drops: list[bool] = []
    checks = (_tells_weights, _tells_ids) if weighted.combiner != "sum" else (_tells_ids,)
    for tells in checks:
        one, other = retained(graph, ids, indices), retained(graph, weights, own_indices)
        if one is None or other is None or one[2] != other[2]:
            drops.append(False)
            continue
        drops.append(tells(graph, one[2], one[0], other[0]))
        if drops[-1]:
            (ids, indices, _), (weights, own_indices, _) = one, other
    # What is dropped in another way is not seen through: its ids come as they then are.
    if not same_shape or len(set(drops)) != 1 or graph.same(indices) != graph.same(own_indices):
        raise RefusedError("its weights are dropped in a way that is not TensorFlow's own")
    given = GivenIds(ids=ids, indices=indices, dense_shape=dense_shape, prune=all(drops))
    return given, weights


def _tells_weights(graph: Definition, tensor: str, _: str, weights: str) -> bool:
    return compares(graph, tensor, "Greater", weights)


def _tells_ids(graph: Definition, tensor: str, ids: str, _: str) -> bool:
    """Whether a tensor tells which ids are not below 0; their weights have no say in it."""
    both = graph.made_by(tensor, "LogicalAnd")
    if both is None:
        return False
    told, always = graph.inputs(both)
    fill = graph.made_by(always, "Fill")
    value = graph.value(always if fill is None else graph.inputs(fill)[1])
    return bool(value is not None and value.all() and compares(graph, told, "GreaterEqual", ids))
