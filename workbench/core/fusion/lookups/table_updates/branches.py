"""Branch: a branch of an If, in terms of the tensors that the If is given."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition


@dataclasses.dataclass(frozen=True, kw_only=True)
class Branch:
    """The body of a branch. Tensors are named as in a FunctionDef, "node:output:number".

    Attributes:
      function: the FunctionDef.
      given: of each argument's name the tensor outside.
      nodes: of the body, by name.
    """

    function: Any
    given: dict[str, str]
    nodes: dict[str, Any]

    def result(self, number: int) -> str:
        """The tensor that is returned as one of the results."""
        return str(self.function.ret[self.function.signature.output_arg[number].name])

    def made_by(self, tensor: str, op: str) -> Any | None:
        """The node behind Identities that makes a tensor, where it is of this type."""
        node = self.nodes.get(self._same(tensor, ("Identity",)).partition(":")[0])
        return node if node is not None and node.op == op else None

    def inputs(self, node: Any) -> list[str]:
        """The tensors that a node of the body reads."""
        return [text for text in node.input if not text.startswith("^")]

    def argument(self, tensor: str, *, casts: bool = False) -> str | None:
        """The tensor outside that a tensor is, or is cast from; None of what is computed."""
        return self.given.get(self._same(tensor, ("Identity", "Cast")[: 1 + casts]))

    def is_zero(self, tensor: str) -> bool:
        """Whether a tensor is a constant 0."""
        node = self.made_by(tensor, "Const")
        return node is not None and not tf.make_ndarray(node.attr["value"].tensor).any()

    def _same(self, tensor: str, ops: tuple[str, ...]) -> str:
        node = self.nodes.get(tensor.partition(":")[0])
        while node is not None and node.op in ops:
            (tensor,) = self.inputs(node)
            node = self.nodes.get(tensor.partition(":")[0])
        return tensor


def branch_of(graph: Definition, node: Any, name: str) -> Branch | None:
    """A branch of an If; None where the graph lacks its function.

    Args:
      graph: which the node is in.
      node: the If.
      name: "then_branch" or "else_branch".
    """
    function = graph.functions.get(node.attr[name].func.name)
    if function is None:
        return None
    arguments = [each.name for each in function.signature.input_arg]
    given = [graph.same(each) for each in graph.inputs(node)[1:]]
    return Branch(
        function=function,
        given=dict(zip(arguments, given, strict=True)),
        nodes={each.name: each for each in function.node_def},
    )
