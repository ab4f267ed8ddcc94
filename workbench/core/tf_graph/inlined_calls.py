"""GraphDef with calls of functions → one that has the nodes of these functions in their place."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import op_def_registry

from workbench.core.graph.graph_view import node_name

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# Attributes of calls and functions that stay calls: compiled whole, or chosen by TensorFlow among
# several that do the same.
_WHOLE = ("_XlaMustCompile", "_noinline", "_implements", "api_implements", "executor_type")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inlined:
    """A graph without calls.

    Attributes:
      definition: the graph.
      tensors: by each output of a call, "node:output", the tensor that it was.
      effects: by the name of each call the nodes for whose effects it ran.
    """

    definition: graph_pb2.GraphDef
    tensors: Mapping[str, str]
    effects: Mapping[str, tuple[str, ...]]


def inlined(definition: graph_pb2.GraphDef) -> Inlined | None:
    """A graph with the nodes of functions in place of their calls; None where there are no calls.

    Nodes of a function are named "call/node". Those with an effect wait for what the call waited
    for. What waited for the call waits for what the function returns, and for its effects. Calls
    that TensorFlow runs as one piece stay, and so do functions of branches and loops.

    Args:
      definition: a graph with its library of functions; it is only read.
    """
    inliner = _Inliner(definition)
    for node in definition.node:
        inliner.add(node)
    return inliner.result() if inliner.effects else None


def with_bodies(
    definition: graph_pb2.GraphDef, calls: Collection[str]
) -> tuple[graph_pb2.GraphDef, dict[str, list[str]]]:
    """A graph in which the nodes of functions stand before some of their calls.

    In the place of such a call an IdentityN of the same name hands on what the function returns, or
    a NoOp where that is nothing. It waits for the effects of the function, and for what the call
    waited for. All other nodes are as they were.

    Args:
      definition: a graph with its library of functions; it is only read.
      calls: names of nodes of the graph; what `inlined` leaves a call stays one here, too.

    Returns:
      The graph, and by call the names of the nodes of its function and those that this one calls.
    """
    inliner = _Inliner(definition, kept=calls)
    for node in definition.node:
        inliner.add(node)
    return inliner.result().definition, inliner.bodies


def functions_behind(node: Any, functions: Mapping[str, Any]) -> dict[str, Any]:
    """By name the functions that a node calls, and those that these call.

    Args:
      node: a NodeDef.
      functions: those of the graph, by name.
    """
    found: dict[str, Any] = {}
    waiting = [node]
    while waiting:
        for name in called_by(waiting.pop()):
            if name in functions and name not in found:
                found[name] = functions[name]
                waiting += functions[name].node_def
    return found


def called_by(node: Any) -> Iterator[str]:
    """Names of the functions that attributes of a node have."""
    for value in node.attr.values():
        called = [value.func] if value.WhichOneof("value") == "func" else value.list.func
        yield from (each.name for each in called)


class _Inliner:
    """The nodes of a graph without calls, while they are collected.

    Attributes:
      effects: by call the nodes for whose effects it ran, calls among them.
      bodies: by call that stays as an end the nodes before it.
    """

    def __init__(self, definition: graph_pb2.GraphDef, kept: Collection[str] | None = None) -> None:
        """Collects nothing yet.

        Args:
          definition: the whole graph.
          kept: names of the calls that stay as ends, which others then stay calls beside; None
            leaves none.
        """
        self._whole = definition
        self._kept = kept
        self._functions = {each.signature.name: each for each in definition.library.function}
        self._taken = {node.name for node in definition.node}
        self._nodes: list[node_def_pb2.NodeDef] = []
        self._tensors: dict[str, str] = {}
        self.effects: dict[str, list[str]] = {}
        self.bodies: dict[str, list[str]] = {}
        # By call what it returns.
        self._returned: dict[str, list[str]] = {}

    def add(self, node: Any, within: Sequence[str] = ()) -> None:
        """Adds a node, or those of the function that it calls; `within` are functions around it."""
        function = self._called(node, within)
        if function is None:
            self._nodes.append(node)
            return
        before = len(self._nodes)
        given = [_tensor(text) for text in node.input if not text.startswith("^")]
        waits = [text for text in node.input if text.startswith("^")]
        scope = self._free_scope(node.name, function)
        tensors = {
            arg.name: tensor
            for arg, tensor in zip(function.signature.input_arg, given, strict=True)
        }
        names = {arg: node_name(tensor) for arg, tensor in tensors.items()}
        for inner in function.node_def:
            names[inner.name] = f"{scope}/{inner.name}"
            tensors.update(_outputs(inner, names[inner.name]))
        for inner in function.node_def:
            copy = node_def_pb2.NodeDef()
            copy.CopyFrom(inner)
            copy.name, copy.device = names[inner.name], inner.device or node.device
            # It names nodes as they were.
            copy.attr.pop("_class", None)
            del copy.input[:]
            copy.input.extend(
                f"^{names[text[1:]]}" if text.startswith("^") else tensors[text]
                for text in inner.input
            )
            if _is_stateful(inner.op):
                copy.input.extend(each for each in waits if each not in copy.input)
            self._taken.add(copy.name)
            self.add(copy, (*within, function.signature.name))
        returned = [tensors[function.ret[arg.name]] for arg in function.signature.output_arg]
        effects = [names[each] for each in function.control_ret.values()]
        if self._kept is not None and not within:
            self.bodies[node.name] = [each.name for each in self._nodes[before:]]
            self._nodes.append(_end(node, returned, [*waits, *(f"^{each}" for each in effects)]))
            return
        self._tensors.update((f"{node.name}:{i}", tensor) for i, tensor in enumerate(returned))
        self._returned[node.name] = returned
        self.effects[node.name] = effects

    def result(self) -> Inlined:
        """The graph, once all of its nodes were added."""
        graph = graph_pb2.GraphDef(versions=self._whole.versions, library=self._whole.library)
        for node in self._nodes:
            copy = graph.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(self._inputs(node))
        return Inlined(
            definition=graph,
            tensors={tensor: self._resolved(tensor) for tensor in self._tensors},
            effects={call: tuple(self._effects_of(call)) for call in self.effects},
        )

    def _inputs(self, node: Any) -> list[str]:
        """What a node reads and waits for, without calls."""
        reads = [self._resolved(text) for text in node.input if not text.startswith("^")]
        waits = [
            f"^{name}"
            for text in node.input
            if text.startswith("^")
            for name in self._awaited(text[1:])
        ]
        return [*reads, *dict.fromkeys(waits)]

    def _called(self, node: Any, within: Sequence[str]) -> Any | None:
        """The function whose nodes come in the place of a node, if any do."""
        stays = self._kept is not None and not within and node.name not in self._kept
        if node.op not in CALLS or stays or _is_whole(node):
            return None
        function = self._functions.get(node.attr["f"].func.name)
        if function is None or function.signature.name in within or _is_whole(function):
            return None
        return function if all(map(_is_known, function.node_def)) else None

    def _free_scope(self, call: str, function: Any) -> str:
        scope, number = call, 0
        while any(f"{scope}/{inner.name}" in self._taken for inner in function.node_def):
            number += 1
            scope = f"{call}_{number}"
        return scope

    def _resolved(self, text: str) -> str:
        tensor = _tensor(text)
        while tensor in self._tensors:
            tensor = self._tensors[tensor]
        return tensor

    def _awaited(self, name: str) -> Iterator[str]:
        """The nodes that a node waits for which waited for this one."""
        if name not in self.effects:
            yield name
            return
        yield from self._effects_of(name)
        for tensor in self._returned[name]:
            yield node_name(self._resolved(tensor))

    def _effects_of(self, call: str) -> Iterator[str]:
        for name in self.effects[call]:
            if name in self.effects:
                yield from self._effects_of(name)
            else:
                yield name


def _end(call: Any, returned: Sequence[str], waits: Sequence[str]) -> node_def_pb2.NodeDef:
    """What has the name of a call, and hands on what its function returns."""
    end = node_def_pb2.NodeDef(name=call.name, op="IdentityN", device=call.device)
    end.input.extend([*returned, *dict.fromkeys(waits)])
    if returned:
        end.attr["T"].CopyFrom(call.attr["Tout"])
    else:
        end.op = "NoOp"
    return end


def _tensor(text: str) -> str:
    return text if ":" in text else f"{text}:0"


def _is_whole(of: Any) -> bool:
    """Whether a call or a function has an attribute with which it stays one piece."""
    return any(name in of.attr and (of.attr[name].b or of.attr[name].s) for name in _WHOLE)


def _is_known(node: Any) -> bool:
    """Whether the outputs of a node of a function can be told."""
    open_attributes = any(
        value.WhichOneof("value") == "placeholder" for value in node.attr.values()
    )
    return op_def_registry.get(node.op) is not None and not open_attributes


@functools.cache
def _is_stateful(op: str) -> bool:
    return bool(op_def_registry.get(op).is_stateful)


def _outputs(node: Any, name: str) -> Iterator[tuple[str, str]]:
    """The outputs of a node as a function calls them, and as a graph does under another name."""
    number = 0
    for arg in op_def_registry.get(node.op).output_arg:
        for i in range(_count(node, arg)):
            yield f"{node.name}:{arg.name}:{i}", f"{name}:{number}"
            number += 1


def _count(node: Any, arg: Any) -> int:
    """How many tensors an output of a node has."""
    named = arg.number_attr or arg.type_list_attr
    if not named:
        return 1
    value = node.attr[named] if named in node.attr else _default(node.op, named)
    return int(value.i) if arg.number_attr else len(value.list.type)


def _default(op: str, attribute: str) -> Any:
    """What an attribute is where a model was saved without its defaults."""
    attributes = op_def_registry.get(op).attr
    return next(each.default_value for each in attributes if each.name == attribute)
