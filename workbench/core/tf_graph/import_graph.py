"""tf.Graph, FuncGraph or GraphDef → GraphView; reads only."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from workbench.core.graph.graph_view import (
    CAPTURED_RESOURCE,
    CAPTURED_TABLE,
    CAPTURED_VALUE,
    CAPTURED_VARIABLE,
    GraphView,
    SeenStage,
    Shape,
    edges,
)
from workbench.core.graph.op_types import STAGE_PUT
from workbench.core.options import StageOptions
from workbench.errors import PlanError

# How TensorFlow names tables that are filled once; those that may change are "table_1". An
# anonymous table does not tell, so that it counts as one that may change.
_FILLED_ONCE = re.compile(r'name="(hash_table_[^"]*|\d+(_load_[\d_]+)?)"')


def graph_view(graph: Any, stages: Mapping[str, StageOptions] | None = None) -> GraphView:
    """The shape of a graph as it stands.

    Args:
      graph: a `tf.Graph`, a FuncGraph (or anything with a `graph`, such as a concrete function), or
        a `GraphDef`.
      stages: by name of its put, the options of each stage that this process built; of any other
        only the capacity is known.

    Raises:
      PlanError: not a graph, or an op type that this TensorFlow does not know.
    """
    if isinstance(graph, tf.compat.v1.GraphDef):
        return _from_nodes(graph.node, graph.library, {}, stages or {})
    if not isinstance(graph, tf.Graph):
        graph = getattr(graph, "graph", graph)
    if not isinstance(graph, tf.Graph):
        raise PlanError(
            f"{graph!r} of type {type(graph).__name__} is no graph; expected a tf.Graph, "
            "a FuncGraph, a concrete function or a GraphDef"
        )
    definition = graph.as_graph_def(add_shapes=True)
    view = _from_nodes(
        definition.node,
        definition.library,
        _captures(graph) if getattr(graph, "building_function", False) else {},
        stages or {},
    )
    if not view.captures:
        return view
    shapes = {view.index[name]: shape for name, shape in _captured_shapes(graph).items()}
    return dataclasses.replace(view, captured_shapes=shapes)


def _from_nodes(
    nodes: Sequence[Any],
    library: Any,
    captures: Mapping[str, str],
    known_stages: Mapping[str, StageOptions],
) -> GraphView:
    bodies: dict[str, GraphView] = {}
    for function in library.function:
        bodies[function.signature.name] = _body(function)
    return _view(nodes, bodies, captures, known_stages)


def _view(
    nodes: Sequence[Any],
    library: dict[str, GraphView],
    captures: Mapping[str, str],
    known_stages: Mapping[str, StageOptions],
) -> GraphView:
    names = tuple(node.name for node in nodes)
    ops = tuple(node.op for node in nodes)
    index = {name: i for i, name in enumerate(names)}
    stateful = _stateful(set(ops), library)
    data, control = _edges(nodes, index)
    return GraphView(
        names=names,
        ops=ops,
        devices=tuple(node.device for node in nodes),
        outputs=tuple(_outputs(node) for node in nodes),
        data=edges(data, 4),
        control=edges(control, 2),
        stateful_ops=stateful,
        shared_names=_shared_names(nodes),
        shapes=_shapes(nodes),
        functions={
            i: called
            for i, node in enumerate(nodes)
            if _may_call(node.op) and (called := _functions(node))
        },
        library=library,
        captures={index[name]: kind for name, kind in captures.items()},
        stages=_stages(nodes, known_stages),
    )


def _stages(nodes: Sequence[Any], known: Mapping[str, StageOptions]) -> dict[int, SeenStage]:
    """The stages by put; of one that this process did not build, only what its op says."""
    return {
        i: SeenStage(
            name=node.attr["stage"].s.decode() or node.attr["shared_name"].s.decode(),
            options=known.get(node.name) or StageOptions(capacity=node.attr["capacity"].i),
        )
        for i, node in enumerate(nodes)
        if node.op == STAGE_PUT
    }


def _edges(
    nodes: Sequence[Any], index: dict[str, int]
) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int]]]:
    data: list[tuple[int, int, int, int]] = []
    control: list[tuple[int, int]] = []
    for target, node in enumerate(nodes):
        for place, text in enumerate(node.input):
            if text.startswith("^"):
                control.append((index[text[1:]], target))
                continue
            source, _, output = text.partition(":")
            data.append((index[source], int(output or 0), target, place))
    return data, control


@functools.cache
def _op_def(op: str) -> Any:
    return op_def_registry.get(op)


@functools.cache
def _may_call(op: str) -> bool:
    definition = _op_def(op)
    return definition is None or any("func" in attr.type for attr in definition.attr)


def _stateful(ops: Iterable[str], library: dict[str, GraphView]) -> frozenset[str]:
    """Op types with state; what is neither known to TensorFlow nor a function counts as such."""

    def has_state(op: str) -> bool:
        definition = _op_def(op)
        return op not in library if definition is None else bool(definition.is_stateful)

    return frozenset(op for op in ops if has_state(op))


def _outputs(node: Any) -> tuple[str, ...]:
    """dtype names of the outputs; empty for an op that TensorFlow does not know."""
    key: list[Any] = [node.op]
    for name in _type_attrs(node.op):
        value = node.attr[name] if name in node.attr else _default(node.op, name)
        key.append(tuple(value.list.type) or value.type or value.i)
    return _output_names(tuple(key))


@functools.cache
def _default(op: str, attr: str) -> Any:
    """What an attribute is when a graph was saved without its defaults."""
    return next(each for each in _op_def(op).attr if each.name == attr).default_value


@functools.cache
def _type_attrs(op: str) -> tuple[str, ...]:
    """The attributes that say how many outputs there are, and of what type."""
    definition = _op_def(op)
    if definition is None:
        return ()
    named = (
        (arg.type_list_attr,) if arg.type_list_attr else (arg.type_attr, arg.number_attr)
        for arg in definition.output_arg
    )
    return tuple(dict.fromkeys(name for names in named for name in names if name))


@functools.cache
def _output_names(key: tuple[Any, ...]) -> tuple[str, ...]:
    op, *values = key
    definition = _op_def(op)
    if definition is None:
        return ()
    types = dict(zip(_type_attrs(op), values, strict=True))
    kinds: list[int] = []
    for arg in definition.output_arg:
        if arg.type_list_attr:
            listed = types[arg.type_list_attr]
            kinds.extend(listed if isinstance(listed, tuple) else ())
            continue
        kind = types[arg.type_attr] if arg.type_attr else arg.type
        count = types[arg.number_attr] if arg.number_attr else 1
        kinds.extend([kind + 100 if arg.is_ref else kind] * count)
    return tuple(tf.dtypes.as_dtype(kind).name if kind else "unknown" for kind in kinds)


def _shapes(nodes: Sequence[Any]) -> dict[int, tuple[Shape, ...]]:
    return {
        i: tuple(
            None if shape.unknown_rank else tuple(size.size for size in shape.dim)
            for shape in node.attr["_output_shapes"].list.shape
        )
        for i, node in enumerate(nodes)
        if "_output_shapes" in node.attr
    }


def _shared_names(nodes: Sequence[Any]) -> dict[int, str]:
    shared_names = {}
    for i, node in enumerate(nodes):
        definition = _op_def(node.op)
        if definition is None or not definition.is_stateful:
            continue
        if _names_resource(node.op):
            shared = node.attr["shared_name"].s.decode() or node.name
            shared_names[i] = f"{node.attr['container'].s.decode()}/{shared}"
    return shared_names


@functools.cache
def _names_resource(op: str) -> bool:
    return {"shared_name", "container"} <= {attr.name for attr in _op_def(op).attr}


def _functions(node: Any) -> tuple[str, ...]:
    names = [node.op] if _op_def(node.op) is None else []
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            names.append(value.func.name)
        elif kind == "list":
            names.extend(function.name for function in value.list.func)
    return tuple(name for name in names if name)


def _body(function: Any) -> GraphView:
    """A function's body: its arguments are nodes of type _Arg, its inputs name "node:arg:i"."""
    arguments = [
        tf.compat.v1.NodeDef(name=arg.name, op="_Arg") for arg in function.signature.input_arg
    ]
    nodes = []
    for node in function.node_def:
        plain = tf.compat.v1.NodeDef()
        plain.CopyFrom(node)
        del plain.input[:]
        plain.input.extend(_without_output(text) for text in node.input)
        nodes.append(plain)
    return _view([*arguments, *nodes], {}, {}, {})


