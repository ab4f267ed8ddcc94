"""The graph of a session's baseline, built in a child process before anything has run."""

from __future__ import annotations

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import DescribedGraph, DescribeGraph


def baseline_graph(program: AnyProgram, baseline: Optimizations) -> DescribedGraph:
    """Builds the step of a program as its baseline has it; nothing is trained.

    Args:
      program: what is built.
      baseline: the choices of toggles, and what decides what may run ahead.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    wish = Optimizations(chosen=baseline.chosen)
    plain = Variant(label="graph", optimizations=wish)
    with started_workers([(plain.label, program)], [plain.environment]) as workers:
        options = baseline.smart_stage or SmartStageOptions()
        found: DescribedGraph = workers[0].call(DescribeGraph(optimizations=wish, options=options))
        return found
