"""Graph → its embedding tables: size, slots of the optimizer, and the tensors that hold their ids.

A table is a variable of which some op reads rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

import numpy as np

from workbench.core.analysis.embedding_lens.readers import (
    ARGUMENT,
    is_grouped,
    lookup_of,
    row_readers,
    table_names,
)
from workbench.core.graph.graph_view import CAPTURED_VARIABLE, GraphView
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.op_types import VARIABLES

# The input that an op hands on, changed in form alone, or with repeated ids left out.
_SAME_IDS = {"Identity": 0, "Reshape": 0, "Cast": 0, "Unique": 0, "UniqueV2": 0}
# The same within a lookup, where invalid ids are dropped and empty rows filled.
_SAME_IDS_INSIDE = _SAME_IDS | {"Gather": 0, "GatherV2": 0, "SparseFillEmptyRows": 1}
_INDICES = 1
_INTEGERS = frozenset({"int32", "int64"})
# Of the dtypes that NumPy does not know.
_ITEM_BYTES = {"bfloat16": 2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingTable:
    """A variable of which rows are looked up.

    Attributes:
      name: of the variable; where a function captures it, of the scope that reads it.
      rows, dim: its shape, further dimensions in `dim`; None where it is not known.
      dtype: of an element; "" where it is not known.
      slots: variables of the optimizer that have the shape of the table.
      lookups: scopes of the lookups in it.
      ids: names of the tensors that hold the ids of its lookups, invalid ones and repeated ones
        too; none where the graph does not show them before they are sorted out.
      node: that is the variable, or through which a function reads it. Each trace of a function
        may call that otherwise.
      capture: the variable's number among those that a function captures, the same in each trace
        of it; None where it is a node of the graph.
    """

    name: str
    rows: int | None
    dim: int | None
    dtype: str
    slots: tuple[str, ...]
    lookups: tuple[str, ...]
    ids: tuple[str, ...]
    node: str = ""
    capture: int | None = None

    @property
    def row_bytes(self) -> int | None:
        """Bytes of a row."""
        if self.dim is None:
            return None
        return self.dim * (_ITEM_BYTES.get(self.dtype) or np.dtype(self.dtype).itemsize)

    @property
    def bytes(self) -> int | None:
        """Bytes of the table."""
        if self.rows is None or self.row_bytes is None:
            return None
        return self.rows * self.row_bytes

    @property
    def slot_bytes(self) -> int | None:
        """Bytes of its slots."""
        return None if self.bytes is None else self.bytes * len(self.slots)


def find_tables(graph: GraphView) -> tuple[EmbeddingTable, ...]:
    """The embedding tables of a graph, in its order; slots of the optimizer are none."""
    first: dict[int, list[int]] = {}
    for source, _, target, place in graph.data.tolist():
        # A grouped lookup reads several tables, then their ids.
        if place == 0 or (_is_variable(graph, source) and is_grouped(graph.ops[target])):
            first.setdefault(source, []).append(target)
    # A function reads the variables that it captures through arguments.
    kinds = [
        ARGUMENT if graph.captures.get(node) == CAPTURED_VARIABLE else op
        for node, op in enumerate(graph.ops)
    ]
    readers = row_readers(kinds, first)
    slots = {variable: _slots(graph, variable, readers) for variable in readers}
    of_others = {slot for own in slots.values() for slot in own}
    names = table_names(graph.names, kinds, readers)
    captured = [node for node, kind in enumerate(kinds) if kind == ARGUMENT]
    return tuple(
        dataclasses.replace(
            _table(graph, variable, readers[variable], slots[variable]),
            name=names[variable],
            capture=captured.index(variable) if variable in captured else None,
        )
        for variable in readers
        if variable not in of_others
    )


def _is_variable(graph: GraphView, node: int) -> bool:
    """Whether a node is a variable, or through it a function reads one that it captures."""
    return graph.ops[node] in VARIABLES or graph.captures.get(node) == CAPTURED_VARIABLE


def _table(
    graph: GraphView, variable: int, readers: tuple[int, ...], slots: list[int]
) -> EmbeddingTable:
    shape = _shape(graph, variable)
    lookups = [lookup_of(graph.names[node], graph.ops[node]) for node in readers]
    ids = [_ids(graph, node, scope) for node, scope in zip(readers, lookups, strict=True)]
    known = tuple(dict.fromkeys(name for name in ids if name))
    return EmbeddingTable(
        name=graph.names[variable],
        rows=shape[0] if shape else None,
        dim=math.prod(shape[1:]) if shape else None,
        dtype=_dtype(graph, variable, readers[0]),
        slots=tuple(graph.names[slot] for slot in slots),
        lookups=tuple(dict.fromkeys(lookups)),
        # The ids of some lookups are not the ids of the table.
        ids=known if all(ids) else (),
        node=graph.names[variable],
    )


def _shape(graph: GraphView, variable: int) -> tuple[int, ...] | None:
    """Of the variable; of a handle the graph knows that of what is read from it."""
    if variable in graph.captures:
        captured = graph.captured_shapes.get(variable)
        return captured if captured and min(captured) >= 0 else None
    nodes = [variable]
    if "ref" not in _kind(graph, variable):
        of_handle = graph.consumers.of(variable).tolist()
        nodes = [node for node in of_handle if graph.ops[node] == "ReadVariableOp"]
    for node in nodes:
        shape = next(iter(graph.output_shapes(node)), None)
        if shape and min(shape) >= 0:
            return shape
    return None


def _kind(graph: GraphView, node: int) -> str:
    """Of a node's first output; "" where only a trace is known of the graph."""
    return next(iter(graph.outputs[node]), "")


