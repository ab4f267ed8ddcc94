"""Updates of tables that several lookups share, for which TensorFlow concatenates the gradients.

gradients of rows of each lookup ─ ConcatV2 ─┬ an update, as table_updates/update.py has it
the rows that they are of, of each ─ ConcatV2 ─┘
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from workbench.core.fusion.lookups.find.gradients import LookupGradient
from workbench.core.fusion.lookups.find.placed import without_update
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.pattern.definition import Definition

_WithGradients = tuple[StockLookup, list[LookupGradient]]


def with_whole_updates(
    graph: Definition, lookups: Sequence[_WithGradients]
) -> list[_WithGradients]:
    """The lookups without updates that a grouped op could do in part only.

    It does an update whose gradients are all of lookups that it may take together.

    Args:
      graph: that they are in.
      lookups: those that are fused, with their gradients.
    """
    members: dict[str, list[tuple[StockLookup, LookupGradient]]] = collections.defaultdict(list)
    for lookup, gradients in lookups:
        for gradient in gradients:
            if gradient.update and gradient.update.shared_by:
                members[gradient.update.node].append((lookup, gradient))
    parts = {name for name, found in members.items() if not _is_whole(graph, found)}
    return [
        (lookup, [kept for each in gradients if (kept := _kept(lookup, each, parts))])
        for lookup, gradients in lookups
    ]


def _is_whole(graph: Definition, found: Sequence[tuple[StockLookup, LookupGradient]]) -> bool:
    (_, first), *_ = found
    assert first.update is not None
    made = sorted(graph.same(f"{gradient.values}:0") for _, gradient in found)
    return made == sorted(first.update.shared_by) and len({_kind(each) for each, _ in found}) == 1


def _kind(lookup: StockLookup) -> Any:
    kinds = lookup.dtype, lookup.id_dtype, lookup.is_resource
    return *kinds, lookup.dim, lookup.device, lookup.place


def _kept(lookup: StockLookup, gradient: LookupGradient, parts: set[str]) -> LookupGradient | None:
    if gradient.update is None or gradient.update.node not in parts:
        return gradient
    return without_update(lookup, gradient)
