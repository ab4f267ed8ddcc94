"""The part of a session's graph that a signature needs, cut where its inputs begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

from workbench.core.fusion.node_defs import free_name
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_types import EMBEDDING_VARIABLE, INPUTS, STAGE_TAKE, VARIABLES
from workbench.errors import OptionError, UnsupportedError
from workbench.exporting.session.merged_parts import GraphPart, merged
from workbench.exporting.session.signatures import renamed, tensor_names
from workbench.exporting.session.stages import puts_of

_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
# Ops that fill a hash table, and tables that nothing else fills.
_FILLS, _FILLS_ANY = "InitializeTable", "LookupTableImport"
_STATIC_TABLES = frozenset({"HashTable", "HashTableV2"})
# Hints that belong to the session's machines, or name nodes that may be gone.
_HINTS = ("_class", "_output_shapes")


def part_of(
    graph: tf.Graph, graph_def: graph_pb2.GraphDef, signatures: Mapping[str, Any]
) -> GraphPart:
    """The part of a graph that signatures need.

    Each signature begins at its own inputs. So a node may be there twice, where one signature
    computes what another one is given.

    Args:
      graph: of the session.
      graph_def: its definition.
      signatures: by name.

    Raises:
      OptionError: an output depends on a placeholder that is no input of its signature.
      UnsupportedError: an output depends on the input pipeline, or on Python code.
    """
    cuts = [
        (name, _Cut(graph, graph_def, name, signature).part())
        for name, signature in signatures.items()
    ]
    return merged(graph, cuts)


class _Cut:
    """Follows the graph from the outputs of a signature to its inputs."""

    def __init__(self, graph: tf.Graph, graph_def: Any, name: str, signature: Any) -> None:
        self._graph = graph
        self._nodes = {node.name: node for node in graph_def.node}
        self._name, self._signature = name, signature
        self._new: dict[str, node_def_pb2.NodeDef] = {}
        # A tensor that is read in place of another, by the name of that one.
        self._instead: dict[str, str] = {}
        self._inputs = set(_names(signature.inputs))
        # Of each take that inputs stand for, by name and number of what it hands out.
        self._stage_inputs: dict[tuple[str, int], tuple[str, str]] = {}
        # Of each output that is an input, by its tensor: no session fetches what it is fed.
        self._handed_on: dict[str, node_def_pb2.NodeDef] = {}

    def part(self) -> GraphPart:
        for key, info in self._signature.inputs.items():
            for name in tensor_names(info):
                self._begin_at(name, key)
        begins = self._begins()
        outputs = _names(self._signature.outputs)
        kept = reached = self._follow(f"signature {self._name!r}", outputs, begins)
        initializers = self._initializers(kept)
        for name in initializers:
            kept = kept | self._follow("the initializer of a table", [f"^{name}"], set())
        nodes = [self._copy(self._node(name), kept) for name in self._in_order(kept)]
        # An input that no output needs is an input all the same.
        nodes += [self._copy(self._node(name), kept) for name in sorted(begins - kept)]
        signature = self._cut_signature(reached)
        nodes += self._handed_on.values()
        return GraphPart(
            nodes=tuple(node for node in nodes if node.op not in VARIABLES | {EMBEDDING_VARIABLE}),
            variables=tuple(node for node in nodes if node.op in VARIABLES),
            embeddings=tuple(node for node in nodes if node.op == EMBEDDING_VARIABLE),
            initializers=initializers,
            signatures={self._name: signature},
            stage_inputs=tuple(key for key, _ in self._of_stages()),
            old_names={new: old for old, new in self._instead.items()},
        )

    def _node(self, name: str) -> Any:
        return self._new.get(name) or self._nodes[name]

    def _at(self, tensor: str) -> str:
        """The tensor that is read in place of another, or that one itself."""
        tensor = tensor if ":" in tensor or tensor.startswith("^") else f"{tensor}:0"
        while tensor in self._instead:
            tensor = self._instead[tensor]
        return tensor

    def _begins(self) -> set[str]:
        """Names of the nodes that stand for inputs."""
        return {node_name(self._at(name)) for name in self._inputs}

    def _begin_at(self, tensor: str, key: str) -> None:
        """Has the part begin at a tensor."""
        name = tensor if ":" in tensor else f"{tensor}:0"
        # Not one with a default, which may come from the training's input.
        if self._nodes[node_name(name)].op != "Placeholder" and name not in self._instead:
            self._instead[name] = self._placeholder(name, key)

    def _placeholder(self, tensor: str, key: str) -> str:
        """A new placeholder of the dtype and shape of a tensor."""
        like = self._graph.get_tensor_by_name(tensor)
        node = self._new_node("Placeholder", f"inputs/{key}")
        node.attr["dtype"].type = like.dtype.base_dtype.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(like.shape.as_proto())
        return f"{node.name}:0"

    def _new_node(self, op: str, wanted: str) -> node_def_pb2.NodeDef:
        """A new node of a name that is free, the one that is wanted or a similar one."""
        name = free_name({*self._nodes, *self._new}, wanted)
        self._new[name] = node_def_pb2.NodeDef(name=name, op=op)
        return self._new[name]

    def _follow(self, signature: str, outputs: Iterable[str], begins: set[str]) -> set[str]:
        """Names of the nodes that outputs need; `begins` has the inputs that they may need."""
        reached: set[str] = set()
        waiting = [self._at(name) for name in outputs]
        while waiting:
            text = waiting.pop()
            name = node_name(text)
            node = self._node(name)
            if node.op == STAGE_TAKE and not text.startswith("^"):
                waiting.append(self._behind_stage(node, text))
                continue
            if name in reached or node.op == STAGE_TAKE:
                continue
            self._require_known(signature, node, begins)
            reached.add(name)
            waiting += [self._at(each) for each in node.input]
        return reached

    def _initializers(self, kept: set[str]) -> tuple[str, ...]:
        """Names of the nodes that fill hash tables among those that are kept."""
        return tuple(
            node.name
            for node in self._nodes.values()
            if node.op.startswith((_FILLS, _FILLS_ANY))
            and node_name(node.input[0]) in kept
            and (node.op.startswith(_FILLS) or self._table(node).op in _STATIC_TABLES)
        )

    def _table(self, fill: Any) -> Any:
        """The table that a node fills."""
        return self._node(node_name(fill.input[0]))

    def _behind_stage(self, take: Any, tensor: str) -> str:
        """The tensor that is read in place of one that a stage hands out.

        That is what was put, where it is computed from inputs; else a new input.
        """
        number = int(tensor.partition(":")[2])
        for put in puts_of(take, self._nodes.values()):
            (_, *record) = [text for text in put.input if not text.startswith("^")]
            if self._comes_from_inputs(record):
                self._instead[tensor] = self._at(record[number])
                return self._instead[tensor]
        key = f"{take.attr['stage'].s.decode() or take.name}_{number}".replace("/", "_")
        self._instead[tensor] = self._placeholder(tensor, key)
        self._stage_inputs[take.name, number] = key, self._instead[tensor]
        return self._instead[tensor]

    def _of_stages(self) -> list[tuple[str, str]]:
        """Inputs that stand for what stages hand out, and their tensors, in order."""
        return [self._stage_inputs[at] for at in sorted(self._stage_inputs)]

    def _comes_from_inputs(self, tensors: Iterable[str]) -> bool:
        """Whether an input is among tensors, or among what they are computed from."""
        begins = self._begins()
        seen: set[str] = set()
        waiting = [self._at(text) for text in tensors]
        while waiting:
            name = node_name(waiting.pop())
            if name in begins:
                return True
            if name not in seen:
                seen.add(name)
                waiting += [self._at(text) for text in self._node(name).input]
        return False

    def _require_known(self, signature: str, node: Any, begins: set[str]) -> None:
        if node.op == "Placeholder":
            of_stage = any(node_name(tensor) == node.name for _, tensor in self._of_stages())
            if node.name not in begins and not of_stage:
                raise OptionError(
                    f"{signature}: its outputs need the placeholder {node.name!r}, "
                    "which is none of its inputs; give it as one"
                )
        elif node.op in INPUTS:
            raise UnsupportedError(
                f"{signature}: its outputs need {node.name!r} ({node.op}), which reads "
                "the training's input; give the tensors that it hands out as inputs"
            )
        elif node.op in _PYTHON:
            raise UnsupportedError(
                f"{signature}: its outputs need {node.name!r} ({node.op}), which calls "
                "Python code of this process; an export has none"
            )

    def _copy(self, node: Any, kept: set[str]) -> node_def_pb2.NodeDef:
        copy = node_def_pb2.NodeDef()
        copy.CopyFrom(node)
        copy.device = ""
        for hint in _HINTS:
            copy.attr.pop(hint, None)
        inputs = [self._at(text) for text in node.input]
        copy.input[:] = [
            text for text in inputs if not text.startswith("^") or node_name(text) in kept
        ]
        return copy

    def _in_order(self, kept: set[str]) -> list[str]:
        return [name for name in (*self._nodes, *self._new) if name in kept]

    def _cut_signature(self, reached: set[str]) -> Any:
        """The signature, of new tensors, with the inputs that stand for what a stage handed out."""
        old = self._signature
        names = {text: self._at(text) for text in (*_names(old.inputs), *_names(old.outputs))}
        # With the default values of inputs, where this version of TensorFlow has them.
        signature = type(old)()
        signature.CopyFrom(old)
        for key, info in old.inputs.items():
            signature.inputs[key].CopyFrom(renamed(info, names))
        fed = {names[text] for text in _names(old.inputs)} | {text for _, text in self._of_stages()}
        for key, info in old.outputs.items():
            own = {
                text: self._after_input(names[text], key) if names[text] in fed else names[text]
                for text in tensor_names(info)
            }
            signature.outputs[key].CopyFrom(renamed(info, own))
        for key, tensor in self._of_stages():
            if node_name(tensor) in reached:
                node = self._new[node_name(tensor)]
                info = signature.inputs[key]
                info.name, info.dtype = tensor, node.attr["dtype"].type
                info.tensor_shape.CopyFrom(node.attr["shape"].shape)
        return signature

    def _after_input(self, tensor: str, key: str) -> str:
        """A tensor that hands an input on as an output."""
        if tensor not in self._handed_on:
            node = self._new_node("Identity", f"outputs/{key}")
            node.input.append(tensor)
            # A placeholder, of the graph or a new one.
            node.attr["T"].type = self._node(node_name(tensor)).attr["dtype"].type
            self._handed_on[tensor] = node
        return f"{self._handed_on[tensor].name}:0"


def _names(infos: Mapping[str, Any]) -> list[str]:
    return [name for info in infos.values() for name in tensor_names(info)]
