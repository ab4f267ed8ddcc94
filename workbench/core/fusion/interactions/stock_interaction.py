"""An interaction of an example's vectors as a value, and its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class InteractionGradient:
    """A gradient of an interaction.

    Attributes:
      given: the tensor of the gradient of its result.
      reader: a node on the way to it that reads the vectors.
      x_sum: the node that sums what leads to the gradient of `x`.
      others: tensors that this node sums too, from elsewhere.
      inside: names of nodes that nothing needs once one op makes it.
      after: the nodes that were waited for on the way to it, by the name of `x_sum`.
    """

    given: str
    reader: str
    x_sum: str
    others: tuple[str, ...]
    inside: frozenset[str]
    after: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StockInteraction:
    """What one op can do with an example's vectors.

    Attributes:
      kind: DOT, the dot products of pairs of them; or FM, twice their sum, column by column.
      attributes: of the op; `gradient_attributes`, of that of its gradient.
      x: the tensor of the vectors, [examples, vectors, dim] float32.
      result: the node that gives the result.
      inside: names of nodes that nothing needs once one op does it.
      gradients: of it.
      device: where it is computed.
      after: the nodes that were waited for on the way to it, by the name of `result`.
    """

    kind: str
    attributes: Mapping[str, Any]
    gradient_attributes: Mapping[str, Any]
    x: str
    result: str
    inside: frozenset[str]
    gradients: tuple[InteractionGradient, ...]
    device: str
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what its ops make."""
        return (self.result, *(each.x_sum for each in self.gradients))
