"""Lookups in the value of a resource variable, which TensorFlow reads as a whole → in the variable.

Once a table was changed by rows, each read of its value copies it; a grouped op reads rows where
they lie. Keras looks up in values, and reads one more, of which only the static shape is needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.update import waits_of
from workbench.core.fusion.pattern.definition import Definition

_READ = "ReadVariableOp"


def in_variable(graph: Definition, lookup: StockLookup) -> StockLookup:
    """The lookup in the variable, where its value is read for this lookup alone.

    One that is read behind something else, or on another device, stays: its value is that of a
    certain time, or what travels. So does one of whose value something waits for an Identity.
    """
    read = None if lookup.is_resource else graph.made_by(lookup.table, _READ)
    if read is None or waits_of(read):
        return lookup
    handle = graph.same(graph.inputs(read)[0])
    behind = graph.readers(f"{read.name}:0")
    readers = [node.name for node in behind if node.op != "Identity"]
    if any(graph.waiting(node.name) for node in behind if node.op == "Identity"):
        return lookup
    devices = {graph.source(handle).device, read.device, lookup.device}
    if readers != [lookup.combines] or len(devices) > 1:
        return lookup
    return dataclasses.replace(lookup, table=handle, is_resource=True, read=read.name)


def idle_reads(
    graph: Definition, lookups: Iterable[StockLookup]
) -> Iterator[tuple[str, list[StockLookup]]]:
    """Reads of tables of which nothing needs the value, nor that they wait; and the lookups."""
    of_table: dict[str, list[StockLookup]] = {}
    for each in lookups:
        if each.is_resource:
            of_table.setdefault(each.table, []).append(each)
    for handle, own in of_table.items():
        for node in graph.readers(handle, _READ):
            if not graph.readers(f"{node.name}:0") and not waits_of(node):
                yield node.name, own
