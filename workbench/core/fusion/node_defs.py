"""NodeDefs of grouped ops, and of what takes the place of the nodes that they stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

from workbench.core.fusion.definition import Definition
from workbench.core.fusion.lookups.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.update import TableUpdate

_Fused = TypeVar("_Fused")
_INT32, _INT64 = tf.int32.as_datatype_enum, tf.int64.as_datatype_enum
_FLOAT32 = tf.float32.as_datatype_enum
# Rules that change rows without a gradient, too.
_OF_ALL_ROWS = ("decaying_adam", "keras_adam", "keras_adam_of_squares")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneOpEach(Generic[_Fused]):
    """What is done to a graph so that one op does each of several alike things.

    Attributes:
      fused: what is said of each.
      added: nodes that do them.
      replaced: nodes that come in the place of nodes of the same name.
      bypassed: by the name of each node that nothing needs any more, the node that runs instead.
    """

    fused: tuple[_Fused, ...]
    added: list[node_def_pb2.NodeDef]
    replaced: list[node_def_pb2.NodeDef]
    bypassed: dict[str, str]


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
    tables = list(dict.fromkeys(each.table for each in lookups))
    of_handles = "Resource" if lookups[0].is_resource else ""
    node = _node(name, f"Workbench{of_handles}{op}", lookups[0].device)
    node.input.extend([*tables, *given, *_ids(lookups)])
    widths = {each.table: each.dim for each in lookups}
    _describe(
        node,
        lookups,
        table_of=[tables.index(each.table) for each in lookups],
        dims=[widths[each] for each in tables],
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
    node = _node(name, "WorkbenchGroupedLookUpGrad", lookups[0].device or lookups[0].place)
    node.input.extend([*(each.given for each in gradients), *_ids(lookups)])
    node.input.extend(f"^{each}" for each in before)
    own = range(len(lookups))
    _describe(node, lookups, table_of=own, dims=[each.dim for each in lookups])
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
    node = _node(name, op, first.device)
    tables = list(dict.fromkeys(updates))
    node.input.extend(each.table for each in tables)
    node.input.extend(slot for each in tables for slot in each.slots)
    node.input.extend(scalars)
    node.input.extend([joined[0]] if joined else [each.given for each in gradients])
    node.input.extend(_ids(lookups))
    node.input.extend(f"^{each}" for each in before)
    widths = dict(zip(updates, (each.dim for each in lookups), strict=True))
    _describe(
        node,
        lookups,
        table_of=[tables.index(each) for each in updates],
        dims=[widths[each] for each in tables],
    )
    if joined:
        _as_one_tensor(node)
    _set(node, "rule", first.rule)
    _set(node, "S", sum(len(each.slots) for each in tables))
    _set(node, "K", len(scalars))
    _set(node, "columns", list(joined[1]) if joined else [0] * len(lookups))
    _set(node, "use_locking", first.use_locking)
    return node


def constant_node(name: str, value: Any, device: str) -> node_def_pb2.NodeDef:
    """A constant, of the dtype of a NumPy value."""
    node = _node(name, "Const", device)
    tensor = tf.make_tensor_proto(value)
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)
    return node


def stand_in(old: Any, tensors: Sequence[str], types: Sequence[int]) -> node_def_pb2.NodeDef:
    """A node of the same name that hands on tensors in place of the old one's outputs."""
    node = _node(old.name, "Identity" if len(tensors) == 1 else "IdentityN", old.device)
    node.input.extend(tensors)
    if len(types) == 1:
        node.attr["T"].type = types[0]
    else:
        node.attr["T"].list.type.extend(types)
    if "_class" in old.attr:
        node.attr["_class"].CopyFrom(old.attr["_class"])
    return node


def scope_around(name: str, levels: int = 1) -> str:
    """The scope of a node, or one that holds it, so many levels out, with a "/"; "" at the top."""
    scope = "/".join(name.split("/")[:-levels])
    return f"{scope}/" if scope else ""


def free_name(taken: set[str], scope: str, name: str, end: str = "") -> str:
    """A name in a scope, with its "/", that no other node has; it is taken then."""
    free, number = f"{scope}{name}{end}", 0
    while free in taken:
        number += 1
        free = f"{scope}{name}_{number}{end}"
    taken.add(free)
    return free


def free_scope(graph: Definition, scope: str) -> str:
    """The scope, or one with a number behind it, that no node of the graph is in."""
    taken = {name.partition("/")[0] for name in graph.nodes}
    free, number = scope, 0
    while free in taken:
        number += 1
        free = f"{scope}_{number}"
    return free


def hands_on_after(
    graph: Definition, name: str, tensor: str, after: Mapping[str, Iterable[str]]
) -> node_def_pb2.NodeDef:
    """A node in the place of another, which hands on a float32 tensor.

    Args:
      graph: that has the other.
      name: of both.
      tensor: what it hands on.
      after: by name, which nodes it waits for.
    """
    node = stand_in(graph.nodes[name], [tensor], [_FLOAT32])
    node.input.extend(f"^{each}" for each in after[name])
    return node


