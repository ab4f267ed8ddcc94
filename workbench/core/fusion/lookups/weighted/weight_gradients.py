"""Gradients of the weights of stock lookups in a finished graph.

How TensorFlow builds one, beside that of the table in gradients.py; parts in brackets are
there or not:

    Mul(rows, ·) ─ reduction ─ [AddN with what comes by the divisor] ─ Reshape to [n]
      ─ [SparseFillEmptyRowsGrad ─ scattered to the weights before some were dropped, by a Reshape
         and an UnsortedSegmentSum for each time that some are; the last one for each reader]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.core.fusion.lookups.lookup import StockLookup, WeightGradient, gathers_rows
from workbench.core.fusion.lookups.table_updates.update import only_reader, variable_of
from workbench.core.fusion.lookups.weighted.gradients import (
    before_reduction,
    combined_gradient,
    is_apart,
    reduced,
    weight_products,
)
from workbench.core.fusion.lookups.weighted.lookups import WeightedSum
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import RefusedError
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_families import UPDATE, family_of

_UNKNOWN = "the gradient of its weights is not the one that TensorFlow makes of a lookup"

# What a function does with a variable is not looked into.
_CALLS = re.compile(r"(Stateful)?PartitionedCall$|(If|While|Case)$")


def weight_gradient_of(
    graph: Definition, lookup: StockLookup, weighted: WeightedSum, of_table: Mapping[str, str]
) -> WeightGradient | None:
    """The gradient of a lookup's weights; None where nothing reads one.

    Args:
      graph: the graph.
      lookup: the lookup.
      weighted: its weighted sum.
      of_table: by the names of the nodes that make the gradients of its table, what they make them
        of.

    Returns:
      The gradient, `given` that of the combined rows.

    Raises:
      RefusedError: a grouped op cannot make it, or not before the table is changed.
    """
    products = weight_products(graph, weighted)
    if not products:
        return None
    if weighted.combiner == "sqrtn" and lookup.ends_with_ids:
        raise RefusedError("the gradient of its weights is no number where those of a row are 0")
    product = products[0]
    given = combined_gradient(graph, weighted, product, f"{weighted.gathered.name}:0")
    flat = None if given is None else _flat(graph, weighted, product, given)
    if given is None or flat is None or is_apart(graph, product, flat):
        raise RefusedError(_UNKNOWN)
    # Of the same run of the chain rule, so that neither gradient depends on the other.
    if len(products) > 1 or {graph.same(each) for each in of_table.values()} - {graph.same(given)}:
        raise RefusedError("its weights have a gradient, and it has several")
    nodes = [flat.name] if lookup.ends_with_ids else _scattered(graph, lookup, weighted, flat)
    if not changes_later(graph, lookup, of_table.keys()):
        raise RefusedError("its weights have a gradient, and other gradients change its table")
    return WeightGradient(nodes=tuple(nodes), given=given)


def _flat(graph: Definition, weighted: WeightedSum, product: Any, given: str) -> Any | None:
    """The node that gives the gradient of the weights that are multiplied with, [n]."""
    column = reduced(graph, product, weighted.products, 1)
    if weighted.divisor:
        added = only_reader(graph, f"{column.name}:0", "AddN")
        others = [
            each
            for each in (graph.inputs(added) if added is not None else ())
            if graph.same(each) != f"{column.name}:0"
        ]
        if len(others) != 1 or len(graph.inputs(added)) != 2:
            return None
        if not _comes_by_divisor(graph, weighted, others[0], given):
            return None
        column = added
    flat = only_reader(graph, f"{column.name}:0", "Reshape")
    return flat if flat is not None and len(graph.shape(f"{flat.name}:0") or ()) == 1 else None


def _comes_by_divisor(graph: Definition, weighted: WeightedSum, tensor: str, given: str) -> bool:
    """Whether a tensor is the gradient of the weights by what the sums are divided by."""
    spread = graph.made_by(
        _before_squares(graph, weighted, tensor) if weighted.combiner == "sqrtn" else tensor,
        "GatherV2",
    )
    if spread is None or not gathers_rows(graph, spread, graph.same(weighted.segments)):
        return False
    tensor = graph.inputs(spread)[0]
    if weighted.combiner == "sqrtn":
        root = graph.made_by(tensor, "SqrtGrad")
        if root is None or graph.same(graph.inputs(root)[0]) != weighted.divisor:
            return False
        tensor = graph.inputs(root)[1]
    factors = _factors(graph, before_reduction(graph, tensor, weighted.result, 1))
    if factors is None or graph.same(factors[0]) != graph.same(given):
        return False
    tensor = factors[1]
    for _ in range(2):
        quotient = graph.made_by(tensor, "DivNoNan")
        if quotient is None or graph.same(graph.inputs(quotient)[1]) != weighted.divisor:
            return False
        tensor = graph.inputs(quotient)[0]
    negated = graph.made_by(tensor, "Neg")
    return negated is not None and graph.same(graph.inputs(negated)[0]) == f"{weighted.sums.name}:0"


def _before_squares(graph: Definition, weighted: WeightedSum, tensor: str) -> str:
    """The gradient of the squares of the weights; the tensor itself where it is not theirs."""
    squares = _factors(graph, tensor)
    power = graph.made_by(squares[1], "Pow") if squares else None
    twice = _factors(graph, squares[0]) if squares else None
    if power is None or twice is None or not graph.is_value(twice[1], 2):
        return tensor
    base, exponent = graph.inputs(power)
    less = graph.made_by(exponent, "Sub")
    parts = [exponent] if less is None else graph.inputs(less)
    one = all(map(graph.is_value, parts, (1,) if less is None else (2, 1)))
    return twice[0] if one and graph.same(base) == weighted.column else tensor


def _factors(graph: Definition, tensor: str) -> list[str] | None:
    node = graph.made_by(tensor, "Mul")
    return None if node is None else graph.inputs(node)


def _scattered(
    graph: Definition, lookup: StockLookup, weighted: WeightedSum, flat: Any
) -> list[str]:
    """The nodes that give the gradient of the weights before some were dropped and filled in."""
    filled = graph.made_by(weighted.weights, "SparseFillEmptyRows", output=1)
    node = only_reader(graph, f"{flat.name}:0", "SparseFillEmptyRowsGrad")
    if (
        filled is None
        or node is None
        or any(reader.op != "Identity" for reader in graph.readers(f"{node.name}:1"))
    ):
        raise RefusedError(_UNKNOWN)
    if graph.same(graph.inputs(node)[0]) != f"{filled.name}:3":
        raise RefusedError(_UNKNOWN)
    scattered, weights = [node], graph.inputs(filled)[1]
    while graph.same(weights) != graph.same(lookup.weights):
        gather = graph.made_by(weights, "GatherV2")
        if gather is None or len(scattered) != 1:
            raise RefusedError(_UNKNOWN)
        scattered = _scatters(graph, scattered[0], graph.inputs(gather)[1])
        weights = graph.inputs(gather)[0]
    if not scattered or scattered == [node] or is_apart(graph, *scattered):
        raise RefusedError(_UNKNOWN)
    return [each.name for each in scattered]


def _scatters(graph: Definition, node: Any, places: str) -> list[Any]:
    """The nodes that put a gradient to where what it is of was taken from; all that read it."""
    flat = only_reader(graph, f"{node.name}:0", "Reshape")
    readers = graph.readers(f"{flat.name}:0") if flat is not None else []
    for reader in readers:
        if reader.op != "UnsortedSegmentSum":
            return []
        reshaped = graph.made_by(graph.inputs(reader)[1], "Reshape")
        own = reshaped and graph.same(graph.inputs(reshaped)[0]) == graph.same(places)
        if not own:
            return []
    return readers


def changes_later(graph: Definition, lookup: StockLookup, values: Iterable[str]) -> bool:
    """Whether what changes the table behind the lookup is behind the gradient of its table.

    The grouped op reads the rows once more, and that gradient waits for it.
    """
    variable = variable_of(graph, lookup.table)
    for node in graph.readers(variable):
        if family_of(node.op) != UPDATE and not _CALLS.match(node.op):
            continue
        before = _before(graph, node)
        if lookup.result in before and before.isdisjoint(values):
            return False
    return True


def _before(graph: Definition, node: Any) -> set[str]:
    """The names of the nodes that one depends on."""
    found: set[str] = set()
    waiting = [node.name]
    while waiting:
        for text in graph.nodes[waiting.pop()].input:
            if (name := node_name(text)) not in found:
                found.add(name)
                waiting.append(name)
    return found