def _without_output(text: str) -> str:
    """Which output a body's edge leaves from does not matter to dependencies."""
    return text if text.startswith("^") else text.partition(":")[0]


def _captures(graph: Any) -> dict[str, str]:
    """Placeholders of what a FuncGraph captures, by kind."""
    variables = {id(variable.handle) for variable in graph.variables if hasattr(variable, "handle")}
    kinds = {}
    for outside, inside in graph.captures:
        if inside.dtype not in (tf.resource, tf.variant):
            kind = CAPTURED_VALUE
        elif id(outside) in variables:
            kind = CAPTURED_VARIABLE
        else:
            kind = _resource_kind(outside)
        kinds[inside.op.name] = kind
    return kinds


def _captured_shapes(graph: Any) -> dict[str, Shape]:
    """Shapes of the variables that a FuncGraph captures, by placeholder."""
    shapes = {
        id(variable.handle): variable.shape
        for variable in graph.variables
        if hasattr(variable, "handle")
    }
    return {
        inside.op.name: _known_shape(shapes[id(outside)])
        for outside, inside in graph.captures
        if id(outside) in shapes
    }


def _known_shape(shape: Any) -> Shape:
    return None if shape.rank is None else tuple(-1 if n is None else n for n in shape.as_list())


def _resource_kind(outside: Any) -> str:
    """What a captured resource handle stands for, as far as the handle itself tells."""
    text = repr(outside) if isinstance(outside, tf.__internal__.EagerTensor) else ""
    if "tensorflow::Var" in text:
        return CAPTURED_VARIABLE
    if "lookup::LookupInterface" in text and _FILLED_ONCE.search(text):
        return CAPTURED_TABLE
    return CAPTURED_RESOURCE