def sum_after(
    graph: Definition, name: str, tensors: Sequence[str], after: Mapping[str, Iterable[str]]
) -> node_def_pb2.NodeDef:
    """A node in the place of a sum, which adds other tensors; likewise."""
    if len(tensors) == 1:
        return hands_on_after(graph, name, tensors[0], after)
    node = sum_node(name, tensors, _FLOAT32, graph.nodes[name].device)
    node.input.extend(f"^{each}" for each in after[name])
    return node


def sum_node(name: str, tensors: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """The sum of tensors of one shape."""
    node = _node(name, "AddN", device)
    node.input.extend(tensors)
    node.attr["N"].i, node.attr["T"].type = len(tensors), dtype
    return node


def variable_after(old: Any, variable: str, after: str) -> node_def_pb2.NodeDef:
    """A node of the same name that hands on a ref variable once another node has run."""
    node = _node(old.name, "RefIdentity", old.device)
    node.input.extend([variable, f"^{after}"])
    for name in ("T", "_class"):
        if name in old.attr:
            node.attr[name].CopyFrom(old.attr[name])
    return node


def done(old: Any, after: str) -> node_def_pb2.NodeDef:
    """A node of the same name that has run once another one has."""
    node = _node(old.name, "NoOp", old.device)
    node.input.append(f"^{after}")
    return node


def waiting(old: Any, instead: Mapping[str, str]) -> node_def_pb2.NodeDef:
    """The same node, which waits for others instead of some nodes, or "" for none."""
    node = node_def_pb2.NodeDef()
    node.CopyFrom(old)
    node.attr.pop("_output_shapes", None)
    data = [text for text in old.input if not text.startswith("^")]
    before = [text[1:] for text in old.input if text.startswith("^")]
    after = dict.fromkeys(instead.get(name, name) for name in before)
    waits = [f"^{name}" for name in after if name]
    node.input[:] = [*data, *waits]
    return node


def to_change(
    replaced: graph_pb2.GraphDef, nodes: Iterable[Any]
) -> dict[str, node_def_pb2.NodeDef]:
    """What comes in the place of nodes, by name, each of these among them.

    Args:
      replaced: what comes in the place of nodes; those that nothing takes the place of yet are
        added to it as they are.
      nodes: of the graph.
    """
    known = {node.name: node for node in replaced.node}
    for node in nodes:
        if node.name not in known:
            replaced.node.append(waiting(node, {}))
            known[node.name] = replaced.node[-1]
    return known


def slice_node(name: str, inputs: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """A part of a tensor: inputs are it, and int32 where the part begins and how large it is."""
    node = _node(name, "Slice", device)
    node.input.extend(inputs)
    node.attr["T"].type, node.attr["Index"].type = dtype, _INT32
    return node


def reshape_node(name: str, inputs: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """A tensor in another shape, an int32 one."""
    node = _node(name, "Reshape", device)
    node.input.extend(inputs)
    node.attr["T"].type, node.attr["Tshape"].type = dtype, _INT32
    return node


def cast_node(name: str, tensor: str, to: int, device: str) -> node_def_pb2.NodeDef:
    """int64 as another type."""
    node = _node(name, "Cast", device)
    node.input.append(tensor)
    node.attr["SrcT"].type, node.attr["DstT"].type = _INT64, to
    return node


def _node(name: str, op: str, device: str) -> node_def_pb2.NodeDef:
    return node_def_pb2.NodeDef(name=name, op=op, device=device)


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
    _set(node, "N", len(dims))
    _set(node, "F", len(lookups))
    _set(node, "M", len(lookups))
    weighted = [i for i, each in enumerate(lookups) if each.weights]
    _set(node, "W", len(weighted))
    _set(node, "weights_of", weighted)
    _set(node, "table_of", list(table_of))
    _set(node, "combiners", [each.combiner for each in lookups])
    _set(node, "prune_invalid_ids", [each.prune for each in lookups])
    _set(node, "fill_empty_rows", [each.default_id is not None for each in lookups])
    _set(node, "default_ids", [each.default_id or 0 for each in lookups])
    _set(node, "ends_with_ids", [each.ends_with_ids for each in lookups])
    norms = [-1.0 if each.max_norm is None else each.max_norm for each in lookups]
    _set(node, "max_norms", norms)
    _set(node, "dims", list(dims))
    _set(node, "features", [each.name for each in lookups])
    _set(node, "concatenated", False)


def _as_one_tensor(node: Any) -> None:
    """Has what an op reads or gives for each feature be one tensor of all."""
    node.attr["concatenated"].b, node.attr["M"].i = True, 1


def _set(node: Any, name: str, value: Any) -> None:
    """Sets an attribute of a node, which has none of that name."""
    attribute = node.attr[name]
    if isinstance(value, list):
        attribute.list.SetInParent()
        kinds: dict[type, Any] = {
            bool: attribute.list.b,
            int: attribute.list.i,
            float: attribute.list.f,
        }
        for each in value:
            if isinstance(each, str):
                attribute.list.s.append(each.encode())
            else:
                kinds[type(each)].append(each)
    elif isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    else:
        attribute.s = value.encode()
