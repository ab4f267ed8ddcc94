"""The parts of a graph that several signatures need, as one part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.node_defs import free_name
from workbench.core.graph.graph_view import node_name
from workbench.exporting.session.signatures import renamed, tensor_names

_FRAME = "frame_name"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphPart:
    """What signatures need of a graph.

    Attributes:
      nodes: NodeDefs without devices; variables and EmbeddingVariables are not among them.
      variables: NodeDefs of the variables that these read.
      embeddings: NodeDefs of the EmbeddingVariables.
      initializers: names of the nodes that fill the hash tables among `nodes`.
      signatures: by name, of the tensors of this part.
      stage_inputs: inputs that stand for what a stage handed out.
      old_names: of tensors that are new here, the ones of the graph that they stand for.
    """

    nodes: tuple[Any, ...]
    variables: tuple[Any, ...]
    embeddings: tuple[Any, ...]
    initializers: tuple[str, ...]
    signatures: Mapping[str, Any]
    stage_inputs: tuple[str, ...]
    old_names: Mapping[str, str]


def merged(graph: tf.Graph, parts: Sequence[tuple[str, GraphPart]]) -> GraphPart:
    """One part that has all signatures.

    Nodes that are alike in two parts are there once. Where a node reads something else in one of
    them, that part keeps a copy, and with it all that depends on the node.

    Args:
      graph: that the parts are of.
      parts: each of one signature, with its name.
    """
    (_, first), *others = parts
    for name, part in others:
        first = _joined(graph, first, part, name)
    return first


def _joined(graph: tf.Graph, first: GraphPart, part: GraphPart, signature: str) -> GraphPart:
    there = {node.name: node for node in first.nodes}
    others = _others(there, part)
    names = _new_names(graph, there, part, others, signature)
    added = [
        _renamed_node(node, names, f"/{signature}" if node.name in others else "")
        for node in part.nodes
        if node.name in names or node.name not in there
    ]
    tensors = _new_tensors(graph, names)
    old_names = {tensors.get(new, new): old for new, old in part.old_names.items()}
    old_names = {new: part.old_names.get(old, old) for old, new in tensors.items()} | old_names
    initializers = [names.get(name, name) for name in part.initializers]
    return GraphPart(
        nodes=(*first.nodes, *added),
        variables=_once(first.variables, part.variables),
        embeddings=_once(first.embeddings, part.embeddings),
        initializers=tuple(dict.fromkeys([*first.initializers, *initializers])),
        signatures={
            **first.signatures,
            **{name: _renamed_signature(each, names) for name, each in part.signatures.items()},
        },
        stage_inputs=tuple(dict.fromkeys([*first.stage_inputs, *part.stage_inputs])),
        old_names={**first.old_names, **old_names},
    )


def _others(there: Mapping[str, Any], part: GraphPart) -> set[str]:
    """Names of a part's nodes that are others than those there, or depend on such ones."""
    nodes = {node.name: node for node in part.nodes}
    readers: dict[str, list[str]] = {}
    frames: dict[bytes, list[str]] = {}
    for node in part.nodes:
        for text in node.input:
            readers.setdefault(node_name(text), []).append(node.name)
        if _FRAME in node.attr:
            frames.setdefault(node.attr[_FRAME].s, []).append(node.name)
    others: set[str] = set()
    waiting = [name for name, node in nodes.items() if name in there and there[name] != node]
    while waiting:
        name = waiting.pop()
        if name in others:
            continue
        others.add(name)
        waiting += readers.get(name, ())
        # A loop has one frame, which its copy cannot share.
        if _FRAME in nodes[name].attr:
            waiting += frames[nodes[name].attr[_FRAME].s]
    return others


def _new_names(
    graph: tf.Graph,
    there: Mapping[str, Any],
    part: GraphPart,
    others: set[str],
    signature: str,
) -> dict[str, str]:
    """New names of a part's nodes whose own ones other nodes have."""
    taken = {
        *there,
        *(node.name for node in part.nodes),
        *(op.name for op in graph.get_operations()),
    }
    names = {}
    for name in sorted(others & there.keys()):
        names[name] = free_name(taken, f"{signature}/{name}")
    return names


def _new_tensors(graph: tf.Graph, names: Mapping[str, str]) -> dict[str, str]:
    """New names of the tensors of nodes that have new names."""
    tensors: dict[str, str] = {}
    for old, new in names.items():
        try:
            count = len(graph.get_operation_by_name(old).outputs)
        except KeyError:
            count = 1  # A placeholder, or what hands an input on.
        tensors |= {f"{old}:{number}": f"{new}:{number}" for number in range(count)}
    return tensors


def _renamed_node(node: Any, names: Mapping[str, str], frame: str) -> node_def_pb2.NodeDef:
    copy = node_def_pb2.NodeDef()
    copy.CopyFrom(node)
    copy.name = names.get(node.name, node.name)
    copy.input[:] = [_renamed_text(text, names) for text in node.input]
    if _FRAME in copy.attr:
        copy.attr[_FRAME].s += frame.encode()
    return copy


def _renamed_text(text: str, names: Mapping[str, str]) -> str:
    name = node_name(text)
    return text.replace(name, names[name], 1) if name in names else text


def _renamed_signature(signature: Any, names: Mapping[str, str]) -> Any:
    copy = type(signature)()
    copy.CopyFrom(signature)
    for infos in (copy.inputs, copy.outputs):
        for key, info in infos.items():
            new = {text: _renamed_text(text, names) for text in tensor_names(info)}
            infos[key].CopyFrom(renamed(info, new))
    return copy


def _once(first: Iterable[Any], second: Iterable[Any]) -> tuple[Any, ...]:
    """Nodes by their names, each once."""
    return tuple({node.name: node for node in (*second, *first)}.values())
