"""Concrete function of a step + options → Boundary → StagePlan with one stage.

A function's stage always exists: where nothing may move it holds the batch itself. The input needs
no stage of its own before it: a dataset reads ahead when it ends with `prefetch`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.chosen_cut import chosen_cut
from workbench.core.boundary.legality import boundary_of
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.buffer_placement import staged_device
from workbench.core.planning.edits import NOT_STALE, STALE
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import Edit, PlannedStage, StagePlan
from workbench.core.staging.error_codes import with_codes
from workbench.core.tf_graph.concrete_function import (
    arguments_of,
    is_compiled,
    require_own_captures,
)
from workbench.core.tf_graph.import_graph import graph_view
from workbench.errors import OptionError, UnsupportedError

_ALONE = "stage for the batch alone"
_WIDEST = (
    Edit(name="new stage", reason="everything that may run ahead does"),
    Edit(
        name="no stage for the input",
        reason="a dataset that ends with prefetch reads ahead of the stage by itself",
    ),
)


def plan_function(function: Any, options: SmartStageOptions) -> StagePlan:
    """Decides what of a step's function runs ahead of it.

    Args:
      function: a `tf.types.experimental.ConcreteFunction` whose arguments are the batch.
      options: what is wished; without a boundary moved by hand everything runs ahead that may.

    Returns:
      A plan with one stage, whose start are the arguments. It holds the batch alone where nothing
      may move, and where XLA compiles the function as one piece.

    Raises:
      OptionError: several producers without `reorder`; `starts` that are no arguments.
      PlanError: a boundary moved to where it cannot be.
      UnsupportedError: an argument that cannot go through a buffer, values captured anew at each
        call, or a thread pool of the stage's own.
    """
    _require_supported(function, options)
    wishes = with_codes(options)
    boundary = function_boundary(function, options)
    decided = plan_stages(boundary, wishes)
    alone = _batch_alone(boundary, wishes)
    if is_compiled(function):
        reason = "XLA compiles the step as one piece (jit_compile=True), so it is not cut"
        return _with_stage(decided, alone, Edit(name=_ALONE, reason=reason))
    if decided.stages:
        (moved,) = chosen_cut(boundary, wishes.include, wishes.exclude)
        stale = [edit for edit in decided.edits if edit.name in (STALE, NOT_STALE)]
        edits = decided.edits if wishes.moved_boundary else (*_WIDEST, *stale)
        return _with_stage(decided, _read_on(boundary, function, decided.stages[-1], moved), *edits)
    reason = "; ".join(edit.reason for edit in decided.edits)
    # The arguments of a function are one start.
    batch = boundary.view.mask(boundary.sides[0].start.nodes)
    stage = _read_on(boundary, function, alone, batch)
    return _with_stage(decided, stage, Edit(name=_ALONE, reason=reason))


def function_boundary(function: Any, options: SmartStageOptions) -> Boundary:
    """Finds what of a step's function may run ahead.

    What the function returns stays. An op that the function runs for its effect stays or moves
    like any other: an assertion about the batch alone runs ahead with it, or else what only the
    assertion reads would travel.
    """
    view = graph_view(function)
    graph = function.graph
    arguments = [tensor.op.name for tensor in arguments_of(function)]
    returned = {tensor.op.name for tensor in graph.outputs} - set(arguments)
    return boundary_of(
        view,
        targets=sorted(returned),
        runs=[*(op.name for op in graph.control_outputs), *arguments],
        starts=_starts(arguments, options),
        keep=options.keep,
        move=options.move,
        fed=options.fed,
        stale_lookups=options.stale_lookups,
    )


def _with_stage(decided: StagePlan, stage: PlannedStage, *edits: Edit) -> StagePlan:
    return dataclasses.replace(decided, stages=(stage,), edits=edits)


def _starts(arguments: list[str], options: SmartStageOptions) -> tuple[str, ...]:
    unknown = sorted(set(options.starts) - set(arguments))
    if unknown:
        raise OptionError(
            f"SmartStageOptions.starts names {unknown[0]!r}, which is no argument of the step; "
            f"a function's stage starts at its arguments: {', '.join(map(repr, arguments))}"
        )
    return options.starts or tuple(arguments)


def _batch_alone(boundary: Boundary, options: SmartStageOptions) -> PlannedStage:
    view = boundary.view
    nodes = boundary.sides[0].start.nodes
    names = tuple(view.names[node] for node in nodes)
    shared = {f.name for f in dataclasses.fields(StageOptions)} - {"num_clients"}
    wishes = {name: getattr(options, name) for name in shared}
    return PlannedStage(
        name=options.name,
        start=names,
        moved=names,
        moved_ops=tuple(view.ops[node] for node in nodes),
        carried=names,
        dtypes=tuple(view.outputs[node] for node in nodes),
        shapes=tuple(view.output_shapes(node) for node in nodes),
        options=StageOptions(
            **wishes
            | {"capacity": wishes["capacity"] or 1, "num_threads": wishes["num_threads"] or 1}
        ),
        device=staged_device(options),
    )


def _read_on(boundary: Boundary, function: Any, stage: PlannedStage, moved: Bools) -> PlannedStage:
    """The stage, which runs `moved`, without the arguments that only those read.

    They need not travel.
    """
    view = boundary.view
    data = view.data
    ends = data[moved[data[:, 0]] & ~moved[data[:, 2]] & boundary.step[data[:, 2]], 0]
    read = {view.names[node] for node in ends.tolist()}
    read |= {tensor.op.name for tensor in function.outputs}
    kept = [i for i, name in enumerate(stage.carried) if name in read]
    return dataclasses.replace(
        stage,
        carried=tuple(stage.carried[i] for i in kept),
        dtypes=tuple(stage.dtypes[i] for i in kept),
        shapes=tuple(stage.shapes[i] for i in kept),
    )


def _require_supported(function: Any, options: SmartStageOptions) -> None:
    if options.use_stage_subgraph_thread_pool:
        raise UnsupportedError(
            "use_stage_subgraph_thread_pool=True: a tf.function has no thread pools of its own; "
            "leave the option out, or stage a graph that runs in a session"
        )
    require_own_captures(function)
    if not arguments_of(function):
        raise OptionError(
            f"the step {function.graph.name!r} takes no tensors; expected a function of a batch"
        )
    for tensor in arguments_of(function):
        if tensor.dtype in (tf.resource, tf.variant):
            raise UnsupportedError(
                f"argument {tensor.op.name!r} of the step is a {tensor.dtype.name}, which cannot "
                "go through a buffer; expected tensors, SparseTensor or RaggedTensor"
            )
