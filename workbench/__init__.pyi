"""The public names of workbench, each with the module that it comes from: the one list of them."""

from workbench import cluster as cluster
from workbench import costs as costs
from workbench import models as models
from workbench import toggles as toggles
from workbench._native import load_gpu_kernels as load_gpu_kernels
from workbench._native import load_library as load_library
from workbench.core.analysis.alignment import Alignment as Alignment
from workbench.core.analysis.alignment import align as align
from workbench.core.analysis.critical_path import CriticalPath as CriticalPath
from workbench.core.analysis.critical_path import critical_path as critical_path
from workbench.core.analysis.embedding_lens.lens import EmbeddingLens as EmbeddingLens
from workbench.core.analysis.findings.finding import Findings as Findings
from workbench.core.analysis.limit.limit import Limit as Limit
from workbench.core.analysis.memory.memory import Memory as Memory
from workbench.core.analysis.memory.memory import memory as memory
from workbench.core.boundary.boundary import Boundary as Boundary
from workbench.core.capture.session_capture import CaptureHook as CaptureHook
from workbench.core.executor.policy import executor as executor
from workbench.core.executor.policy import executor_options as executor_options
from workbench.core.function.fused_function import fuse_function as fuse_function
from workbench.core.function.keras_fusion import ModelFusion as ModelFusion
from workbench.core.function.keras_fusion import fuse_model as fuse_model
from workbench.core.fusion.fusion_plan import FusionPlan as FusionPlan
from workbench.core.fusion.plan import plan_fusion as plan_fusion
from workbench.core.fusion.verify.verification import Verification as Verification
from workbench.core.importing.import_trace import import_trace as import_trace
from workbench.core.optimizations import Optimizations as Optimizations
from workbench.core.options import ExecutorPolicy as ExecutorPolicy
from workbench.core.options import SmartStageOptions as SmartStageOptions
from workbench.core.options import StageOptions as StageOptions
from workbench.core.options import ThreadPoolOptions as ThreadPoolOptions
from workbench.core.planning.stage_plan import StagePlan as StagePlan
from workbench.core.session.prefetch_hook import make_prefetch_hook as make_prefetch_hook
from workbench.core.session.prefetch_hook import prefetching as prefetching
from workbench.core.session.rewrite import apply as apply
from workbench.core.session.running.thread_pool import add_stage_pools as add_stage_pools
from workbench.core.session.staged import prefetch_join as prefetch_join
from workbench.core.session.staged import staged as staged
from workbench.core.smart_stage import find_boundary as find_boundary
from workbench.core.smart_stage import plan as plan
from workbench.core.smart_stage import prepare_config as prepare_config
from workbench.core.smart_stage import smart_stage as smart_stage
from workbench.core.toggles.toggle import Toggle as Toggle
from workbench.core.trace.trace import Trace as Trace
from workbench.core.trace.trace import load_trace as load_trace
from workbench.core.what_if.calibration import Calibration as Calibration
from workbench.core.what_if.ceilings import Ceilings as Ceilings
from workbench.core.what_if.predictions import Predictions as Predictions
from workbench.errors import WorkbenchError as WorkbenchError
from workbench.experiments.comparison.compare import compare as compare
from workbench.experiments.comparison.embedding_lens import embedding_lens as embedding_lens
from workbench.experiments.comparison.findings import findings as findings
from workbench.experiments.comparison.limit import limit as limit
from workbench.experiments.comparison.results import Comparison as Comparison
from workbench.experiments.comparison.trace import trace as trace
from workbench.experiments.program.function_program import FunctionProgram as FunctionProgram
from workbench.experiments.program.own.graph_program import graph_program as graph_program
from workbench.experiments.program.program import Built as Built
from workbench.experiments.program.program import Program as Program
from workbench.experiments.search.best import Best as Best
from workbench.experiments.search.find_best import find_best as find_best
from workbench.experiments.serving.results import ServingComparison as ServingComparison
from workbench.experiments.serving.results import load_serving as load_serving
from workbench.experiments.serving.serve_bench import serve_bench as serve_bench
from workbench.experiments.serving.served_model import ServedModel as ServedModel
from workbench.experiments.serving.served_model import served as served
from workbench.experiments.session.load_session import load_session as load_session
from workbench.experiments.session.session import Session as Session
from workbench.experiments.what_if.calibration import calibration as calibration
from workbench.experiments.what_if.ceilings import ceilings as ceilings
from workbench.experiments.what_if.ceilings import speed_up as speed_up
from workbench.experiments.what_if.measured_ceilings import measured_ceilings as measured_ceilings
from workbench.experiments.what_if.predict import predict as predict
from workbench.exporting.export import export as export
from workbench.exporting.exported import Export as Export
from workbench.exporting.load_saved import load_saved as load_saved
from workbench.freed_memory import keep_freed_memory as keep_freed_memory
from workbench.ops.embedding_variable.to_pandas import (
    read_embedding_variable as read_embedding_variable,
)
from workbench.ops.embedding_variable.variable import (
    get_embedding_variable as get_embedding_variable,
)
from workbench.ops.lookup.fusion import fused_embeddings as fused_embeddings
from workbench.ops.lookup.fusion import (
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from workbench.quiet_start import quiet_start as quiet_start
from workbench.viz.notebook import widget as widget
from workbench.viz.panel.workbench import Workbench as Workbench
from workbench.viz.report import write_report as write_report

__version__: str

def load_ipython_extension(shell: object) -> None: ...
