"""A dot interaction as a value, and its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class InteractionGradient:
    """A gradient of a dot interaction.

    Attributes:
      given: the tensor of the gradient of its dots.
      product: the node that makes the first of the products which are summed.
      x_sum: the node that sums what leads to the gradient of `x`.
      others: tensors that this node sums too, from elsewhere.
      inside: names of nodes that nothing needs once one op makes it.
      after: the nodes that were waited for on the way to it, by the name of `x_sum`.
    """

    given: str
    product: str
    x_sum: str
    others: tuple[str, ...]
    inside: frozenset[str]
    after: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StockInteraction:
    """Dot products of pairs of an example's vectors that one op can do.

    Attributes:
      x: the tensor of the vectors, [examples, vectors, dim] float32.
      vectors: of an example.
      pairs: of each, first * vectors + second.
      result: the node that gives the dots, [examples, pairs].
      inside: names of nodes that nothing needs once one op does it.
      gradients: of it.
      device: where it is computed.
      after: the nodes that were waited for on the way to it, by the name of `result`.
    """

    x: str
    vectors: int
    pairs: tuple[int, ...]
    result: str
    inside: frozenset[str]
    gradients: tuple[InteractionGradient, ...]
    device: str
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what its ops make."""
        return (self.result, *(each.x_sum for each in self.gradients))
