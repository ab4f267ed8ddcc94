"""embedding_lens(): the embedding tables of a model, from its traces and its program."""

from __future__ import annotations

from collections.abc import Callable

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens, make_lens
from workbench.core.options import require_at_least
from workbench.core.trace.trace import Trace
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import AnyProgram, require_program
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import SampleIds


def embedding_lens(
    trace: Trace,
    fused: Trace | None = None,
    *,
    program: AnyProgram | None = None,
    batches: int = 20,
    progress: bool | Callable[[str], None] = True,
) -> EmbeddingLens:
    """What each embedding table is asked for, how large it is, and what it takes in a step.

    Args:
      trace: of the model, taken by Workbench's own tracer.
      fused: of the same model with fused lookups, whose times stand beside the others.
      program: what was traced. It is built once more in a child process. The sizes of its tables
        are read from the graph, and the ids of its first batches are fetched. Nothing is trained.
        Without it the lens says "not sampled".
      batches: how many to fetch the ids of.
      progress: as of `compare`.

    Raises:
      OptionError: no program, or batches below 1.
      TraceError: a trace has no steps, or does not know which op feeds which.
      RunError, KeyboardInterrupt: as `compare`.
    """
    require_at_least("batches", batches, 1)
    if program is None:
        return make_lens(trace, fused)
    require_program(program)
    shown = Progress(progress)
    shown.phase(f"Fetching the ids of {batches} batches")
    try:
        with started_workers([("ids", program)]) as workers:
            sampled = workers[0].call(SampleIds(batches=batches))
    finally:
        shown.end()
    return make_lens(trace, fused, {table.name: table for table in sampled.tables}, sampled.ids)
