"""Stock lookups of ids with weights, as hypothesis draws them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from tests.builders.fused_graphs import fed
from tests.builders.lookup_features import ROWS
from tests.builders.sparse_ids import sparse

v1 = tf.compat.v1
WEIGHTS = st.sampled_from((-1.0, 0.0, 0.5, 0.5, 1.0, 2.0, float("nan")))


@dataclasses.dataclass(frozen=True)
class Weighted:
    """A lookup of ids with weights.

    Attributes:
      at, ids, weights: where ids are in [5, 3], what they are, and what they weigh.
      combiner: of the ids of a row.
      is_safe: whether ids below 0 and weights that are not above 0 are dropped.
      default_id: the id of rows without ids, of a safe one.
      table: which one it is.
      is_known: whether the number of ids is part of the graph.
      is_learned: whether the gradient of the weights is asked for.
    """

    at: tuple[tuple[int, int], ...]
    ids: tuple[int, ...]
    weights: tuple[float, ...]
    combiner: str
    is_safe: bool
    default_id: int | None
    table: int
    is_known: bool
    is_learned: bool = False

    def placed(self, values: Any, dtype: Any) -> tf.SparseTensor:
        found = sparse(self.at, values, (5, 3), dtype)
        return found if self.is_known else fed(found)


@st.composite
def weighted(draw: Any) -> Weighted:
    is_safe = draw(st.booleans())
    places = [(int(row), int(column)) for row, column in np.ndindex(5, 3)]
    at = [each for each in places if draw(st.integers(0, 2)) == 0]
    is_learned = draw(st.booleans())
    weights = [draw(WEIGHTS) for _ in at]
    if not is_safe or is_learned:
        # Where none are dropped stock's results are no numbers; nor is the gradient of such a one.
        weights = [1.5 if np.isnan(each) else each for each in weights]
    if not is_safe and is_learned:
        # What nearly cancels out depends on the order of a sum.
        weights = [abs(each) for each in weights]
    return Weighted(
        at=tuple(at),
        ids=tuple(draw(st.integers(-1 if is_safe else 0, ROWS - 1)) for _ in at),
        weights=tuple(weights),
        combiner=draw(st.sampled_from(("sum", "mean", "sqrtn"))),
        is_safe=is_safe,
        default_id=draw(st.sampled_from((None, 0, 7))) if is_safe else None,
        table=draw(st.integers(0, 1)),
        is_known=draw(st.booleans()),
        is_learned=is_learned,
    )


def looked_up(
    drawn: Sequence[Weighted], tables: Sequence[Any], id_dtype: Any
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """The embeddings, and what the weights of those that are learned are multiplied with."""
    found, factors = [], []
    for each in drawn:
        ids = each.placed(each.ids, id_dtype)
        # A sum keeps what is no number.
        numbers = [0.0 if np.isnan(w) and each.combiner == "sum" else w for w in each.weights]
        weights = each.placed(numbers, np.float32)
        if each.is_learned:
            ones = v1.placeholder_with_default(tf.ones_like(weights.values), weights.values.shape)
            factors.append(ones)
            weights = weights.with_values(ones * weights.values)
        if each.is_safe:
            found.append(
                v1.nn.safe_embedding_lookup_sparse(
                    tables[each.table], ids, weights, each.combiner, each.default_id
                )
            )
        else:
            found.append(
                v1.nn.embedding_lookup_sparse(
                    tables[each.table], ids, weights, combiner=each.combiner
                )
            )
    return found, factors


FULL = Weighted(
    at=((0, 0), (0, 1), (2, 0), (3, 1)),
    ids=(1, 1, 3, 4),
    weights=(0.5, 2.0, -1.0, 0.0),
    combiner="mean",
    is_safe=True,
    default_id=None,
    table=0,
    is_known=False,
)
