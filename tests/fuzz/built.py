"""Built: the finished graph of a Program, of which everything is known by name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tests.fuzz import data
from tests.fuzz.parts import build_parts
from tests.fuzz.program import Program
from tests.fuzz.training import made_optimizers, train_op
from tests.fuzz.world import World

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Built:
    """A graph, and names in it.

    Attributes:
      graph: it is finished, perhaps imported.
      program: that it is of.
      begin: names of the operations that initialize it, in order.
      losses, metrics: names of tensors.
      inputs: names of the placeholders.
      variables: what reads each variable, by its name.
      starts: what gives the trained variables their first values.
      train: the operation that trains.
    """

    graph: tf.Graph
    program: Program
    begin: tuple[str, ...]
    losses: tuple[str, ...]
    metrics: tuple[str, ...]
    inputs: tuple[str, ...]
    variables: dict[str, str]
    starts: tuple[str, ...]
    train: str = "train"


class Variables:
    """Makes the variables of a graph, and keeps those that are trained."""

    def __init__(self) -> None:
        self.trained: list[Any] = []

    def __call__(self, name: str, value: Any, resource: bool) -> Any:
        """Makes one; see `World`."""
        trains = is_trained(name, value)
        with tf.control_dependencies(None):
            made = v1.get_variable(name, initializer=value, use_resource=resource, trainable=trains)
        if trains:
            self.trained.append(made)
        return made


def is_trained(name: str, value: Any) -> bool:
    """Whether a variable is trained."""
    return value.dtype.kind == "f" and not name.endswith("moving")


def build(program: Program) -> Built:
    """The graph of a program."""
    with tf.Graph().as_default() as graph, _control_flow(program.control_v2):
        variables, begin = Variables(), ["init"]
        limit = v1.placeholder_with_default(tf.constant(9, tf.int64), [], name="limit")
        if program.source == "iterator":
            iterator = v1.data.make_initializable_iterator(data.dataset_of(program))
            begin.append(iterator.initializer.name)
            inputs = _batch(program, iterator)
        else:
            inputs = _placeholders(program)
        world = World(program, inputs, variables, limit)
        build_parts(world)
        train_op(world, variables.trained, made_optimizers(program))
        made = v1.global_variables()
        v1.variables_initializer(made, name="init")
        starts = tuple(each.initial_value.name for each in variables.trained)
    return Built(
        graph=_imported(graph, program.way),
        program=program,
        begin=tuple(begin),
        losses=tuple(each.name for each in world.losses),
        metrics=tuple(each.name for each in world.metrics),
        inputs=() if program.source == "iterator" else tuple(inputs),
        variables={each.op.name: _read(each) for each in made},
        starts=starts,
    )


def _read(variable: Any) -> str:
    is_ref = variable.dtype != variable.dtype.base_dtype
    return f"{variable.op.name}/{'read' if is_ref else 'Read/ReadVariableOp'}:0"


@contextlib.contextmanager
def _control_flow(second: bool) -> Iterator[None]:
    """Conds and loops of the second kind are functions."""
    was = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if second else v1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (v1.enable_control_flow_v2 if was else v1.disable_control_flow_v2)()


def _batch(program: Program, iterator: Any) -> dict[str, Any]:
    found = iterator.get_next()
    # Every other input stands behind an Identity, as what is to be fed does.
    for number, name in enumerate(sorted(found)):
        if number % 2 and not isinstance(found[name], tf.SparseTensor):
            found[name] = tf.identity(found[name], name=f"{name}_of_batch")
    return dict(found)


def _placeholders(program: Program) -> dict[str, Any]:
    found = {}
    for name, value in data.given(program, 0).items():
        shape = data.shape_of(program, name, value)
        if program.source == "default":
            found[name] = v1.placeholder_with_default(value, shape, name=name)
        else:
            dtype = tf.string if value.dtype == object else value.dtype
            found[name] = v1.placeholder(dtype, shape, name=name)
    return found


def _imported(graph: tf.Graph, way: str) -> tf.Graph:
    """The graph as it comes out of a file."""
    if way == "graph":
        return graph
    with tf.Graph().as_default() as found:
        if way == "graph_def":
            tf.import_graph_def(graph.as_graph_def(), name="")
        else:
            v1.train.import_meta_graph(v1.train.export_meta_graph(graph=graph))
    return found
