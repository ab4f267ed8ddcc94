"""predict(): one trace of a program → what each toggle would give, before any is run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.options import (
    ExecutorPolicy,
    Optimizations,
    SmartStageOptions,
    StageOptions,
    require_at_least,
)
from workbench.core.trace.trace import Trace
from workbench.core.what_if.fused_costs import FusedCosts
from workbench.core.what_if.fused_nodes import fused_ns
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.scenario import GraphKey, Scenario
from workbench.core.what_if.traced_graph import traced_graph
from workbench.core.what_if.what_if import KnownGraph, what_if
from workbench.errors import OptionError
from workbench.experiments.comparison.applicable_toggles import NO_LOOKUP, NO_STAGE
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_program,
)
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.what_if.fused_calibration import fused_costs
from workbench.experiments.worker.messages import DescribeGraph, SampleIds
from workbench.experiments.worker.process import Worker, started_workers

_BATCHES = 10
_NO_PROGRAM = "what the program builds for it is not known without the program; give it"
_NO_STOCK = "the trace has fused lookups, and what stock ones take is not known; trace without them"
_NO_IDS = "the ids of a FunctionProgram cannot be fetched, which say what a fused lookup takes"


def predict(
    trace: Trace,
    program: AnyProgram | None = None,
    toggles: Sequence[str] | None = None,
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

    Nothing is trained: a child process builds the graph of each toggle and, for fused lookups,
    fetches the ids of a few batches. What ops of fused lookups cost on this machine is measured
    once, in half a minute, and kept in the user's cache directory.

    Args:
      trace: of the program, taken by `trace` or by a `CaptureHook` after some untraced steps.
      program: what was traced. Without it nothing is known of stages and fused lookups, and the
        graph is what ran.
      toggles: names as of `compare`, such as "stage+fused_v1"; None predicts every toggle and
        every combination of them.
      traced: the optimizations that the trace was taken with; None means without any.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      cores: of the machine to predict for; None takes the trace's.
      inter_op_threads: of the session; None takes the trace's.
      batch_ratio: size of a batch against that of the trace. All that follows from the input is
        taken to grow with it; ratios compare samples a second.
      progress: as of `compare`.

    Returns:
      The predictions, the fastest first, and what is withheld, with the reason. Everything is
      where the simulation of the traced steps themselves does not take as long as they were
      measured to.

    Raises:
      OptionError: no trace, what is no program, an unknown toggle, or a number out of range.
      TraceError: without a program the trace has a stage, or does not know which op feeds which.
      RunError, KeyboardInterrupt: as `compare`.
    """
    for name, number in (("cores", cores), ("inter_op_threads", inter_op_threads)):
        if number is not None:
            require_at_least(name, number, 1)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    scenarios = [
        Scenario(
            optimizations=wish,
            cores=cores,
            inter_op_threads=inter_op_threads,
            batch_ratio=batch_ratio,
        )
        for wish in _wishes(program, toggles, *options)
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
    progress: bool | Callable[[str], None],
) -> Predictions:
    """What each of these settings would give; the arguments are those of `predict`.

    Raises:
      OptionError, TraceError, RunError: as `predict`.
    """
    if program is not None:
        require_program(program)
    _require_trace(trace)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    before = Scenario(optimizations=traced or Optimizations())
    if program is None:
        return what_if(trace, before, _of_trace(trace, [before, *scenarios]), scenarios)
    shown = Progress(progress)
    shown.phase("Building the graphs")
    try:
        with started_workers([("predict", program)]) as workers:
            keys = dict.fromkeys(scenario.graph for scenario in [before, *scenarios])
            graphs = {key: _known(workers[0], key, *options) for key in keys}
            graphs |= _fused(program, workers[0], graphs, before.graph, shown)
        shown.phase(f"Predicting {len(scenarios)} settings")
        return what_if(trace, before, graphs, scenarios)
    finally:
        shown.end()


def _of_trace(trace: Trace, scenarios: Sequence[Scenario]) -> dict[GraphKey, KnownGraph]:
    plain = KnownGraph(boundary=traced_graph(trace), problem=_NO_PROGRAM)
    others = KnownGraph(problem=_NO_PROGRAM)
    return {each.graph: plain if each.graph == GraphKey() else others for each in scenarios}


def _require_trace(trace: object) -> None:
    """Requires a trace.

    Raises:
      OptionError: anything else.
    """
    if not isinstance(trace, Trace):
        raise OptionError(
            f"predict got a {type(trace).__name__}; expected a Trace, such as wb.trace(program)"
        )


def _wishes(
    program: AnyProgram | None,
    toggles: Sequence[str] | None,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
) -> list[Optimizations]:
    if toggles is not None:
        names = [toggles] if isinstance(toggles, str) else list(toggles)
        return [Optimizations(), *(optimizations_of(name, stage, smart_stage) for name in names)]
    stages: list[tuple[StageOptions | None, SmartStageOptions | None]] = [(None, None)]
    if not isinstance(program, FunctionProgram):
        stages.append((stage, None))
    stages.append((None, smart_stage))
    return [
        Optimizations(stage=own, smart_stage=smart, fused_embeddings=fused, executor=executor)
        for (own, smart), fused, executor in itertools.product(
            stages,
            (None, "v1", "v2"),
            (None, ExecutorPolicy.INLINE, ExecutorPolicy.COST_MODEL),
        )
    ]


def _known(
    worker: Worker, key: GraphKey, stage: StageOptions, smart_stage: SmartStageOptions
) -> KnownGraph:
    """What the program builds for a setting."""
    wish = Optimizations(stage=stage if key.staged else None, fused_embeddings=key.fused)
    found = worker.call(DescribeGraph(optimizations=wish, options=smart_stage))
    if key.staged and not found.stages:
        return KnownGraph(problem=NO_STAGE)
    if key.fused and not found.fused_lookups:
        return KnownGraph(problem=NO_LOOKUP)
    return KnownGraph(boundary=found.boundary, problem=found.problem)


def _fused(
    program: AnyProgram,
    worker: Worker,
    graphs: Mapping[GraphKey, KnownGraph],
    traced: GraphKey,
    shown: Progress,
) -> dict[GraphKey, KnownGraph]:
    """The graphs whose lookups were not traced: of fused ones with what those cost."""
    unfused = [key for key in graphs if traced.fused and not key.fused]
    stock = dict.fromkeys(unfused, KnownGraph(problem=_NO_STOCK))
    fused = {
        key: each
        for key, each in graphs.items()
        if key.fused and key.fused != traced.fused and each.boundary is not None
    }
    if not fused:
        return stock
    if isinstance(program, FunctionProgram):
        return stock | dict.fromkeys(fused, KnownGraph(problem=_NO_IDS))
    shown.phase(f"Fetching the ids of {_BATCHES} batches")
    ids = worker.call(SampleIds(batches=_BATCHES)).ids
    shown.phase("Reading what fused lookups cost on this machine; measured where not yet known")
    costs = fused_costs()
    return stock | {key: _with_costs(each, costs, ids) for key, each in fused.items()}


def _with_costs(
    known: KnownGraph, costs: FusedCosts, ids: Mapping[str, IdStatistics]
) -> KnownGraph:
    assert known.boundary is not None
    added_ns, unknown = fused_ns(known.boundary.view, costs, ids)
    if unknown:
        named = ", ".join(sorted(unknown)[:3])
        return KnownGraph(
            problem=f"how many ids the lookups of {named} have, or the size of the table, is not "
            "known, which say what a fused lookup takes"
        )
    return dataclasses.replace(known, added_ns=added_ns)
