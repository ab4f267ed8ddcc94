"""Gradients of weighted stock lookups in a finished graph.

How TensorFlow builds one, from the gradient of the combined rows to the table; parts in brackets
are there or not, a reduction is a Sum along what was broadcast and a Reshape:

    ─ [DivNoNan(·, divisor) ─ [reduction]] ─ GatherV2(·, segments) ─ Mul(·, column) ─ [reduction]
      ─ Reshape and UnsortedSegmentSum(·, places of the ids) ─ two Reshapes
        → gradients, rows of the table

The gradient of the weights begins with Mul(rows, ·) beside it, which TensorFlow builds whether it
is asked for or not; weight_gradients.py has the rest of it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.lookup import gathers_rows
from workbench.core.fusion.lookups.table_updates.update import only_reader
from workbench.core.fusion.lookups.weighted.lookups import WeightedSum
from workbench.core.fusion.pattern.definition import Definition


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightedGradient:
    """A gradient of a weighted lookup's table.

    Attributes:
      summed: the node that sums what each unique id has.
      given: the tensor of the gradient of the combined rows.
    """

    summed: Any
    given: str


def table_gradients(graph: Definition, weighted: WeightedSum) -> list[WeightedGradient] | None:
    """The gradients of the table that something reads; None where one is not TensorFlow's own."""
    gradients = []
    for product in graph.readers(weighted.column, "Mul"):
        if product is weighted.products:
            continue
        values = reduced(graph, product, weighted.products, 0)
        if not _is_read(graph, values):
            continue
        given = combined_gradient(graph, weighted, product, weighted.column)
        summed = _summed(graph, weighted, values)
        if given is None or summed is None or is_apart(graph, product, values, summed):
            return None
        gradients.append(WeightedGradient(summed=summed, given=given))
    return gradients


def weight_products(graph: Definition, weighted: WeightedSum) -> list[Any]:
    """The nodes with which gradients of the weights begin that something reads."""
    return [
        product
        for product in graph.readers(f"{weighted.gathered.name}:0", "Mul")
        if product is not weighted.products
        and _is_read(graph, reduced(graph, product, weighted.products, 1))
    ]


def _is_read(graph: Definition, node: Any) -> bool:
    return any(reader.op != "Identity" for reader in graph.readers(f"{node.name}:0"))


def is_apart(graph: Definition, *nodes: Any) -> bool:
    """Whether one of some nodes may not run in a step, or waits for others."""
    return any(
        node.name in graph.conditional or any(text.startswith("^") for text in node.input)
        for node in nodes
    )


def combined_gradient(
    graph: Definition, weighted: WeightedSum, product: Any, factor: str
) -> str | None:
    """The gradient of the combined rows; None where TensorFlow makes it otherwise.

    Args:
      graph: the graph.
      weighted: the weighted sum.
      product: a node that multiplies that of the sums, given to each id, with something.
      factor: the tensor of that.
    """
    one, other = graph.inputs(product)
    spread = graph.made_by(one if graph.same(other) == factor else other, "GatherV2")
    if spread is None or not gathers_rows(graph, spread, graph.same(weighted.segments)):
        return None
    given = graph.inputs(spread)[0]
    if not weighted.divisor:
        return given
    quotient = graph.source(graph.same(before_reduction(graph, given, weighted.result, 0)))
    if quotient.op != "DivNoNan" or graph.same(graph.inputs(quotient)[1]) != weighted.divisor:
        return None
    return graph.inputs(quotient)[0]


def _summed(graph: Definition, weighted: WeightedSum, values: Any) -> Any | None:
    """The node that sums the gradients of what was gathered, for each unique id."""
    flat = only_reader(graph, f"{values.name}:0", "Reshape")
    summed = only_reader(graph, f"{flat.name}:0", "UnsortedSegmentSum") if flat else None
    if flat is None or summed is None:
        return None
    own, places = graph.inputs(summed)[:2]
    reshaped = graph.made_by(places, "Reshape")
    if reshaped is None or graph.same(own) != f"{flat.name}:0":
        return None
    asked = graph.inputs(weighted.gathered)[1]
    return summed if graph.same(graph.inputs(reshaped)[0]) == graph.same(asked) else None


def reduced(graph: Definition, node: Any, forward: Any, place: int) -> Any:
    """What gives a gradient the shape of an input of the op that it is of; the node if nothing.

    Args:
      graph: the graph.
      node: what makes the gradient.
      forward: the op, of two inputs.
      place: of the input.
    """
    for total in graph.readers(f"{node.name}:0", "Sum"):
        for shaped in graph.readers(f"{total.name}:0", "Reshape"):
            if before_reduction(graph, f"{shaped.name}:0", forward, place) == f"{node.name}:0":
                return shaped
    return node


def before_reduction(graph: Definition, tensor: str, forward: Any, place: int) -> str:
    """A gradient before it was given an input's shape; the tensor itself where it was not."""
    shaped = graph.made_by(tensor, "Reshape")
    total = graph.made_by(graph.inputs(shaped)[0], "Sum") if shaped else None
    if shaped is None or total is None:
        return tensor
    summed, axes = graph.inputs(total)
    operands = graph.inputs(forward)
    own = _is_shape_of(graph, graph.inputs(shaped)[1], operands[place])
    return graph.same(summed) if own and _are_broadcast(graph, axes, operands, place) else tensor


def _are_broadcast(graph: Definition, axes: str, operands: list[str], place: int) -> bool:
    """Whether along these axes one of two operands had a single value for all of the other's."""
    known = graph.value(axes)
    if known is not None:
        shape = graph.shape(operands[place])
        return shape is not None and all(shape[axis] == 1 for axis in known.ravel())
    found = graph.made_by(axes, "BroadcastGradientArgs", output=place)
    return found is not None and all(
        _is_shape_of(graph, shape, operand)
        for shape, operand in zip(graph.inputs(found), operands, strict=True)
    )


def _is_shape_of(graph: Definition, shape: str, tensor: str) -> bool:
    taken = graph.made_by(shape, "Shape")
    if taken is not None:
        return graph.same(graph.inputs(taken)[0]) == graph.same(tensor)
    known = graph.value(shape)
    return known is not None and tuple(known) == graph.shape(tensor)
