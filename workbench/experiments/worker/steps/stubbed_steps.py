"""A program's step without one kind of work: what the rest reads of it comes from variables.

Not from constants, of which TensorFlow would compute all that follows before the first step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from workbench.core.graph.graph_view import GraphView
from workbench.core.graph.op_types import STAGE_TAKE
from workbench.core.optimizations import Optimizations
from workbench.core.what_if.faster import KINDS
from workbench.core.what_if.stub import ONE_BATCH, Stub, stub_of
from workbench.errors import RunError, UnsupportedError
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.session_config import stock_config

# The values are those of the last: of a program that has trained a little.
_STEPS = 3
_SCOPE = "workbench_lies_ready"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StubbedStep:
    """A step without some work.

    Attributes:
      built: what it runs, in the graph that was the default one.
      left_out: names of the nodes of that work.
      kept: names of the other nodes that do work.
    """

    built: Built
    left_out: tuple[str, ...]
    kept: tuple[str, ...]


class StubbedSteps:
    """The steps of a program without each kind of work; their values are fetched once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._values: Mapping[str, Any] | None = None

    def build(self, work: str) -> StubbedStep:
        """Builds the step in the graph that is the default one.

        Args:
          work: what is left out, as of `stub_of`.

        Raises:
          UnsupportedError: it cannot be left out, or the program builds a stage.
          RunError: the data ends before the values are fetched.
        """
        import tensorflow as tf

        if self._values is None:
            self._values = _fetched(self._program)
        graph = tf.compat.v1.get_default_graph()
        built = build_part(self._program, "build", Optimizations())
        view = _view(graph)
        stub = stub_of(view, work, _targets(view, built))
        return StubbedStep(
            built=_without(graph, view, stub, built, self._values),
            left_out=tuple(view.names[node] for node in np.flatnonzero(stub.left_out)),
            kept=tuple(view.names[node] for node in np.flatnonzero(stub.kept)),
        )


def _view(graph: Any) -> GraphView:
    from workbench.core.tf_graph.import_graph import graph_view

    return graph_view(graph)


def _targets(view: GraphView, built: Built) -> list[int]:
    return [view.number(op.name) for op in [*_ops(built.train_op), *_ops(built.loss)]]


def _ops(fetches: Any) -> list[Any]:
    """The operations of what a session would fetch."""
    import tensorflow as tf

    found = [each for each in tf.nest.flatten(fetches) if each is not None]
    return [getattr(each, "op", each) for each in found]


def _fetched(program: Program) -> dict[str, Any]:
    """Values of one step at the borders of all work that can be left out, by name of the tensor."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        built = build_part(program, "build", Optimizations())
        view = _view(graph)
        _require_no_stage(view, program)
        names = {view.tensor(*pair) for pair in _borders(view, _targets(view, built))}
        fetches = {name: graph.get_tensor_by_name(name) for name in sorted(names)}
        session_of = tf.compat.v1.train.MonitoredTrainingSession
        got: dict[str, Any] = {}
        with session_of(hooks=built.hooks, config=stock_config(built)) as session:
            try:
                for _ in range(_STEPS):
                    got = session.run((fetches, built.train_op))[0]
            except tf.errors.OutOfRangeError:
                raise RunError(
                    f"the data of {program.name!r} ended in its first {_STEPS} steps; repeat the "
                    "dataset"
                ) from None
    return got


def _require_no_stage(view: GraphView, program: Program) -> None:
    stages = [view.names[node] for node, op in enumerate(view.ops) if op == STAGE_TAKE]
    if stages:
        raise UnsupportedError(
            f"program {program.name!r} builds a stage, {stages[0]!r}, where none was asked for, so "
            "its work cannot be left out; build it only where optimizations.stage is set"
        )


def _borders(view: GraphView, targets: Iterable[int]) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for work in (*KINDS, ONE_BATCH):
        try:
            found.update(stub_of(view, work, targets).values)
        except UnsupportedError:
            # Said where a step without it is asked for.
            continue
    return found


def _without(
    graph: Any, view: GraphView, stub: Stub, built: Built, values: Mapping[str, Any]
) -> Built:
    """Changes the graph as the stub says; what the step then runs."""
    with graph.name_scope(_SCOPE):
        ready = {
            (node, output): _ready(
                graph.get_tensor_by_name(view.tensor(node, output)),
                values,
                awaited=(node, output) in stub.batch,
            )
            for node, output in stub.values
        }
    for node, output, reader, place in stub.reads.tolist():
        graph.get_operation_by_name(view.names[reader])._update_input(place, ready[node, output])
    _drop(graph, view, stub)
    gone = {view.names[node] for node in np.flatnonzero(stub.left_out)}
    loss = built.loss if all(op.name not in gone for op in _ops(built.loss)) else None
    kept = [op for op in _ops(built.train_op) if op.name not in gone]
    train_op = _all_of(graph, view, stub, kept) if stub.left_out.any() else built.train_op
    return dataclasses.replace(built, train_op=train_op, loss=loss, fingerprint=None)


def _ready(tensor: Any, values: Mapping[str, Any], *, awaited: bool) -> Any:
    """The value of a tensor as a variable reads it, once the tensor is made where it is awaited."""
    import tensorflow as tf

    v1 = tf.compat.v1
    if tensor.name not in values:
        raise UnsupportedError(
            f"the program builds another graph each time: {tensor.name!r} was not there before"
        )
    value = np.asarray(values[tensor.name])
    graph = tensor.graph

    def initial() -> Any:
        # Bytes in the graph itself would be limited to 2 GB.
        with graph.device("/cpu:0"):
            return tf.numpy_function(lambda: value, [], tensor.dtype.base_dtype)

    # Its shape may be no better known than before: TensorFlow would compute more ahead of time.
    with graph.device(tensor.op.device):
        variable = v1.Variable(
            initial_value=initial,
            dtype=tensor.dtype.base_dtype,
            shape=tensor.shape,
            validate_shape=False,
            trainable=False,
            use_resource=True,
            collections=[v1.GraphKeys.LOCAL_VARIABLES],
        )
        with graph.control_dependencies([tensor.op] if awaited else []):
            return variable.read_value()


def _drop(graph: Any, view: GraphView, stub: Stub) -> None:
    """Takes away the control edges that go."""
    waits: dict[str, set[str]] = {}
    for source, target in stub.waits.tolist():
        waits.setdefault(view.names[target], set()).add(view.names[source])
    for name, gone in waits.items():
        op = graph.get_operation_by_name(name)
        left = [before for before in op.control_inputs if before.name not in gone]
        op._remove_all_control_inputs()
        op._add_control_inputs(left)


def _all_of(graph: Any, view: GraphView, stub: Stub, kept: list[Any]) -> Any:
    """What runs these operations and all that only the work that is left out has used."""
    import tensorflow as tf

    unread = [graph.get_tensor_by_name(view.tensor(*pair)) for pair in stub.unread]
    unawaited = [graph.get_operation_by_name(view.names[node]) for node in stub.unawaited]
    with graph.name_scope(_SCOPE), graph.control_dependencies([*unawaited, *kept]):
        if not unread:
            return tf.no_op()
        # It reads them and does nothing; of an op without a reader, and of a reader without an
        # effect, TensorFlow would leave the work out.
        return tf.raw_ops.Assert(condition=tf.constant(True), data=unread)
