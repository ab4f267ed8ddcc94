"""What of lookups is fused where they may run: a GPU has kernels for most of it, not for all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.fusion.lookups.find.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import NO_ROWS, StockLookup
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rule import RefusedError
from workbench.core.graph.graph_view import node_name

# Those of the rules of updates that kernels for a GPU know.
_RULES = frozenset({"gradient_descent", "adagrad", "row_wise_adagrad", "adam", "ftrl"})
# Dimensions of a SparseTensor that they take.
_MOST_RANK = 5


def placed(
    graph: Definition,
    placement: Placement,
    lookup: StockLookup,
    gradients: Sequence[LookupGradient],
) -> tuple[StockLookup, list[LookupGradient]]:
    """A lookup with its place, and its gradients as they can be made where it may run.

    An update that a GPU has no kernel for stays TensorFlow's, and so does a gradient that has
    rows of zeros.

    Raises:
      RefusedError: it may run on a GPU, which cannot do it; or its table has no rows.
    """
    if lookup.is_resource:
        variable = node_name(graph.same(lookup.table))
        if variable in placement.empty:
            raise RefusedError(NO_ROWS)
        lookup = dataclasses.replace(lookup, place=placement.captured.get(variable, ""))
    if not placement.may_be_on_gpu(lookup.device, lookup.place):
        return lookup, list(gradients)
    if not placement.kernels:
        raise RefusedError(
            "it may run on a GPU, and kernels of lookups for GPUs are not loaded; "
            "wb.load_gpu_kernels() loads them"
        )
    lacking = _lacking(graph, lookup)
    if lacking:
        raise RefusedError(f"it may run on a GPU, and {lacking}")
    known = [
        gradient if _is_known(gradient) else without_update(lookup, gradient)
        for gradient in gradients
    ]
    possible = [gradient for gradient in known if gradient is not None]
    if lookup.zero_id is None or all(gradient.update for gradient in possible):
        return lookup, possible
    if lookup.max_norm is not None or lookup.weights:
        raise RefusedError(
            "it may run on a GPU, where its gradient, which has one of 0 for rows without ids, "
            "stays TensorFlow's"
        )
    return lookup, [gradient for gradient in possible if gradient.update]


def _lacking(graph: Definition, lookup: StockLookup) -> str:
    """Why a GPU cannot do a lookup, a clause; "" where it can."""
    if lookup.ends_with_ids:
        return (
            "its embeddings end with its last id, which a grouped lookup does not know there; "
            "tf.nn.safe_embedding_lookup_sparse is fused"
        )
    rank = graph.shape(lookup.dense_shape) if lookup.dense_shape else None
    if rank is not None and rank[0] > _MOST_RANK:
        return f"a grouped lookup takes ids of {_MOST_RANK} dimensions at most there"
    return ""


def _is_known(gradient: LookupGradient) -> bool:
    update = gradient.update
    return update is None or (update.rule in _RULES and not update.shared_by)


def without_update(lookup: StockLookup, gradient: LookupGradient) -> LookupGradient | None:
    """A gradient that TensorFlow applies; None of dense ids, of which nothing else is gained."""
    return dataclasses.replace(gradient, update=None) if lookup.indices else None