def _dtype(graph: GraphView, variable: int, reader: int) -> str:
    kind = _kind(graph, variable)
    return kind.removesuffix("_ref") if kind != "resource" else _kind(graph, reader)


def _slots(graph: GraphView, variable: int, tables: Collection[int]) -> list[int]:
    """Variables of the same shape that the update of this one reads, too."""
    shape = _shape(graph, variable)
    slots: dict[int, None] = {}
    for update in graph.consumers.of(variable).tolist():
        if family_of(graph.ops[update]) != UPDATE:
            continue
        given = [node for node, _ in graph.inputs(update) if _is_variable(graph, node)]
        if "Grouped" in graph.ops[update]:
            given = _own_of_grouped(given, variable, tables)
        elif graph.inputs(update)[0][0] != variable:
            continue
        slots |= {n: None for n in given if n != variable and _shape(graph, n) == shape}
    return list(slots)


def _own_of_grouped(given: list[int], variable: int, tables: Collection[int]) -> list[int]:
    """A variable's slots of those given to a grouped update: all tables, then the slots of each."""
    updated = [node for node in given if node in tables]
    slots = given[len(updated) :]
    if variable not in updated:
        return []
    each, at = len(slots) // len(updated), updated.index(variable)
    return slots[at * each : (at + 1) * each]


def _ids(graph: GraphView, reader: int, scope: str) -> str:
    """The tensor with the ids of a lookup, before any are sorted out; "" where it is not seen."""
    inputs = graph.inputs(reader)
    if len(inputs) <= _INDICES:
        return ""
    node, output = inputs[_INDICES]
    while True:
        inside = graph.names[node].startswith(f"{scope}/")
        place = (_SAME_IDS_INSIDE if inside else _SAME_IDS).get(graph.ops[node])
        inputs = graph.inputs(node)
        if place is None or place >= len(inputs):
            break
        node, output = inputs[place]
    kinds = graph.outputs[node]
    sorted_out = graph.ops[node] == "DynamicPartition" or "Workbench" in graph.ops[node]
    if sorted_out or output >= len(kinds) or kinds[output] not in _INTEGERS:
        return ""
    return graph.tensor(node, output)
