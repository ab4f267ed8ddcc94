"""The graphs that a program builds, and what their new nodes cost: what predictions are made from.

Learning them takes a child process and seconds; they hold for every trace of the program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Choice
from workbench.core.trace.trace import Trace
from workbench.core.what_if.costs.fused_costs import FusedCosts
from workbench.core.what_if.costs.fused_nodes import fused_ns
from workbench.core.what_if.costs.likened_costs import like_results, stock_ops
from workbench.core.what_if.scenario import GraphKey
from workbench.core.what_if.traced_graph import traced_graph
from workbench.core.what_if.what_if import KnownGraph
from workbench.experiments.comparison.applicable_toggles import NO_STAGE, no_lookup
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.what_if.fused_calibration import fused_costs
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import DescribeGraph, SampleIds

_BATCHES = 10
NO_PROGRAM = "what the program builds for it is not known without the program; give it"
_NO_STOCK = "the trace has fused ops, and what stock ones take is not known; trace without them"
_NO_IDS = "the ids of a FunctionProgram cannot be fetched, which say what a fused lookup takes"


def known_graphs(
    program: AnyProgram,
    keys: Iterable[GraphKey],
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    *,
    traced: GraphKey,
    chosen: tuple[Choice, ...] = (),
    shown: Progress,
) -> dict[GraphKey, KnownGraph]:
    """Builds the program's graphs in a child process, and estimates what was not traced of them.

    Args:
      program: what is built.
      keys: which graphs.
      stage: options of the user's own stage, where a graph has it.
      smart_stage: what decides what may run ahead.
      traced: the graph whose nodes are traced; it is built, too.
      chosen: where toggles with choices stand in all of them.
      shown: shows what is done.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    shown.phase("Building the graphs")
    plain = Variant(label="predict", optimizations=Optimizations(chosen=chosen))
    with started_workers([(plain.label, program)], [plain.environment]) as workers:
        graphs = {
            key: _known(workers[0], key, stage, smart_stage, chosen)
            for key in dict.fromkeys([traced, *keys])
        }
        return graphs | _fused(program, workers[0], graphs, traced, chosen, shown)


def graphs_of_trace(
    trace: Trace, keys: Iterable[GraphKey], problem: str = NO_PROGRAM
) -> dict[GraphKey, KnownGraph]:
    """What is known of these graphs without building any: what ran, where that is the plain one.

    Args:
      trace: of steps without a stage.
      keys: which graphs.
      problem: why no more is known, a clause.

    Raises:
      TraceError: the trace has a stage, or does not know which op feeds which.
    """
    plain = KnownGraph(boundary=traced_graph(trace), problem=problem)
    others = KnownGraph(problem=problem)
    return {key: plain if key == GraphKey() else others for key in keys}


def _known(
    worker: Worker,
    key: GraphKey,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    chosen: tuple[Choice, ...],
) -> KnownGraph:
    """What the program builds for a setting."""
    own_stage = stage if key.staged else None
    wish = Optimizations(stage=own_stage, fused_embeddings=key.fused, chosen=chosen)
    found = worker.call(DescribeGraph(optimizations=wish, options=smart_stage))
    if key.staged and not found.stages:
        return KnownGraph(problem=NO_STAGE)
    if key.fused and not found.fused_ops:
        return KnownGraph(problem=no_lookup(wish))
    return KnownGraph(boundary=found.boundary, problem=found.problem)


def _fused(
    program: AnyProgram,
    worker: Worker,
    graphs: Mapping[GraphKey, KnownGraph],
    traced: GraphKey,
    chosen: tuple[Choice, ...],
    shown: Progress,
) -> dict[GraphKey, KnownGraph]:
    """The graphs whose lookups were not traced: of fused ones with what those cost."""
    unfused = [key for key in graphs if traced.fused and not key.fused]
    stock = dict.fromkeys(unfused, KnownGraph(problem=_NO_STOCK))
    fused = {
        key: graph
        for key, graph in graphs.items()
        if key.fused and key.fused != traced.fused and graph.boundary is not None
    }
    if not fused:
        return stock
    if isinstance(program, FunctionProgram):
        return stock | dict.fromkeys(fused, KnownGraph(problem=_NO_IDS))
    shown.phase(f"Fetching the ids of {_BATCHES} batches")
    ids = worker.call(SampleIds(batches=_BATCHES, chosen=chosen)).ids
    shown.phase("Reading what fused ops cost on this machine; measured where not yet known")
    costs = fused_costs()
    return stock | {key: _with_costs(graph, costs, ids) for key, graph in fused.items()}


def _with_costs(
    known: KnownGraph, costs: FusedCosts, ids: Mapping[str, IdStatistics]
) -> KnownGraph:
    assert known.boundary is not None
    view = known.boundary.view
    added_ns, unknown, unmeasured = fused_ns(view, costs, ids)
    if unknown:
        named = ", ".join(sorted(unknown)[:3])
        return KnownGraph(
            problem=f"how many ids the lookups of {named} have, or the size of the table, is not "
            "known, which say what a fused lookup takes"
        )
    results = like_results(view)
    unmeasured |= {view.ops[node] for node in results} - set(costs.times)
    if unmeasured:
        named = ", ".join(sorted(unmeasured)[:3])
        return KnownGraph(problem=f"what {named} takes on this machine is not measured")
    likened = {
        node: (name, stock_ops(view, node) * costs.times[view.ops[node]])
        for node, name in results.items()
    }
    return dataclasses.replace(known, added_ns=added_ns, likened=likened)
