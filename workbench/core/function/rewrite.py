"""StagePlan + the concrete function of a step → its two halves, to be built into other functions.

requires: the plan has one stage and was made for this function (fingerprint).
ensures: (1) each op of the step is built into exactly one half, except what depends on no batch,
has no effect, and both need; (2) in the compute half nothing runs before the batch was taken, so
that a step without a batch has no effect; (3) captured variables and tables are the same ones;
(4) control edges within a half stay, and those from the staged half are met by its having run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.planning.stage_plan import PlannedStage, StagePlan
from workbench.core.tf_graph.concrete_function import arguments_of, is_compiled
from workbench.core.tf_graph.import_graph import graph_view
from workbench.errors import PlanError

# Stands for the op that takes the batch, in the compute half.
_TAKEN = "workbench_taken"


def split(function: Any, plan: StagePlan) -> Halves:
    """Cuts a step's function as the plan says.

    Args:
      function: a `tf.types.experimental.ConcreteFunction`; neither it nor its graph is changed.
      plan: as made by `plan_function`, for this function.

    Raises:
      PlanError: the plan was made for another function, or has not one stage.
    """
    if len(plan.stages) != 1:
        raise PlanError(
            f"a function is cut by a plan of one stage; this one has {len(plan.stages)}"
        )
    view = graph_view(function)
    roots = view.mask(view.number(name) for name in plan.roots)
    plan.require_graph(view.fingerprint(view.ancestors(roots)))
    (stage,) = plan.stages
    return Halves(function=function, stage=stage, cut=_cut(function, view, stage))


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Cut:
    """Where a function is cut, by names.

    Attributes:
      ahead, compute: the nodes of each half, without the function's inputs.
      travels: the tensors that go from one to the other.
      effects: the nodes of the staged half that run for their effect, such as an assertion.
    """

    ahead: frozenset[str]
    compute: frozenset[str]
    travels: tuple[str, ...]
    effects: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Halves:
    """A step's function, cut in two.

    Attributes:
      function: the whole; it keeps alive what it captures.
      stage: what moves.
      cut: where.
    """

    function: Any
    stage: PlannedStage
    cut: Cut

    @property
    def travels(self) -> list[tf.TensorSpec]:
        """What goes from one half to the other."""
        tensors = map(self.function.graph.get_tensor_by_name, self.cut.travels)
        return [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]

    def ahead(self, batch: Sequence[tf.Tensor]) -> tuple[list[tf.Tensor], list[tf.Operation]]:
        """Builds the staged half into the function that is being traced.

        Args:
          batch: the function's arguments, flat.

        Returns:
          What travels, and the ops that must have run before it may.
        """
        given = self._arguments(batch)
        fetched = [name for name in self.cut.travels if name not in given]
        with tf.device(self.stage.device or None):
            built = self._build(
                self.cut.ahead, given, [*fetched, *self.cut.effects], prefix=self.stage.name
            )
        given |= dict(zip(fetched, built, strict=False))
        return [given[name] for name in self.cut.travels], built[len(fetched) :]

    def compute(self, taken: Sequence[tf.Tensor], after: tf.Operation) -> Any:
        """Builds the compute half into the function that is being traced.

        Args:
          taken: what travels.
          after: the op that took it; nothing of the half runs before.

        Returns:
          What the whole function returns, in its structure.
        """
        given = dict(zip(self.cut.travels, taken, strict=True))
        if is_compiled(self.function):
            return self._call(given, after)
        wanted = [tensor.name for tensor in self.function.outputs]
        fetched = [name for name in dict.fromkeys(wanted) if name not in given]
        built = self._build(self.cut.compute, given, fetched, prefix="", after=after)
        given |= dict(zip(fetched, built, strict=True))
        return self.function.function_type.pack_output([given[name] for name in wanted])

    def _call(self, given: Mapping[str, tf.Tensor], after: tf.Operation) -> Any:
        """What XLA compiles as one piece is called as one."""
        arguments = [given[tensor.name] for tensor in arguments_of(self.function)]
        with tf.control_dependencies([after]):
            return self.function._call_flat(arguments, self.function.captured_inputs)

    def _arguments(self, batch: Sequence[tf.Tensor]) -> dict[str, tf.Tensor]:
        names = [tensor.name for tensor in arguments_of(self.function)]
        return dict(zip(names, batch, strict=True))

    def _build(
        self,
        nodes: frozenset[str],
        given: Mapping[str, tf.Tensor],
        fetched: Sequence[str],
        *,
        prefix: str,
        after: tf.Operation | None = None,
    ) -> list[Any]:
        """Imports some nodes; automatic control dependencies then see them in their old order."""
        graph = tf.compat.v1.get_default_graph()
        for nested in self.function.graph._functions.values():
            graph._add_function_recursive(nested)
        captured = {inside.name: outer for outer, inside in self.function.graph.captures}
        part, outside = _part(self._definition, nodes, None if after is None else set(given))
        mapped: dict[str, Any] = {
            name: given[name] if name in given else graph.capture(captured[name])
            for name in outside
            if name != _TAKEN
        }
        if _TAKEN in outside:
            mapped[f"^{_TAKEN}"] = _some_output(after)
        inside = [name for name in fetched if name not in captured]
        built = dict(zip(inside, _import(part, mapped, inside, prefix), strict=True))
        return [built[n] if n in built else graph.capture(captured[n]) for n in fetched]

    @functools.cached_property
    def _definition(self) -> graph_pb2.GraphDef:
        return self.function.graph.as_graph_def()


def _cut(function: Any, view: GraphView, stage: PlannedStage) -> Cut:
    inputs = {tensor.op.name for tensor in function.inputs}
    arguments = view.mask(view.number(tensor.op.name) for tensor in arguments_of(function))
    # The batch comes from the staged half in any case, also what the compute half alone reads.
    moved = view.mask(map(view.number, stage.moved)) | arguments
    effects = view.mask(view.number(op.name) for op in function.graph.control_outputs)
    outputs = [(view.number(t.op.name), t.value_index) for t in function.outputs]
    runs = view.mask(node for node, _ in outputs) | effects
    compute = view.ancestors(runs & ~moved, within=~moved)
    ahead = view.ancestors(moved)
    data = view.data
    edges = data[moved[data[:, 0]] & compute[data[:, 2]]]
    ends = {(int(row[0]), int(row[1])) for row in edges}
    ends |= {end for end in outputs if moved[end[0]]}
    if is_compiled(function):
        ends = {(node, 0) for node in arguments.nonzero()[0].tolist()}
    place = {view.number(name): i for i, name in enumerate(stage.moved)}
    order = sorted(ends, key=lambda end: (place.get(end[0], -1), end))
    return Cut(
        ahead=_names(view, ahead) - inputs,
        compute=_names(view, compute) - inputs,
        travels=tuple(f"{view.names[node]}:{output}" for node, output in order),
        effects=tuple(sorted(_names(view, moved & effects))),
    )


def _names(view: GraphView, nodes: Bools) -> frozenset[str]:
    return frozenset(view.names[node] for node in nodes.nonzero()[0])


def _import(
    part: graph_pb2.GraphDef, mapped: Mapping[str, Any], fetched: Sequence[str], prefix: str
) -> list[Any]:
    if not part.node:
        return []
    return list(
        tf.graph_util.import_graph_def(
            part, input_map=dict(mapped), return_elements=list(fetched), name=prefix
        )
    )


def _some_output(op: tf.Operation | None) -> tf.Tensor:
    """A tensor that is there once an op has run; of one without outputs, a constant after it."""
    if op is not None and op.outputs:
        return op.outputs[0]
    with tf.control_dependencies([op]):
        return tf.constant(0)


def _part(
    whole: graph_pb2.GraphDef, nodes: frozenset[str], taken: set[str] | None
) -> tuple[graph_pb2.GraphDef, frozenset[str]]:
    """Some nodes of a graph, in its order, and the tensors that they read from outside.

    With `taken`, the tensors that were taken, what would run without waiting for them is given a
    control edge to do so, and _TAKEN is among what comes from outside.
    """
    part = graph_pb2.GraphDef(versions=whole.versions)
    outside: set[str] = set()
    waiting = set(taken or ())
    for node in whole.node:
        if node.name not in nodes:
            continue
        copy = part.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        waits = taken is None or node.op == "Const"
        for text in node.input:
            name, _, output = text.removeprefix("^").partition(":")
            key = f"{name}:{output or 0}"
            if name in nodes:
                copy.input.append(text)
                waits = waits or name in waiting
            elif not text.startswith("^"):
                copy.input.append(key)
                outside.add(key)
                waits = waits or key in waiting
        _forget_colocation(copy, nodes)
        if not waits:
            copy.input.append(f"^{_TAKEN}")
            outside.add(_TAKEN)
        if node.op != "Const":
            waiting.add(node.name)
    return part, frozenset(outside)


def _forget_colocation(node: Any, nodes: frozenset[str]) -> None:
    """Drops colocation with a node that is not there; it is a hint in a function."""
    if "_class" not in node.attr:
        return
    classes = node.attr["_class"].list.s
    kept = [text for text in classes if text.removeprefix(b"loc:@").decode() in nodes]
    if kept:
        classes[:] = kept
    else:
        del node.attr["_class"]
