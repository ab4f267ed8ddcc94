"""Gradients of stock lookups of dense ids in a finished graph.

How TensorFlow builds one, from the gradient of the embeddings and the ids, each a Reshape:

    gradient → [n, dim] and ids → [n], which an update reads as table_updates/ has it

Neither says which table was looked up in, so it is the update that tells. A gradient that no such
update reads stays: it is as good as free.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.core.fusion.lookups.find.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.any_update import update_of
from workbench.core.fusion.lookups.table_updates.keras import values_of
from workbench.core.fusion.lookups.table_updates.update import SCATTERS, only_reader, place_in
from workbench.core.fusion.pattern.definition import Definition


def dense_gradients_of(graph: Definition, lookup: StockLookup) -> list[LookupGradient]:
    """The gradients of a lookup which updates of its table read that a grouped op can do."""
    return [
        found
        for rows in graph.readers(lookup.ids, "Reshape")
        if rows.name not in graph.conditional
        for found in _gradients(graph, lookup, rows)
    ]


def _gradients(graph: Definition, lookup: StockLookup, rows: Any) -> Iterator[LookupGradient]:
    """The one gradient of these rows, if an update reads it."""
    for values in _candidates(graph, f"{rows.name}:0"):
        if not _is_gradient(graph, lookup, values):
            continue
        given = graph.inputs(values)[0]
        update, names = update_of(graph, lookup, values.name, rows.name, row_once=False)
        if update is not None:
            yield LookupGradient(
                values=values.name, rows=rows.name, given=given, update=update, **names
            )


def _candidates(graph: Definition, rows: str) -> Iterator[Any]:
    """The nodes that may make the gradients of rows."""
    behind = only_reader(graph, rows, "ConcatV2")
    if behind is not None:
        place = place_in(graph, behind, rows)
        if place is None:
            return
        for whole in _candidates(graph, f"{behind.name}:0"):
            if whole.op == "ConcatV2" and place < len(graph.inputs(whole)) - 1:
                yield graph.source(graph.same(graph.inputs(whole)[place]))
        return
    unique = only_reader(graph, rows, "Unique")
    summed = unique and only_reader(graph, f"{unique.name}:1", "UnsortedSegmentSum")
    if summed:
        yield graph.source(graph.same(graph.inputs(summed)[0]))
        return
    yield from map(graph.source, values_of(graph, rows))
    scatter = only_reader(graph, rows, *SCATTERS)
    scaled = scatter and graph.made_by(graph.inputs(scatter)[2], "Mul")
    for factor in graph.inputs(scaled) if scaled else ():
        negated = graph.made_by(factor, "Neg")
        yield graph.source(graph.same(graph.inputs(negated)[0] if negated else factor))


def _is_gradient(graph: Definition, lookup: StockLookup, values: Any) -> bool:
    """Whether a node gives a gradient of embeddings the shape [ids, columns]."""
    if values.op != "Reshape" or values.name in graph.conditional:
        return False
    given = graph.shape(graph.inputs(values)[0])
    return given is not None and len(given) > 1 and given[-1] == lookup.dim
