"""The graph that a program builds with some optimizations, described without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.boundary.boundary import Boundary
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.core.prediction.traced_graph import uncut
from workbench.errors import PlanError, UnsupportedError
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.graph_session import fused_parts
from workbench.experiments.worker.wire.messages import DescribedGraph


def describe_graph(
    program: AnyProgram, optimizations: Optimizations, options: SmartStageOptions
) -> DescribedGraph:
    """Builds the step of a program and finds what may run ahead in it.

    Args:
      program: what is built, of a FunctionProgram the concrete function of its step.
      optimizations: what it is built with.
      options: of the smart stage whose boundary it is.
    """
    if isinstance(program, FunctionProgram):
        return _of_function(program, optimizations, options)
    return _of_graph(program, optimizations, options)


def _of_graph(
    program: Program, optimizations: Optimizations, options: SmartStageOptions
) -> DescribedGraph:
    import tensorflow as tf

    from workbench.core.fusion.fusion_plan import fused_definition
    from workbench.core.fusion.plan import plan_fusion
    from workbench.core.session.prefetch_hook import runners
    from workbench.core.smart_stage import find_boundary

    with tf.Graph().as_default() as graph:
        built = build_part(program, "build", optimizations)
        targets = [t for t in (built.train_op, built.loss, built.fingerprint) if t is not None]
        fusion = plan_fusion(graph) if optimizations.fuses_graph else None
        definition = graph.as_graph_def(add_shapes=True)
        if fusion is not None:
            definition = fused_definition(definition, fusion)
        return _described(
            lambda: find_boundary(graph, targets, options, fusion=fusion),
            definition,
            targets=[each.name for each in targets],
            fused=fusion.count if fusion else fused_parts(definition),
            stages=len(runners(graph)),
        )


def _of_function(
    program: FunctionProgram, optimizations: Optimizations, options: SmartStageOptions
) -> DescribedGraph:
    from workbench.core.function.fused_function import fuse_function
    from workbench.core.function.plan import function_boundary
    from workbench.experiments.worker.steps.function_step import training_step
    from workbench.ops.lookup.fusion import fused_embeddings

    with fused_embeddings(optimizations.built_fusion):
        # Held until the end: with the step go the variables that its function refers to.
        step = training_step(program, optimizations)
        function = step.concrete()
    fused = fuse_function(function) if optimizations.fuses_graph else function
    found = fused_parts(fused.graph.as_graph_def())
    return _described(
        lambda: function_boundary(fused, options),
        fused.graph,
        fused=0 if optimizations.fuses_graph and fused is function else found,
        stages=0,
    )


def _described(
    find: Callable[[], Boundary],
    graph: Any,
    *,
    targets: Sequence[str] = (),
    fused: int,
    stages: int,
) -> DescribedGraph:
    """A graph without anything that may run ahead is described all the same."""
    from workbench.core.tf_graph.import_graph import graph_view

    try:
        boundary, problem = find(), ""
    except (PlanError, UnsupportedError) as refusal:
        boundary, problem = uncut(graph_view(graph), targets), str(refusal)
    return DescribedGraph(
        boundary=boundary,
        problem=problem,
        fused_ops=fused,
        stages=stages,
    )
