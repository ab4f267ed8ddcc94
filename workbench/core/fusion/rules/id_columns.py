"""Ids of dense lookups in which an id below 0 counts from the end of its table.

How Keras prepares the ids of an Embedding, here of a column of a matrix:

    ids = matrix[:, i], which a Cast may make integers
    SelectV2(Less(ids, 0), AddV2(ids, rows of the table), ids)

Up to five nodes for each feature of a model. One op does those of all features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.groups import grouped, levels
from workbench.core.fusion.pattern.neighbors import run_once_on
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rule import (
    Edit,
    Fused,
    Part,
    Refusal,
    Rule,
    Surroundings,
    listed,
    scope_of,
)
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_types import FLOAT32, PLACEHOLDERS
from workbench.number_words import counted

_OP = "WorkbenchIdColumns"
_KIND = "id column"
# Of the ops that a plan adds to a graph.
_SCOPE = "id_columns"
_ID_DTYPES = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)
# What it makes ids of.
_DTYPES = (*_ID_DTYPES, FLOAT32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class IdColumn:
    """Ids that count from the end of a table. Tensors are named "node:output".

    Attributes:
      ids: the tensor of the ids, or of a matrix of which they are columns; cast where its type is
        another one.
      column: the first of these; -1 where the ids are all of the tensor.
      width: how many columns; 0 for one alone, as a vector.
      table_rows: how many rows the table has.
      result: the node that gives the ids.
      dtype, id_dtype: numbers of TensorFlow's data types, of the tensor and of the ids.
      device: of these nodes.
    """

    ids: str
    column: int
    width: int
    table_rows: int
    result: str
    dtype: int
    id_dtype: int
    device: str

    @property
    def asks(self) -> tuple[str, int, int, int]:
        """What those have in common that get the same result."""
        return self.ids, self.column, self.width, self.table_rows


def _find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
    """The ids of a graph that the op can prepare, in its order."""
    nodes = (node for node in graph.ordered if node.op == "SelectV2")
    found = [column for node in nodes if (column := _column(graph, placement, node))]
    return [Part(name=scope_of(column.result), match=column) for column in found], []


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    """One op for all ids that are in the same runs."""
    graph, runs = surroundings.graph, surroundings.runs
    edit = Edit()
    if not parts:
        return edit
    level = levels(graph, {part.match.result for part in parts}, {}, {})
    # What is behind the same ops of other rules makes none of them wait for itself. What is fed
    # apart has an op each: an op that reads it then asks for no other feed.
    fed = {node.name for node in graph.nodes.values() if runs and node.op in PLACEHOLDERS}
    behind = _behind(graph, surroundings.taken | fed)
    scope = node_defs.free_scope(graph, _SCOPE)

    def key(part: Part) -> Any:
        match: IdColumn = part.match
        alike = (value.get(match.result) for value in (runs, surroundings.effects))
        needs = level[match.result], behind[node_name(match.ids)]
        return *needs, match.device, match.dtype, match.id_dtype, *alike

    for number, group in enumerate(grouped(parts, key)):
        node, tensors = _columns_node(f"{scope}/columns_{number}", [part.match for part in group])
        edit.added.append(node)
        for part, tensor in zip(group, tensors, strict=True):
            match: IdColumn = part.match
            old = graph.nodes[match.result]
            stand_in = node_defs.stand_in(old, [tensor], [match.id_dtype])
            edit.replace(stand_in, part, reads=frozenset([match.ids]))
            edit.fused.append(Fused(kind=_KIND, name=part.name, op=node.name))
    return edit


def _describe(fused: Sequence[Fused]) -> list[str]:
    return listed(f"ids of {counted(len(fused), 'feature')} prepared together", fused)


def _behind(graph: Definition, marked: Collection[str]) -> dict[str, int]:
    """By the name of each node which of some lead to it, a set as bits."""
    marks = {name: 1 << number for number, name in enumerate(sorted(marked))}
    behind: dict[str, int] = {}
    for node in graph.ordered:
        bits = marks.get(node.name, 0)
        for text in node.input:
            bits |= behind.get(node_name(text), 0)
        behind[node.name] = bits
    return behind


def _columns_node(name: str, columns: Sequence[IdColumn]) -> tuple[node_def_pb2.NodeDef, list[str]]:
    """The op that prepares several features, and the tensor of each."""
    different = list(dict.fromkeys(column.asks for column in columns))
    ids, first, widths, table_rows = map(list, zip(*different, strict=True))
    node = node_defs.new_node(name, _OP, columns[0].device, ids)
    node.attr["T"].type, node.attr["Tid"].type = columns[0].dtype, columns[0].id_dtype
    node_defs.set_attribute(node, "N", len(different))
    node_defs.set_attribute(node, "columns", first)
    node_defs.set_attribute(node, "widths", widths)
    node_defs.set_attribute(node, "table_rows", table_rows)
    return node, [f"{name}:{different.index(column.asks)}" for column in columns]


def _column(graph: Definition, placement: Placement, selects: Any) -> IdColumn | None:
    below, from_end, ids = graph.inputs(selects)
    less, adds = graph.made_by(below, "Less"), graph.made_by(from_end, "AddV2")
    id_dtype = selects.attr["T"].type
    if less is None or adds is None or id_dtype not in _ID_DTYPES:
        return None
    (compared, zero), (added, rows) = graph.inputs(less), graph.inputs(adds)
    table_rows = _number(graph, rows)
    same = graph.same(ids)
    alike = same == graph.same(compared) == graph.same(added)
    if not alike or _number(graph, zero) != 0 or table_rows is None:
        return None
    if not 0 <= table_rows <= tf.as_dtype(id_dtype).max:
        return None
    if not _is_plain(graph, selects, [less, adds, selects], until=same):
        return None
    if placement.may_be_on_gpu(selects.device):
        return None
    tensor, dtype = same, id_dtype
    casts = graph.made_by(same, "Cast")
    if casts is not None and _makes_ids(graph, selects, casts):
        tensor, dtype = graph.inputs(casts)[0], casts.attr["SrcT"].type
    matrix, column, width = _sliced(graph, selects, tensor) or (tensor, -1, 0)
    return IdColumn(
        ids=matrix,
        column=column,
        width=width,
        table_rows=table_rows,
        result=selects.name,
        dtype=dtype,
        id_dtype=id_dtype,
        device=selects.device,
    )


def _makes_ids(graph: Definition, selects: Any, casts: Any) -> bool:
    """Whether a Cast gives ids as the op does."""
    alike = casts.attr["SrcT"].type in _DTYPES and not casts.attr["Truncate"].b
    return alike and _is_plain(graph, selects, [casts], until=graph.inputs(casts)[0])


def _is_plain(graph: Definition, selects: Any, nodes: Sequence[Any], *, until: str) -> bool:
    """Whether nodes run once beside another one, and wait for nothing on the way from a tensor."""
    names = [node.name for node in nodes]
    return run_once_on(graph, names, selects.device) and not _waits(graph, names[-1], until=until)


def _waits(graph: Definition, name: str, *, until: str) -> bool:
    """Whether a node waits for more than its inputs, or one does that leads to it from a tensor."""
    seen, waiting = {name, node_name(until)}, [name]
    while waiting:
        for text in graph.nodes[waiting.pop()].input:
            if text.startswith("^"):
                return True
            if (source := node_name(text)) not in seen:
                seen.add(source)
                waiting.append(source)
    return False


def _sliced(graph: Definition, selects: Any, ids: str) -> tuple[str, int, int] | None:
    """The matrix of which ids are columns, and which; as `matrix[:, i]` or `matrix[:, i:j]`."""
    part = graph.made_by(ids, "StridedSlice")
    if part is None:
        return None
    matrix, *bounds = graph.inputs(part)
    if not _is_plain(graph, selects, [part], until=matrix):
        return None
    begin, end, strides = map(graph.value, bounds)
    shape = graph.shape(matrix)
    whole_rows = part.attr["begin_mask"].i & part.attr["end_mask"].i & 1
    others = part.attr["ellipsis_mask"].i | part.attr["new_axis_mask"].i
    shrunk = part.attr["shrink_axis_mask"].i
    if begin is None or end is None or strides is None or shape is None:
        return None
    if len(shape) != 2 or shape[1] < 0 or len(begin) != 2 or not whole_rows or others:
        return None
    if shrunk not in (0, 2) or strides.tolist() != [1, 1]:
        return None
    first = None if part.attr["begin_mask"].i & 2 else int(begin[1])
    last = None if part.attr["end_mask"].i & 2 else int(end[1])
    if shrunk:
        first, last = int(begin[1]), int(begin[1]) + 1 or None
    columns = range(shape[1])[slice(first, last)]
    if not columns:
        return None
    return matrix, columns.start, 0 if shrunk else len(columns)


def _number(graph: Definition, tensor: str) -> int | None:
    """The integer that a tensor is known to be; also as one size of a constant shape."""
    casts = graph.made_by(tensor, "Cast")
    if casts is not None:
        tensor = graph.inputs(casts)[0]
    part = graph.made_by(tensor, "StridedSlice")
    if part is None:
        value = graph.value(tensor)
    else:
        value = _element(part, *map(graph.value, graph.inputs(part)))
    is_number = value is not None and value.shape == () and np.issubdtype(value.dtype, np.integer)
    return int(value) if value is not None and is_number else None


def _element(part: Any, *values: np.ndarray | None) -> np.ndarray | None:
    """The one element of a vector that a StridedSlice takes of it."""
    if any(value is None or value.shape != (1,) for value in values[1:]):
        return None
    vector, begin = values[:2]
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
    one = part.attr["shrink_axis_mask"].i == 1 and not any(part.attr[name].i for name in masks)
    if vector is None or begin is None or vector.ndim != 1 or not one:
        return None
    inside = -len(vector) <= begin[0] < len(vector)
    return np.asarray(vector[begin[0]]) if inside else None


RULE = Rule(kind=_KIND, find=_find, edit=_edit, describe=_describe, is_dense=False)
