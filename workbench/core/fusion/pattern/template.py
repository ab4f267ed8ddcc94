"""Template: a computation and its gradients as TensorFlow builds them, and what is like it."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match
from workbench.core.fusion.pattern.neighbors import computing, require_alone
from workbench.core.fusion.rule import RefusedError

_T = TypeVar("_T", bound="Template")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template(abc.ABC):
    """A computation with float32 tensors, and its gradients.

    Attributes:
      graph: that TensorFlow built them in.
      inputs: what it reads, placeholders; `given`, one too, is the gradient of `y`.
      y: the result.
      gradients: of the inputs.
      backward: names of the nodes that compute these.
    """

    graph: Definition
    inputs: tuple[str, ...]
    given: str
    y: str
    gradients: tuple[str, ...]
    backward: frozenset[str]

    @classmethod
    def built(
        cls,
        compute: Callable[..., tf.Tensor],
        shapes: Sequence[Sequence[int | None]],
        **others: Any,
    ) -> Self:
        """The template of a function.

        Args:
          compute: takes tensors, and gives one.
          shapes: static ones of these tensors; None for a size that is not known.
          others: attributes of the subclass.
        """
        v1 = tf.compat.v1
        with tf.Graph().as_default() as built:
            inputs = [v1.placeholder(tf.float32, shape) for shape in shapes]
            y = compute(*inputs)
            given = v1.placeholder(tf.float32, y.shape)
            forward = {op.name for op in built.get_operations()}
            gradients = v1.gradients(y, inputs, grad_ys=given)
        graph = Definition(built.as_graph_def(add_shapes=True).node)
        return cls(
            graph=graph,
            inputs=tuple(tensor.name for tensor in inputs),
            given=given.name,
            y=y.name,
            gradients=tuple(graph.same(tensor.name) for tensor in gradients),
            backward=frozenset(graph.nodes.keys() - forward),
            **others,
        )

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """One of it, in words."""

    @property
    def any_number(self) -> frozenset[str]:
        """Constants that may be any."""
        return frozenset()

    @property
    def root(self) -> str:
        """The tensor among whose readers the search for gradients begins."""
        return self.inputs[0]

    @property
    def terms(self) -> tuple[str, ...]:
        """What is summed to the gradient of the first input."""
        return tuple(map(self.graph.same, self.graph.inputs(self._sum)))

    @property
    def _sum(self) -> Any:
        return self.graph.source(self.gradients[0])

    @functools.cached_property
    def start(self) -> tuple[str, int]:
        """The reader of `root` that is nearest to the sum of terms, and the steps from it there."""
        readers = (node for node in self.graph.readers(self.root) if node.name in self.backward)
        # Much else reads a shape.
        distances = (
            (self._steps_to_sum(node), node.name) for node in readers if node.op != "Shape"
        )
        steps, name = min((steps, name) for steps, name in distances if steps is not None)
        return name, steps

    def _steps_to_sum(self, first: Any) -> int | None:
        """How many readers it is from a node to the sum; None where no way leads there."""
        steps, nodes = 0, {first.name: first}
        while nodes and self._sum.name not in nodes:
            readers = [each for name in nodes for each in self.graph.readers(f"{name}:0")]
            steps, nodes = steps + 1, {each.name: each for each in readers}
        return steps if nodes else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recognized(Generic[_T]):
    """A node of a graph that gives what a template gives.

    Attributes:
      graph: that has the node.
      node: that gives the result.
      like: the template.
      match: of the template and the graph, without gradients.
    """

    graph: Definition
    node: Any
    like: _T
    match: Match

    @classmethod
    def of(cls, graph: Definition, node: Any, like: _T) -> Recognized[_T] | None:
        """What is alike; None where a node gives something else."""
        match = Match(like.graph, graph, any_number=like.any_number)
        if not match.add(like.y, f"{node.name}:0"):
            return None
        return cls(graph=graph, node=node, like=like, match=match)

    def gradients(self) -> Iterator[tuple[Any, Match]]:
        """Nodes with which gradients of it begin, and the match of each with these."""
        start, _ = self.like.start
        for node in self.graph.readers(self.match[self.like.root], self.like.graph.nodes[start].op):
            match = self.match.copy()
            if node.name not in self.match.nodes and match.add(f"{start}:0", f"{node.name}:0"):
                yield node, match

    def sum_of_terms(self, first: Any, match: Match) -> tuple[str, tuple[str, ...]]:
        """The node that sums the terms of a gradient, and the other tensors that it sums.

        Args:
          first: the node that the gradient begins with.
          match: of the gradient; the terms are added to it.

        Raises:
          RefusedError: no node does.
        """
        nodes = [first]
        for _ in range(self.like.start[1]):
            nodes = [each for node in nodes for each in self.graph.readers(f"{node.name}:0")]
            for total in nodes:
                if total.op != "AddN":
                    continue
                others = match.others_in_sum(self.like.terms, total)
                if others is not None:
                    return total.name, others
        raise RefusedError("its gradient is not as TensorFlow builds it")

    def nodes_of_gradient(self, match: Match, gives: Collection[str]) -> set[str]:
        """The nodes of a gradient.

        Args:
          match: of the gradient; what the template computes beside is added to it.
          gives: names of the nodes that give its results.

        Raises:
          RefusedError: something else needs what it computes, or it is of something else.
        """
        if not self.graph.leads_to(self.node.name, self.graph.source(match[self.like.given]).name):
            raise RefusedError("its gradient does not come from what it gave")
        match.add_computed()
        nodes = (match.nodes - self.match.nodes).union(gives)
        require_alone(self.graph, computing(self.graph, nodes.difference(gives)), nodes)
        return nodes
