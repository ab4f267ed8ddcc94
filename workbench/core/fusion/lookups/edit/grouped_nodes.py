"""NodeDefs of grouped ops of lookups, of their gradients and of updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.lookups.find.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.update import TableUpdate
from workbench.core.fusion.node_defs import new_node, set_attribute

# Rules that change rows without a gradient, too.
_OF_ALL_ROWS = ("decaying_adam", "keras_adam", "keras_adam_of_squares")


def lookup_node(name: str, lookups: Sequence[StockLookup], *, joined: bool) -> node_def_pb2.NodeDef:
    """The op that looks up several features; output i is that of `lookups[i]`.

    Args:
      joined: whether it has one output instead, with the features beside each other.
    """
    node = _reading(name, "GroupedLookUp", lookups, ())
    if joined:
        _as_one_tensor(node)
    return node


def weight_gradient_node(
    name: str, lookups: Sequence[StockLookup], given: Sequence[str]
) -> node_def_pb2.NodeDef:
    """The op that makes the gradients of the weights of several features, from those `given`."""
    return _reading(name, "GroupedLookUpWeightGrad", lookups, given)


def _reading(
    name: str, op: str, lookups: Sequence[StockLookup], given: Sequence[str]
) -> node_def_pb2.NodeDef:
    """An op that reads the tables of several features."""
    tables = list(dict.fromkeys(lookup.table for lookup in lookups))
    of_handles = "Resource" if lookups[0].is_resource else ""
    node = new_node(name, f"Workbench{of_handles}{op}", lookups[0].device)
    node.input.extend([*tables, *given, *_ids(lookups)])
    widths = {lookup.table: lookup.dim for lookup in lookups}
    _describe(
        node,
        lookups,
        table_of=[tables.index(lookup.table) for lookup in lookups],
        dims=[widths[table] for table in tables],
    )
    return node


def gradient_node(
    name: str,
    lookups: Sequence[StockLookup],
    gradients: Sequence[LookupGradient],
    before: Iterable[str],
) -> node_def_pb2.NodeDef:
    """The op that makes the gradients of several features, as if each had a table of its own.

    Args:
      name: of the node.
      lookups, gradients: of each feature.
      before: names of nodes that run before it.
    """
    # It reads no variable beside which TensorFlow would put it.
    node = new_node(name, "WorkbenchGroupedLookUpGrad", lookups[0].device or lookups[0].place)
    node.input.extend([*(each.given for each in gradients), *_ids(lookups)])
    node.input.extend(f"^{each}" for each in before)
    own = range(len(lookups))
    _describe(node, lookups, table_of=own, dims=[each.dim for each in lookups])
    zeros = [-1 if each.zero_id is None else each.zero_id for each in lookups]
    set_attribute(node, "zero_ids", zeros if max(zeros) >= 0 else [])
    return node


def update_node(
    name: str,
    lookups: Sequence[StockLookup],
    gradients: Sequence[LookupGradient],
    updates: Sequence[TableUpdate],
    scalars: Sequence[str],
    before: Iterable[str],
    joined: tuple[str, Sequence[int]] | None = None,
) -> node_def_pb2.NodeDef:
    """The op that applies the gradients of several features to their tables.

    Args:
      name: of the node.
      lookups, gradients, updates: of each feature; those that share a table have one update.
      scalars: tensors of the rule's numbers.
      before: names of nodes that run before it.
      joined: one gradient that has those of all features, and at which column each begins.
    """
    first = updates[0]
    of_handles = "Resource" if first.is_resource else ""
    of_all_rows = "All" if first.rule in _OF_ALL_ROWS else ""
    op = f"Workbench{of_handles}GroupedApply{of_all_rows}"
    node = new_node(name, op, first.device)
    distinct = list(dict.fromkeys(updates))
    node.input.extend(update.table for update in distinct)
    node.input.extend(slot for update in distinct for slot in update.slots)
    node.input.extend(scalars)
    node.input.extend([joined[0]] if joined else [gradient.given for gradient in gradients])
    node.input.extend(_ids(lookups))
    node.input.extend(f"^{earlier}" for earlier in before)
    widths = dict(zip(updates, (lookup.dim for lookup in lookups), strict=True))
    _describe(
        node,
        lookups,
        table_of=[distinct.index(update) for update in updates],
        dims=[widths[update] for update in distinct],
    )
    if joined:
        _as_one_tensor(node)
    set_attribute(node, "rule", first.rule)
    set_attribute(node, "S", sum(len(update.slots) for update in distinct))
    set_attribute(node, "K", len(scalars))
    set_attribute(node, "columns", list(joined[1]) if joined else [0] * len(lookups))
    set_attribute(node, "use_locking", first.use_locking)
    return node


def _ids(lookups: Sequence[StockLookup]) -> list[str]:
    return [
        *(each.ids for each in lookups),
        *(each.indices for each in lookups),
        *(each.dense_shape for each in lookups),
        *(each.weights for each in lookups if each.weights),
    ]


def _describe(
    node: Any, lookups: Sequence[StockLookup], *, table_of: Sequence[int], dims: Sequence[int]
) -> None:
    """The attributes that all ops of a grouped lookup have."""
    node.attr["T"].type = lookups[0].dtype
    node.attr["Tid"].type = lookups[0].id_dtype
    set_attribute(node, "N", len(dims))
    set_attribute(node, "F", len(lookups))
    set_attribute(node, "M", len(lookups))
    weighted = [i for i, lookup in enumerate(lookups) if lookup.weights]
    set_attribute(node, "W", len(weighted))
    set_attribute(node, "weights_of", weighted)
    set_attribute(node, "table_of", list(table_of))
    set_attribute(node, "combiners", [lookup.combiner for lookup in lookups])
    set_attribute(node, "prune_invalid_ids", [lookup.prune for lookup in lookups])
    set_attribute(node, "fill_empty_rows", [lookup.default_id is not None for lookup in lookups])
    set_attribute(node, "default_ids", [lookup.default_id or 0 for lookup in lookups])
    set_attribute(node, "ends_with_ids", [lookup.ends_with_ids for lookup in lookups])
    norms = [-1.0 if lookup.max_norm is None else lookup.max_norm for lookup in lookups]
    set_attribute(node, "max_norms", norms)
    set_attribute(node, "dims", list(dims))
    set_attribute(node, "features", [lookup.name for lookup in lookups])
    set_attribute(node, "concatenated", False)


def _as_one_tensor(node: Any) -> None:
    """Has what an op reads or gives for each feature be one tensor of all."""
    node.attr["concatenated"].b, node.attr["M"].i = True, 1
