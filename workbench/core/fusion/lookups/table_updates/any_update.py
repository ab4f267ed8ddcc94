"""Which update alone reads a gradient of rows: the one place that knows all kinds."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.adam import adam_of
from workbench.core.fusion.lookups.table_updates.keras import OF_SQUARES, keras_update_of
from workbench.core.fusion.lookups.table_updates.update import (
    TableUpdate,
    concatenated,
    descent_of,
    native_update_of,
    rows_update_of,
    sums_of,
)
from workbench.core.fusion.pattern.definition import Definition


def update_of(
    graph: Definition, lookup: StockLookup, values: str, rows: str, *, row_once: bool
) -> tuple[TableUpdate | None, dict[str, str]]:
    """The update that alone reads a gradient, and the nodes that sum the gradient before it.

    Args:
      graph: the graph.
      lookup: whose gradient it is.
      values, rows: nodes that make it, as of `LookupGradient`.
      row_once: whether no row comes twice.

    Returns:
      An update that a grouped op can do, if there is one, and fields of `LookupGradient`.
    """
    together = concatenated(graph, values, rows)
    if together:
        return _update_of_several(graph, lookup, *together, row_once=row_once), {}
    return _update_of_one(graph, lookup, values, rows, row_once=row_once)


def _update_of_one(
    graph: Definition, lookup: StockLookup, values: str, rows: str, *, row_once: bool
) -> tuple[TableUpdate | None, dict[str, str]]:
    """What `update_of` returns, where no other gradient is beside this one."""
    sums = sums_of(graph, values, rows)
    if sums is None:
        tensors = f"{values}:0", f"{rows}:{int(rows == values)}"
        update = descent_of(graph, lookup, values, rows)
        return update or keras_update_of(graph, lookup, *tensors, row_once=row_once), {}
    summed, unique = sums
    names = {"summed": summed.name, "unique": unique.name}
    return _update_of_sums(graph, lookup, summed, unique), names


def _update_of_sums(
    graph: Definition, lookup: StockLookup, summed: Any, unique: Any
) -> TableUpdate | None:
    return (
        rows_update_of(graph, lookup, summed, unique)
        or native_update_of(graph, lookup, summed, unique)
        or adam_of(graph, lookup, summed, unique)
    )


def _update_of_several(
    graph: Definition, lookup: StockLookup, values: Any, rows: Any, *, row_once: bool
) -> TableUpdate | None:
    """The update that reads the gradients of several lookups.

    Keras's squares what each lookup of sparse ids has for a row, which a grouped op does not.
    """
    update, _ = _update_of_one(graph, lookup, values.name, rows.name, row_once=False)
    if update is None or (row_once and update.rule in OF_SQUARES):
        return None
    *parts, _ = graph.inputs(values)
    return dataclasses.replace(update, shared_by=tuple(graph.same(each) for each in parts))
