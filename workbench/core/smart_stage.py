"""SmartStage: find → plan → apply, over TensorFlow's own objects; pure composition."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.function.keras_trainer import is_model
from workbench.core.fusion.fusion_plan import FusionPlan, fused_definition
from workbench.core.options import SmartStageOptions
from workbench.core.planning.buffer_placement import ON_CPU, ComputeDevice
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.session.rewrite import applied_in, apply
from workbench.core.session.runner_registry import stage_options
from workbench.core.staging.error_codes import with_codes
from workbench.core.tf_graph.import_graph import graph_view
from workbench.core.tf_graph.kernels import without_kernel
from workbench.core.tf_graph.target_nodes import target_nodes
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError

_LOG = logging.getLogger("workbench")


def find_boundary(
    graph: Any,
    targets: Iterable[Any] = (),
    options: SmartStageOptions | None = None,
    *,
    fusion: FusionPlan | None = None,
) -> Boundary:
    """Finds what may run ahead of a step of `graph`.

    Args:
      graph: a `tf.Graph` or GraphDef, or the concrete function of a step, whose arguments are the
        batch; it is only read.
      targets: tensors, operations or names that a step runs, such as the train op; they stay, and
        the step is what they depend on. None: what `mark_target_node` marked stays, and
        everything in the graph counts as part of the step.
      options: where to start, what to keep, what to move; None means the defaults.
      fusion: lookups of a `tf.Graph` that the session's config fuses; the boundary is one of the
        fused graph.

    Returns:
      The boundary; `refusals()` and `explain(node)` say why nodes stay.

    Raises:
      PlanError: an unknown name, no input and no stage, or several inputs (the message names them).
    """
    wishes = options or SmartStageOptions()
    if isinstance(graph, tf.types.experimental.ConcreteFunction):
        from workbench.core.function.plan import function_boundary

        return function_boundary(graph, wishes)
    built = isinstance(graph, tf.Graph)
    marked = target_nodes(graph) if built else ()
    stages = stage_options(graph) if built else {}
    if fusion is not None:
        graph = fused_definition(graph.as_graph_def(add_shapes=True), fusion)
    return boundary_of(
        graph_view(graph, stages),
        targets=_names(targets),
        marked=marked,
        starts=wishes.starts,
        keep=wishes.keep,
        move=wishes.move,
        fed=wishes.fed,
        stale_lookups=wishes.stale_lookups,
    )


def plan(
    boundary: Boundary,
    options: SmartStageOptions | None = None,
    *,
    trace: Trace | None = None,
    cores: int | None = None,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> StagePlan:
    """Decides which nodes run ahead, in which stages; see `planner.plan_stages`.

    `include` names nodes that run ahead with what they depend on. `exclude` names nodes that stay
    with what depends on them. With either, the plan takes exactly that cut, and so it does with
    those of the options.

    Raises:
      PlanError: a cut that is not legal; the message has the reason.
      OptionError: `boundary` is no Boundary, or `options` are no SmartStageOptions.
    """
    for value, kind, hint in (
        (boundary, Boundary, "; wb.find_boundary(graph) finds it"),
        (options or SmartStageOptions(), SmartStageOptions, ""),
    ):
        if not isinstance(value, kind):
            found = type(value).__name__
            raise OptionError(f"plan got a {found}; expected a {kind.__name__}{hint}")
    wished = with_codes(options or SmartStageOptions())
    compute = ON_CPU
    if wished.on_cpu and tf.config.list_physical_devices("GPU"):
        on_cpu_only = without_kernel(boundary.view.ops, "GPU")
        compute = ComputeDevice(name="/device:GPU:0", cpu_ops=on_cpu_only)
    return plan_stages(
        boundary,
        wished,
        trace=trace,
        cores=cores,
        compute_device=compute,
        include=include,
        exclude=exclude,
    )


def prepare_config(
    graph: tf.Graph,
    config: Any = None,
    options: SmartStageOptions | None = None,
    *,
    targets: Sequence[Any] = (),
    trace: Trace | None = None,
) -> tuple[Any, StagePlan]:
    """Plans for a finished graph, and puts the plan into a copy of the session's config.

    Args:
      graph: the graph that sessions will run.
      config: a stock ConfigProto, None for the defaults; it is not changed.
      options: of the smart stage.
      targets: what a step runs, as in `find_boundary`.
      trace: of a few warm steps of the graph; with it the plan is the one predicted to be best.

    Returns:
      The config, and the plan in it.

    Raises:
      PlanError, OptionError: as `find_boundary` and `plan`.
    """
    prepared = tf.compat.v1.ConfigProto()
    if config is not None:
        prepared.CopyFrom(config)
    applied = applied_in(config)
    fusion = applied.fusion if applied else None
    decided = plan(find_boundary(graph, targets, options, fusion=fusion), options, trace=trace)
    return apply(decided, prepared), decided


def smart_stage(step: Any, dataset: Any = None, options: SmartStageOptions | None = None) -> Any:
    """Runs the widest legal part of a TensorFlow 2 training step ahead of it.

    Args:
      step: a `tf.function` that trains on one element of `dataset`; or a compiled Keras model.
      dataset: the `tf.data.Dataset` to train on, once for each iteration over what is returned;
        None for a model, which gets its data in `fit`.
      options: of the stage; None means the defaults.

    Returns:
      For a function an iterable of the step's results. For a model a handle, whose `remove()`
      gives the model its own `fit` back; until then `model.fit` trains as before, staged. Only over
      data of unknown length does plain Keras count a step more at each epoch's end, in
      `optimizer.iterations`: see `smart_stage_model`.

    Raises:
      OptionError: neither a function with a dataset nor a model.
      UnsupportedError: what cannot be staged; the message names it.
    """
    if is_model(step):
        if dataset is not None:
            raise OptionError(
                "smart_stage was given a model and a dataset; give the data to model.fit instead"
            )
        from workbench.core.function.keras_fit import smart_stage_model

        return smart_stage_model(step, options)
    if dataset is None:
        raise OptionError(
            f"smart_stage was given {step!r} of type {type(step).__name__} alone; expected a "
            "tf.function and the dataset that it trains on, or a compiled Keras model"
        )
    from workbench.core.function.stage import smart_stage_function

    return smart_stage_function(step, dataset, options)


def _names(targets: Iterable[Any]) -> tuple[str, ...]:
    names = []
    for target in [targets] if isinstance(targets, str) else tf.nest.flatten(targets):
        if target is None:
            continue
        op = getattr(target, "op", target)
        name = target if isinstance(target, str) else getattr(op, "name", None)
        if not isinstance(name, str):
            raise OptionError(
                f"{target!r} of type {type(target).__name__} is no target; expected tensors, "
                "operations or their names"
            )
        names.append(name)
    return tuple(names)


def log_plan(decided: StagePlan) -> None:
    """Logs what a plan does, or why it does nothing."""
    level = logging.INFO if decided.stages else logging.WARNING
    for edit in decided.edits:
        _LOG.log(level, "smart stage: %s: %s", edit.name, edit.reason)
