"""The ConfigProto of a served model's sessions: threads, executor, toggles, and its fusion."""

from __future__ import annotations

from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.program import Built
from workbench.experiments.worker.steps.session_config import wished_config


def model_config(meta_graph: Any, optimizations: Optimizations) -> tuple[Any, int]:
    """The config of a setting, and how many parts of the graph it fuses.

    Raises:
      OptionError: auto_fused finds nothing to fuse.
    """
    config = wished_config(Built(train_op=None), optimizations, recorded=False)
    if not optimizations.fuses_graph:
        return config, 0
    from workbench.core.session.rewrite import apply

    plan = _plan(meta_graph)
    if not plan.count:
        raise OptionError(
            "auto_fused finds nothing to fuse in the graph of this SavedModel"
            + ("; what it calls stands in functions, as TensorFlow 2 exports a model"
               if _calls_functions(meta_graph) else "")
        )  # fmt: skip
    return apply(plan, config), plan.count


def _plan(meta_graph: Any) -> Any:
    """What is fused in the graph that sessions of the model run."""
    import tensorflow as tf

    from workbench.core.fusion.plan import plan_fusion

    # Not the whole MetaGraph: a session of the C API makes no variables of its collections.
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(meta_graph.graph_def, name="")
    return plan_fusion(graph)


def _calls_functions(meta_graph: Any) -> bool:
    calls = {"PartitionedCall", "StatefulPartitionedCall"}
    return any(node.op in calls for node in meta_graph.graph_def.node)
