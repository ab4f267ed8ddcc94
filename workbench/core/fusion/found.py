"""Found: what of a graph few ops, or other kernels, do instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.fusion.batch_norms.stock_norm import StockNorm
from workbench.core.fusion.interactions.stock_interaction import StockInteraction
from workbench.core.fusion.kernels.alike_ops import AlikeOps
from workbench.core.fusion.kernels.matmuls import DenseProduct
from workbench.core.fusion.lookups.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.texts.hashed_columns import HashedColumn


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """What is found in a graph, of each kind in the graph's order.

    Attributes:
      lookups: with their gradients.
      norms: batch normalizations.
      interactions: of vectors.
      matmuls: products of matrices.
      columns: of text that is hashed.
      alike: ops that another kernel does alike.
    """

    lookups: Sequence[tuple[StockLookup, list[LookupGradient]]]
    norms: Sequence[StockNorm]
    interactions: Sequence[StockInteraction]
    matmuls: Sequence[DenseProduct]
    columns: Sequence[HashedColumn]
    alike: AlikeOps
