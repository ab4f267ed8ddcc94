"""NodeDefs of a plan: new nodes, and what takes the place of the nodes that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.pattern.definition import Definition, tensor_name
from workbench.core.graph.workbench_ops import HAND_ON

_INT32, _INT64 = tf.int32.as_datatype_enum, tf.int64.as_datatype_enum


def constant_node(name: str, value: Any, device: str) -> node_def_pb2.NodeDef:
    """A constant, of the dtype of a NumPy value."""
    node = new_node(name, "Const", device)
    tensor = tf.make_tensor_proto(value)
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)
    return node


def stand_in(old: Any, tensors: Sequence[str], types: Sequence[int]) -> node_def_pb2.NodeDef:
    """A node of the same name that hands on tensors in place of the old one's outputs."""
    op = "Identity" if len(tensors) == 1 else "IdentityN"
    node = new_node(old.name, op, old.device, tensors)
    if len(types) == 1:
        node.attr["T"].type = types[0]
    else:
        node.attr["T"].list.type.extend(types)
    if "_class" in old.attr:
        node.attr["_class"].CopyFrom(old.attr["_class"])
    return node


def kept_apart(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    """A node that hands on the output of an op of Workbench's, as TensorFlow's optimizer needs it.

    Without an Identity some of its rules take the first output of an op for any other; the ops that
    they were made for have one output each. `WorkbenchHandOn` stays.
    """
    if node.op != "Identity" or tensor_name(node.input[0]).endswith(":0"):
        return node
    kept = node_def_pb2.NodeDef()
    kept.CopyFrom(node)
    kept.op = HAND_ON
    return kept


def scope_around(name: str, levels: int = 1) -> str:
    """The scope of a node, or one that holds it, so many levels out, with a "/"; "" at the top."""
    scope = "/".join(name.split("/")[:-levels])
    return f"{scope}/" if scope else ""


def free_name(taken: set[str], name: str, end: str = "") -> str:
    """The name, or one with a number before its end, that is not taken; it is taken then."""
    free, number = f"{name}{end}", 0
    while free in taken:
        number += 1
        free = f"{name}_{number}{end}"
    taken.add(free)
    return free


def free_scope(graph: Definition, scope: str) -> str:
    """The scope, or one with a number behind it, that no node of the graph is in."""
    return free_name({name.partition("/")[0] for name in graph.nodes}, scope)


def sum_node(name: str, tensors: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """The sum of tensors of one shape."""
    node = new_node(name, "AddN", device, tensors)
    node.attr["N"].i, node.attr["T"].type = len(tensors), dtype
    return node


def variable_after(old: Any, variable: str, after: str) -> node_def_pb2.NodeDef:
    """A node of the same name that hands on a ref variable once another node has run."""
    node = new_node(old.name, "RefIdentity", old.device, [variable, f"^{after}"])
    for name in ("T", "_class"):
        if name in old.attr:
            node.attr[name].CopyFrom(old.attr[name])
    return node


def done(old: Any, after: str) -> node_def_pb2.NodeDef:
    """A node of the same name that has run once another one has."""
    return new_node(old.name, "NoOp", old.device, [f"^{after}"])


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


def slice_node(name: str, inputs: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """A part of a tensor: inputs are it, and int32 where the part begins and how large it is."""
    node = new_node(name, "Slice", device, inputs)
    node.attr["T"].type, node.attr["Index"].type = dtype, _INT32
    return node


def reshape_node(name: str, inputs: Sequence[str], dtype: int, device: str) -> node_def_pb2.NodeDef:
    """A tensor in another shape, an int32 one."""
    node = new_node(name, "Reshape", device, inputs)
    node.attr["T"].type, node.attr["Tshape"].type = dtype, _INT32
    return node


def cast_node(name: str, tensor: str, to: int, device: str) -> node_def_pb2.NodeDef:
    """int64 as another type."""
    node = new_node(name, "Cast", device, [tensor])
    node.attr["SrcT"].type, node.attr["DstT"].type = _INT64, to
    return node


def new_node(name: str, op: str, device: str, inputs: Iterable[str] = ()) -> node_def_pb2.NodeDef:
    """A node without attributes."""
    return node_def_pb2.NodeDef(name=name, op=op, device=device, input=inputs)


def set_attribute(node: Any, name: str, value: Any) -> None:
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
    elif isinstance(value, float):
        attribute.f = value
    else:
        attribute.s = value.encode()
