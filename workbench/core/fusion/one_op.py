"""Rules of which one op does a computation, and one op each of its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.neighbors import (
    computing,
    require_alone,
    run_once_on,
    waited_for,
)
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.pattern.template import Recognized, Template
from workbench.core.fusion.rule import (
    Edit,
    Fused,
    Part,
    Refusal,
    RefusedError,
    Rule,
    Surroundings,
    listed,
)
from workbench.core.graph.op_types import FLOAT32
from workbench.number_words import counted

_T = TypeVar("_T", bound=Template)
_SUMMED = "its gradient is summed with that of another one"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewOp:
    """An op that does the work of some nodes of a graph.

    Attributes:
      op: its type.
      name: that its node has with its scope, where no other one has it.
      end: of the name, behind the number that it gets else.
      inputs: tensors; ":1" is an output of the first op of the same part.
      attributes: of its node.
      gives: by the name of each node in whose place an output comes, float32, the output's number.
      others: tensors that the node in whose place output 0 comes sums too.
      nodes: names of the nodes whose work it does.
    """

    op: str
    name: str
    end: str = ""
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    gives: Mapping[str, int]
    others: tuple[str, ...] = ()
    nodes: frozenset[str]

    def inside(self, graph: Definition) -> frozenset[str]:
        """Names of nodes that nothing needs once the op runs."""
        return computing(graph, self.nodes.difference(self.gives))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpWithGradients:
    """The ops of a part, on one device: of a computation, and of its gradients.

    Attributes:
      kind: one of the computation's, in words.
      forward: does the computation.
      gradients: of it, an op each.
      device: where it is.
      note: what else there is to say, a clause; "" for nothing.
    """

    kind: str
    forward: NewOp
    gradients: tuple[NewOp, ...]
    device: str
    note: str = ""

    @property
    def all(self) -> tuple[NewOp, ...]:
        """The ops, each behind those that it reads."""
        return self.forward, *self.gradients


def one_op_rule(
    kind: str,
    like: Callable[[Definition, Any], _T | None],
    ops: Callable[[Recognized[_T]], OpWithGradients],
    *,
    name_of: Callable[[str], str] = str,
    if_shared: str = _SUMMED,
) -> Rule:
    """The rule of a kind.

    Args:
      kind: one of it, in words.
      like: the template of what a node may give; None where it gives something else.
      ops: the ops for what is like the template; raises RefusedError where none can do its work.
      name_of: what users call it, from the name of the node that gives its result.
      if_shared: why one stays of which another one replaces a node, other than a sum of gradients.
    """

    def find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
        parts: list[Part] = []
        refused: list[Refusal] = []
        taken: set[str] = set()
        for recognized in _recognized(graph, like):
            node = recognized.node
            try:
                placement.require_cpu(node, op=f"{recognized.like.kind}s")
                match = ops(recognized)
                _require_whole(graph, match)
                _take(graph, match, taken, if_shared)
                parts.append(Part(name=name_of(node.name), match=match))
            except RefusedError as refusal:
                refused.append(Refusal(name=name_of(node.name), reason=str(refusal)))
        return parts, refused

    return Rule(kind=kind, find=find, edit=_edit, describe=_describe)


def _recognized(
    graph: Definition, like: Callable[[Definition, Any], _T | None]
) -> Iterator[Recognized[_T]]:
    """What is like a template, in the graph's order."""
    for node in graph.ordered:
        template = like(graph, node)
        recognized = None if template is None else Recognized.of(graph, node, template)
        if recognized is not None:
            yield recognized


def _take(graph: Definition, ops: OpWithGradients, taken: set[str], if_shared: str) -> None:
    """Takes the nodes that ops replace; raises RefusedError where others replace one of them."""
    replaced = {name for op in ops.all for name in op.gives}
    shared = {graph.nodes[name].op for name in taken & replaced}
    if shared:
        raise RefusedError(_SUMMED if "AddN" in shared else if_shared)
    taken |= replaced


def _require_whole(graph: Definition, ops: OpWithGradients) -> None:
    """Raises RefusedError where nodes that ops stand for are needed alone, or run apart."""
    nodes = frozenset[str]().union(*(op.nodes for op in ops.all))
    require_alone(graph, ops.forward.inside(graph), nodes)
    if not run_once_on(graph, computing(graph, nodes), ops.device):
        raise RefusedError("it is in a branch or a loop, or on more than one device")


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    """The new ops, each in the scope of what it replaces."""
    graph, edit = surroundings.graph, Edit()
    taken = set(graph.nodes)
    for part in parts:
        ops: OpWithGradients = part.match
        names = [node_defs.free_name(taken, op.name, op.end) for op in ops.all]
        for op, name in zip(ops.all, names, strict=True):
            inputs = [names[0] + text if text.startswith(":") else text for text in op.inputs]
            node = node_defs.new_node(name, op.op, ops.device, inputs)
            for attribute, value in op.attributes.items():
                node_defs.set_attribute(node, attribute, value)
            edit.added.append(node)
            known = ops.forward.nodes | op.nodes
            for replaced in op.gives:
                edit.replace(_instead(graph, op, name, replaced, known), part)
            for inside in op.inside(graph):
                edit.bypass(inside, name, part)
        gradients = len(ops.gradients)
        edit.fused.append(
            Fused(kind=ops.kind, name=part.name, op=names[0], gradients=gradients, note=ops.note)
        )
    return edit


def _instead(
    graph: Definition, op: NewOp, name: str, replaced: str, known: frozenset[str]
) -> node_def_pb2.NodeDef:
    """The node that comes in the place of one.

    Args:
      graph: that has the old node.
      op: gives what the new one gives; `name` is its node's.
      replaced: the name of both.
      known: names of the nodes whose work the op does, and the op of which it is a gradient.
    """
    old, number = graph.nodes[replaced], op.gives[replaced]
    tensors = [f"{name}:{number}", *(op.others if number == 0 else ())]
    if len(tensors) == 1:
        node = node_defs.stand_in(old, tensors, [FLOAT32])
    else:
        node = node_defs.sum_node(replaced, tensors, FLOAT32, old.device)
    # Beyond these nodes, one that the op gives may lead to another one.
    behind = known if replaced in known else known.union(op.gives)
    node.input.extend(f"^{text}" for text in waited_for(graph, replaced, behind))
    return node


def _describe(fused: Sequence[Fused]) -> list[str]:
    lines = []
    for kind in sorted({each.kind for each in fused}):
        alike = [each for each in fused if each.kind == kind]
        each_one = " each" if len(alike) > 1 else ""
        lines += listed(f"{counted(len(alike), kind)} in one op{each_one}", alike)
    return lines
