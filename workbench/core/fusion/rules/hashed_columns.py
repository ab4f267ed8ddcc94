"""Columns of text of which what is not empty is hashed into ids, as sparse ones.

How TensorFlow's feature columns build one, and others do as well:

    texts ─ NotEqual "" ─ Where → positions
    GatherND(texts, positions) ─ StringToHashBucketFast → ids
    [positions with one more column of 0]

Six nodes for each column of a model, which one op does for all columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.groups import grouped, levels
from workbench.core.fusion.pattern.neighbors import run_once_on
from workbench.core.fusion.pattern.placement import Placement, names_gpu
from workbench.core.fusion.rule import Edit, Fused, Part, Refusal, Rule, Surroundings, listed
from workbench.number_words import counted

_OP = "WorkbenchHashColumns"
_KIND = "hashed column"
# Of the ops that a plan adds to a graph.
_SCOPE = "hashed_columns"
_INT64 = tf.int64.as_datatype_enum


@dataclasses.dataclass(frozen=True, kw_only=True)
class HashedColumn:
    """A column of text that becomes sparse ids. Tensors are named "node:output".

    Attributes:
      texts: the tensor of the texts.
      buckets: of how many ids each is one.
      ids: the node that gives the ids.
      indices: the node that gives where they are.
      zero_last: whether the indices have one more column, of 0.
      device: of these nodes.
    """

    texts: str
    buckets: int
    ids: str
    indices: str
    zero_last: bool
    device: str

    @property
    def nodes(self) -> tuple[str, str]:
        """The nodes that give the column."""
        return self.indices, self.ids

    @property
    def asks(self) -> tuple[str, int, bool]:
        """What columns have in common that get the same results."""
        return self.texts, self.buckets, self.zero_last


def _find(graph: Definition, _: Placement) -> tuple[list[Part], list[Refusal]]:
    """The columns of a graph that the op can do, in its order."""
    nodes = (node for node in graph.ordered if node.op == "StringToHashBucketFast")
    found = [column for node in nodes if (column := _column(graph, node))]
    return [Part(name=column.ids, match=column) for column in found], []


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    """One op for all columns that are in the same runs."""
    graph, runs = surroundings.graph, surroundings.runs
    edit = Edit()
    level = levels(graph, {n for part in parts for n in part.match.nodes}, {}, {})
    scope = node_defs.free_scope(graph, _SCOPE)

    def key(part: Part) -> Any:
        # The op reads texts alone, as what is of the lower level does.
        nodes = part.match.nodes
        alike = (value.get(n) for value in (runs, surroundings.effects) for n in nodes)
        return min(level[n] for n in nodes), part.match.device, *alike

    # Texts that are hashed in several ways have the same indices.
    stand_ins: dict[str, tuple[str, list[Part]]] = {}
    for number, group in enumerate(grouped(parts, key)):
        node, instead = _column_nodes(f"{scope}/columns_{number}", [part.match for part in group])
        edit.added.append(node)
        for part, tensors in zip(group, instead, strict=True):
            for name, tensor in tensors:
                stand_ins.setdefault(name, (tensor, []))[1].append(part)
            fused = Fused(kind=_KIND, name=part.name, op=node.name)
            edit.fused.append(fused)
    for name, (tensor, own) in stand_ins.items():
        stand_in = node_defs.stand_in(graph.nodes[name], [tensor], [_INT64])
        edit.replace(stand_in, *own, reads=frozenset(part.match.texts for part in own))
    return edit


def _describe(fused: Sequence[Fused]) -> list[str]:
    return listed(f"{counted(len(fused), 'column')} of text hashed together", fused)


def _column_nodes(
    name: str, columns: Sequence[HashedColumn]
) -> tuple[node_def_pb2.NodeDef, list[tuple[tuple[str, str], tuple[str, str]]]]:
    """The op that does several columns, and of each the nodes with the tensors that they become."""
    different = list(dict.fromkeys(column.asks for column in columns))
    texts, buckets, zero_last = map(list, zip(*different, strict=True))
    node = node_defs.new_node(name, _OP, columns[0].device, texts)
    node_defs.set_attribute(node, "N", len(different))
    node_defs.set_attribute(node, "buckets", buckets)
    node_defs.set_attribute(node, "zero_last", zero_last)
    instead = []
    for column in columns:
        output = different.index(column.asks)
        indices = f"{name}:{len(different) + output}"
        instead.append(((column.ids, f"{name}:{output}"), (column.indices, indices)))
    return node, instead


def _column(graph: Definition, hashes: Any) -> HashedColumn | None:
    gathers = graph.made_by(graph.inputs(hashes)[0], "GatherNd")
    if gathers is None:
        return None
    texts, positions = map(graph.same, graph.inputs(gathers))
    given = graph.inputs(gathers)[0]
    where = graph.made_by(positions, "Where")
    if where is None or not graph.shape(texts):
        return None
    present = graph.made_by(graph.inputs(where)[0], "NotEqual")
    empty = None if present is None else _compared(graph, present, texts)
    if empty is None:
        return None
    zeros, wider = next(_wider(graph, positions), (None, None))
    nodes = [each for each in (present, where, gathers, hashes, zeros, wider) if each is not None]
    if any(text.startswith("^") for node in (empty, *nodes) for text in node.input):
        return None
    names = [node.name for node in nodes]
    if names_gpu(hashes.device) or not run_once_on(graph, names, hashes.device):
        return None
    return HashedColumn(
        texts=given,
        buckets=hashes.attr["num_buckets"].i,
        ids=hashes.name,
        indices=where.name if wider is None else wider.name,
        zero_last=wider is not None,
        device=hashes.device,
    )


def _compared(graph: Definition, compares: Any, texts: str) -> Any | None:
    """The empty word that a node compares the texts with."""
    sides = [graph.same(each) for each in graph.inputs(compares)]
    others = [each for each in sides if each != texts]
    value = graph.value(others[0]) if len(others) == 1 else None
    is_empty = value is not None and value.shape == () and value.item() == b""
    return graph.source(others[0]) if is_empty else None


def _wider(graph: Definition, positions: str) -> Iterator[tuple[Any, Any]]:
    """The nodes that make a column of zeros, and put it behind the positions."""
    for node in graph.readers(positions, "ConcatV2"):
        first, *others, axis = graph.inputs(node)
        if graph.same(first) != positions or len(others) != 1 or not graph.is_value(axis, 1):
            continue
        zeros = graph.made_by(others[0], "ZerosLike")
        part = zeros and graph.made_by(graph.inputs(zeros)[0], "StridedSlice")
        if not part or graph.same(graph.inputs(part)[0]) != positions:
            continue
        shape = graph.shape(others[0])
        if shape is not None and len(shape) == 2 and shape[1] == 1 and _has_all_rows(graph, part):
            yield zeros, node


def _has_all_rows(graph: Definition, part: Any) -> bool:
    """Whether a StridedSlice leaves no row out."""
    strides = graph.value(graph.inputs(part)[3])
    masks = part.attr["begin_mask"].i & part.attr["end_mask"].i & 1
    return bool(masks) and strides is not None and strides[0] == 1


RULE = Rule(kind=_KIND, find=_find, edit=_edit, describe=_describe)
