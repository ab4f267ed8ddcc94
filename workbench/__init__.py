"""See, stage and measure a recommender's training step on stock TensorFlow.

Importing this package loads neither TensorFlow nor the native library nor a widget stack; each
public name loads what it needs when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from workbench import models as models
    from workbench.core.boundary.boundary import Boundary as Boundary
    from workbench.core.capture.session_capture import CaptureHook as CaptureHook
    from workbench.core.executor.learned_costs import LearnedCosts as LearnedCosts
    from workbench.core.executor.learned_costs import learned_costs as learned_costs
    from workbench.core.executor.learned_costs import load_learned_costs as load_learned_costs
    from workbench.core.executor.learned_costs import preload_costs as preload_costs
    from workbench.core.executor.learned_costs import relearn_costs as relearn_costs
    from workbench.core.executor.policy import executor as executor
    from workbench.core.executor.policy import executor_options as executor_options
    from workbench.core.options import ExecutorPolicy as ExecutorPolicy
    from workbench.core.options import Optimizations as Optimizations
    from workbench.core.options import SmartStageOptions as SmartStageOptions
    from workbench.core.options import StageOptions as StageOptions
    from workbench.core.options import ThreadPoolOptions as ThreadPoolOptions
    from workbench.core.planning.stage_plan import StagePlan as StagePlan
    from workbench.core.session.prefetch_hook import make_prefetch_hook as make_prefetch_hook
    from workbench.core.session.prefetch_hook import prefetching as prefetching
    from workbench.core.session.staged import prefetch_join as prefetch_join
    from workbench.core.session.staged import staged as staged
    from workbench.core.smart_stage import apply as apply
    from workbench.core.smart_stage import find_boundary as find_boundary
    from workbench.core.smart_stage import plan as plan
    from workbench.core.smart_stage import prepare_config as prepare_config
    from workbench.core.smart_stage import smart_stage as smart_stage
    from workbench.core.trace.trace import Trace as Trace
    from workbench.core.trace.trace import load_trace as load_trace
    from workbench.errors import WorkbenchError as WorkbenchError
    from workbench.experiments.comparison.compare import compare as compare
    from workbench.experiments.comparison.results import Comparison as Comparison
    from workbench.experiments.comparison.trace import trace as trace
    from workbench.experiments.program.function_program import FunctionProgram as FunctionProgram
    from workbench.experiments.program.program import Built as Built
    from workbench.experiments.program.program import Program as Program
    from workbench.ops.embedding_variable.variable import (
        get_embedding_variable as get_embedding_variable,
    )
    from workbench.ops.embedding_variable.variable import (
        read_embedding_variable as read_embedding_variable,
    )
    from workbench.ops.lookup.fusion import fused_embeddings as fused_embeddings
    from workbench.ops.lookup.fusion import (
        safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
    )
    from workbench.quiet_start import quiet_start as quiet_start
    from workbench.viz.notebook import widget as widget
    from workbench.viz.report import write_report as write_report

_HOME = {
    "Boundary": "workbench.core.boundary.boundary",
    "Built": "workbench.experiments.program.program",
    "CaptureHook": "workbench.core.capture.session_capture",
    "Comparison": "workbench.experiments.comparison.results",
    "ExecutorPolicy": "workbench.core.options",
    "FunctionProgram": "workbench.experiments.program.function_program",
    "LearnedCosts": "workbench.core.executor.learned_costs",
    "Optimizations": "workbench.core.options",
    "Program": "workbench.experiments.program.program",
    "SmartStageOptions": "workbench.core.options",
    "StageOptions": "workbench.core.options",
    "StagePlan": "workbench.core.planning.stage_plan",
    "ThreadPoolOptions": "workbench.core.options",
    "Trace": "workbench.core.trace.trace",
    "WorkbenchError": "workbench.errors",
    "apply": "workbench.core.smart_stage",
    "compare": "workbench.experiments.comparison.compare",
    "executor": "workbench.core.executor.policy",
    "executor_options": "workbench.core.executor.policy",
    "find_boundary": "workbench.core.smart_stage",
    "fused_embeddings": "workbench.ops.lookup.fusion",
    "get_embedding_variable": "workbench.ops.embedding_variable.variable",
    "preload_costs": "workbench.core.executor.learned_costs",
    "learned_costs": "workbench.core.executor.learned_costs",
    "load_learned_costs": "workbench.core.executor.learned_costs",
    "load_trace": "workbench.core.trace.trace",
    "make_prefetch_hook": "workbench.core.session.prefetch_hook",
    "plan": "workbench.core.smart_stage",
    "prefetch_join": "workbench.core.session.staged",
    "prefetching": "workbench.core.session.prefetch_hook",
    "prepare_config": "workbench.core.smart_stage",
    "quiet_start": "workbench.quiet_start",
    "read_embedding_variable": "workbench.ops.embedding_variable.variable",
    "relearn_costs": "workbench.core.executor.learned_costs",
    "safe_embedding_lookup_sparse": "workbench.ops.lookup.fusion",
    "smart_stage": "workbench.core.smart_stage",
    "staged": "workbench.core.session.staged",
    "trace": "workbench.experiments.comparison.trace",
    "widget": "workbench.viz.notebook",
    "write_report": "workbench.viz.report",
}
__all__ = [*sorted(_HOME), "models"]


def __getattr__(name: str) -> Any:
    if name == "models":
        return importlib.import_module("workbench.models")
    if name not in _HOME:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
