"""predict(): one trace of a program → what each toggle would give, before any is run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from workbench.core.optimizations import FUSIONS, Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions, require_at_least
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.core.what_if.what_if import what_if
from workbench.errors import OptionError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_program,
)
from workbench.experiments.program.toggles import listed
from workbench.experiments.program.variant import variants_of
from workbench.experiments.what_if.known_graphs import graphs_of_trace, known_graphs


def predict(
    trace: Trace,
    program: AnyProgram | None = None,
    toggles: str | Optimizations | Sequence[str | Optimizations | Toggle] | None = None,
    *,
    traced: Optimizations | None = None,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    cores: int | None = None,
    inter_op_threads: int | None = None,
    batch_ratio: float = 1.0,
    progress: bool | Callable[[str], None] = True,
) -> Predictions:
    """Predicts what each toggle and their combinations would give, from one trace.

    A child process builds the graph of each toggle. It also traces a few steps of graphs whose
    lookups are fused in another way, and of the inline executor, which runs no op beside another.
    Steps of the traced setting run beside them, about five seconds for each. Stages, the cost model
    executor, threads, cores and batches are simulated, and so is every combination.

    Args:
      trace: of the program, taken by `trace` or by a `CaptureHook` after some untraced steps.
      program: what was traced. Without it nothing is known of stages and fused lookups, and the
        graph is what ran.
      toggles: names as of `compare`, such as "stage+fused_v1", or settings; None predicts every
        toggle and every combination of them.
      traced: the optimizations that the trace was taken with; None means without any.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      cores: of the machine to predict for; None takes the trace's.
      inter_op_threads: of the session; None takes the trace's.
      batch_ratio: size of a batch against that of the trace. All that follows from the input is
        taken to grow with it; ratios compare samples a second.
      progress: as of `compare`.

    Returns:
      The predictions, the fastest first, and what is withheld, with the reason. Where the
      simulated steps of the trace are more than 5 % longer or shorter than measured, intervals are
      wider by as much. What changes the ops whose times do not fit is withheld then. Beyond 40 %
      everything is.

    Raises:
      OptionError: no trace, what is no program, an unknown toggle, a number out of range, or a
        setting with intra-op threads or a batch of its own.
      TraceError: without a program the trace has a stage, or does not know which op feeds which.
      RunError, KeyboardInterrupt: as `compare`.
    """
    for name, number in (("cores", cores), ("inter_op_threads", inter_op_threads)):
        if number is not None:
            require_at_least(name, number, 1)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    if toggles is None:
        wishes = every_setting(*options, own_stage=not isinstance(program, FunctionProgram))
    else:
        # Nothing asked for is a question about the traced setting alone.
        variants = variants_of(listed(toggles), *options, Optimizations())
        wishes = [each.optimizations for each in variants]
    scenarios = [
        _scenario(wish, cores=cores, inter_op_threads=inter_op_threads, batch_ratio=batch_ratio)
        for wish in wishes
    ]
    return predicted(trace, program, scenarios, *options, traced=traced, progress=progress)


def predicted(
    trace: Trace,
    program: AnyProgram | None,
    scenarios: Sequence[Scenario],
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    *,
    traced: Optimizations | None,
    samples_each: bool = True,
    progress: bool | Callable[[str], None],
) -> Predictions:
    """What each of these settings would give; the other arguments are those of `predict`.

    Args:
      samples_each: whether steps of the inline executor are traced of each graph; else those that
        run ops beside each other tell what its ops take.

    Raises:
      OptionError, TraceError, RunError: as `predict`.
    """
    if program is not None:
        require_program(program)
    _require_trace(trace)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    before = Scenario(optimizations=traced or Optimizations())
    if program is None:
        keys = [each.graph for each in [before, *scenarios]]
        return what_if(trace, before, graphs_of_trace(trace, keys), scenarios)
    shown = Progress(progress)
    try:
        graphs = known_graphs(
            program,
            [scenario.graph for scenario in scenarios],
            [each.sample if samples_each else each.sample.beside_others for each in scenarios],
            *options,
            traced=before.optimizations,
            shown=shown,
        )
        shown.phase(f"Predicting {len(scenarios)} settings")
        return what_if(trace, before, graphs, scenarios)
    finally:
        shown.end()


def _require_trace(trace: object) -> None:
    """Requires a trace.

    Raises:
      OptionError: anything else.
    """
    if not isinstance(trace, Trace):
        raise OptionError(
            f"predict got a {type(trace).__name__}; expected a Trace, such as wb.trace(program)"
        )


def _scenario(
    wish: Optimizations, *, cores: int | None, inter_op_threads: int | None, batch_ratio: float
) -> Scenario:
    """A setting on a machine; inter-op threads of its own count before those of all.

    Raises:
      OptionError: it has intra-op threads or a batch of its own, of which a trace tells nothing.
    """
    if wish.intra_op_threads is not None:
        raise OptionError(
            f"setting {wish.label()!r} has intra-op threads, of which nothing is predicted; "
            "measure it with wb.compare"
        )
    own = scenario_of(wish)
    return dataclasses.replace(
        own,
        cores=cores,
        inter_op_threads=own.inter_op_threads or inter_op_threads,
        batch_ratio=batch_ratio,
    )


def every_setting(
    stage: StageOptions, smart_stage: SmartStageOptions, *, own_stage: bool
) -> list[Optimizations]:
    """Every toggle and every combination of them.

    Args:
      stage, smart_stage: options of the stages.
      own_stage: whether the program may have a stage of the user's own.
    """
    stages: list[tuple[StageOptions | None, SmartStageOptions | None]] = [(None, None)]
    if own_stage:
        stages.append((stage, None))
    stages.append((None, smart_stage))
    return [
        Optimizations(stage=own, smart_stage=smart, fused_embeddings=fused, executor=executor)
        for (own, smart), fused, executor in itertools.product(
            stages,
            (None, *FUSIONS),
            (None, ExecutorPolicy.INLINE, ExecutorPolicy.COST_MODEL),
        )
    ]
