"""trace(): a few warm steps of a program, traced in a child process → Trace."""

from __future__ import annotations

from collections.abc import Callable

from workbench.core.optimizations import Optimizations
from workbench.core.options import require_at_least
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.running.open_sessions import open_sessions
from workbench.experiments.comparison.running.traces import traced
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import (
    AnyProgram,
    require_program,
    require_step_stats,
    require_traceable,
)
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import RunBlock


def trace(
    program: AnyProgram,
    optimizations: Optimizations | None = None,
    *,
    steps: int = 30,
    warm_up_steps: int = 50,
    step_stats: bool = False,
    progress: bool | Callable[[str], None] = True,
) -> Trace:
    """Traces a few warm steps of a program with some optimizations, in a child process.

    They run on the normal executor, which records its ops, where the optimizations choose none.
    Untraced steps before and after are noted in the trace as `meta.untraced`.

    Args:
      program: what is run.
      optimizations: what it is built with; None means without any.
      steps: how many to trace.
      warm_up_steps: how many to run before.
      step_stats: traces with TensorFlow's own step stats instead, on TensorFlow's own executor
        where the optimizations choose none; they lengthen every step and op.
      progress: as of `compare`.

    Raises:
      OptionError: steps below 1, warm_up_steps below 0, or step_stats of a FunctionProgram, which
        has no session that returns them.
      UnsupportedError: a FunctionProgram, and the native library has no executors.
      RunError, KeyboardInterrupt: as `compare`.
    """
    require_program(program)
    require_at_least("steps", steps, 1)
    require_at_least("warm_up_steps", warm_up_steps, 0)
    require_step_stats(program, step_stats)
    require_traceable(program)
    variant = Variant(label="trace", optimizations=optimizations or Optimizations())
    shown = Progress(progress)
    shown.phase("Starting a child process")
    try:
        with started_workers([(variant.label, program)], [variant.environment]) as workers:
            open_sessions(
                program,
                [variant],
                workers,
                sample_steps=steps,
                progress=shown,
                recorded=not step_stats,
            )
            shown.phase("Warming up")
            # A block fetches what traced steps fetch: an executor learns for each set of fetches.
            steps_before = max(warm_up_steps, variant.learning_steps)
            workers[0].call(RunBlock(session="main", steps=steps_before))
            shown.phase(f"Tracing {steps} steps")
            return traced(workers[0], "main", steps, step_stats=step_stats)
    finally:
        shown.end()
