"""A batch normalization as a value, and its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReluGradient:
    """The gradient of a ReLU that is made with that of the batch normalization behind it.

    Attributes:
      node: that gives it.
      bias: nodes that give the sums of its columns, the gradient of a bias.
      after: by the name of each of these, the nodes that were waited for on the way to it.
    """

    node: str
    bias: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormGradient:
    """The gradients of a batch normalization, where they go through it once.

    Attributes:
      given: the tensor of the gradient of its result.
      x_sum: the node that sums what leads to the gradient of `x`; "" where nothing asks for it.
      others: tensors that this node sums too, from elsewhere.
      gamma: the node that gives the gradient of gamma; "" where none does.
      beta: likewise, of beta; it is always computed.
      relu: the gradient of the ReLU that gives `x`, which alone needs `x_sum`; None else.
      inside: names of nodes that nothing needs once one op makes all of these.
      after: by the name of each node that gives one of them, the nodes that were waited for on the
        way to it.
    """

    given: str
    x_sum: str
    others: tuple[str, ...]
    gamma: str
    beta: str
    relu: ReluGradient | None
    inside: frozenset[str]
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what the op makes."""
        return tuple(filter(None, (self.x_sum, self.gamma, self.beta)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class StockNorm:
    """A batch normalization that one op can do. Tensors are named "node:output".

    Attributes:
      name: the scope that it was built in.
      x: [rows, columns] float32.
      gamma, beta: [columns], values of variables, or constants.
      epsilon: what is added to the variance.
      result: the node that gives the normalized matrix.
      mean, variance: nodes that give the moments, where something else reads them; "" else.
      inside: names of nodes that nothing needs once one op does it.
      gradients: of it.
      device: where it is computed.
      after: by the name of each node that gives one of its results, the nodes that were waited for
        on the way to it.
    """

    name: str
    x: str
    gamma: str
    beta: str
    epsilon: float
    result: str
    mean: str
    variance: str
    inside: frozenset[str]
    gradients: tuple[NormGradient, ...]
    device: str
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what its ops make."""
        own = filter(None, (self.result, self.mean, self.variance))
        return (*own, *(name for each in self.gradients for name in each.given_by))
