"""Graph → FusionPlan: what of it few ops do, and why not all."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from workbench.core.fusion.batch_norms.find import find_batch_norms
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.found import Found
from workbench.core.fusion.fused_nodes import FusedNodes
from workbench.core.fusion.fusion_plan import FusionPlan
from workbench.core.fusion.groups import run_together
from workbench.core.fusion.interactions.find import find_interactions
from workbench.core.fusion.kernels.alike_ops import find_alike_ops
from workbench.core.fusion.kernels.matmuls import find_matmuls
from workbench.core.fusion.lookups.dense_gradients import dense_gradients_of
from workbench.core.fusion.lookups.dense_lookups import find_dense_lookups
from workbench.core.fusion.lookups.gradients import LookupGradient, with_gradients
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.placed import placed
from workbench.core.fusion.lookups.reads import in_variable
from workbench.core.fusion.lookups.shared_tables import with_whole_updates
from workbench.core.fusion.lookups.stock_lookups import find_lookups
from workbench.core.fusion.placement import Placement, placement_of
from workbench.core.fusion.refusal import Refusal, RefusedError
from workbench.core.fusion.texts.hashed_columns import find_hashed_columns
from workbench.errors import PlanError


def plan_fusion(graph: Any) -> FusionPlan:
    """Finds stock lookups, layers and columns of text in a graph, and plans ops in their place.

    A grouped op does all lookups that do not depend on one another and are in the same runs, of one
    dtype and on one device; where an optimizer alone reads a gradient whose update a grouped op can
    do alike, the update of the table is part of it. Results are those of stock TensorFlow, but for
    the order in which the rows of one example are summed.

    One op does a batch normalization, by `tf.nn.moments` over the rows of a float32 matrix and
    `tf.nn.batch_normalization` as Keras's BatchNormalization trains too, and one its gradients:
    tens of nodes else. One op does a dot interaction, pairs of each example's vectors gathered from
    `tf.matmul(x, x, transpose_b=True)` as DLRM does, or one of a factorization machine, the square
    of the vectors' sum less the sum of their squares, and one its gradient. They differ from
    TensorFlow's in the last digits, summed in another order.

    Products of two float32 matrices of which one lies transposed, as the gradients of dense layers
    are, are done by a kernel of Workbench's, where the processor has AVX2 and no AVX-512 and oneDNN
    does none; they too differ in the last digits.

    Words of columns of text that are not empty, hashed as feature columns do it, are hashed by one
    op for all columns; lines are decoded, and whole variables updated by Adam, by kernels that any
    number of threads share. All of these give what TensorFlow's ops give.

    What may run on a GPU stays, but for lookups whose ops have kernels there, once
    `wb.load_gpu_kernels` has loaded them.

    Args:
      graph: a `tf.Graph`, a FuncGraph or concrete function, or a GraphDef that was made with
        `as_graph_def(add_shapes=True)`; it is only read.

    Raises:
      PlanError: something else.
    """
    definition = _definition_of(graph)
    nodes = Definition(definition.node, definition.library.function)
    placement = placement_of(graph)
    lookups, refusals = _lookups(nodes, placement)
    norms, more = find_batch_norms(nodes, placement)
    interactions, left = find_interactions(nodes, placement)
    refusals += [*more, *left]
    # A function always runs as a whole.
    whole = isinstance(getattr(graph, "graph", graph), FuncGraph)
    runs = {} if whole else run_together(nodes)
    found = Found(
        lookups=lookups,
        norms=norms,
        interactions=interactions,
        matmuls=find_matmuls(nodes, placement),
        columns=find_hashed_columns(nodes),
        alike=find_alike_ops(nodes, placement),
    )
    return FusedNodes(nodes, found, runs).plan(tuple(refusals))


def _lookups(
    nodes: Definition, placement: Placement
) -> tuple[list[tuple[StockLookup, list[LookupGradient]]], list[Refusal]]:
    """The lookups that are fused, with their gradients, and the others."""
    found, refused = find_lookups(nodes)
    dense, others = find_dense_lookups(nodes)
    refused += others
    kept = []
    for own, gradients_of in ((found, with_gradients), (dense, _with_dense_gradients)):
        for lookup in own:
            try:
                asked, gradients = gradients_of(nodes, lookup)
                kept.append(placed(nodes, placement, in_variable(nodes, asked), gradients))
            except RefusedError as refusal:
                refused.append(Refusal(name=lookup.name, reason=str(refusal)))
    return with_whole_updates(nodes, kept), refused


def _with_dense_gradients(
    nodes: Definition, lookup: StockLookup
) -> tuple[StockLookup, list[LookupGradient]]:
    return lookup, dense_gradients_of(nodes, lookup)


def _definition_of(graph: Any) -> Any:
    if isinstance(graph, tf.compat.v1.GraphDef):
        return graph
    graph = graph if isinstance(graph, tf.Graph) else getattr(graph, "graph", graph)
    if not isinstance(graph, tf.Graph):
        raise PlanError(
            f"{graph!r} of type {type(graph).__name__} is no graph; expected a tf.Graph, a "
            "FuncGraph, a concrete function or a GraphDef"
        )
    return graph.as_graph_def(add_shapes=True)
