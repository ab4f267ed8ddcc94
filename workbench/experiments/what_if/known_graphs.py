"""The graphs that a program builds, and what their new nodes cost: what predictions are made from.

Learning them takes a child process and seconds; they hold for every trace of the program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.core.graph.graph_view import GraphView
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.prediction.traced_graph import traced_graph
from workbench.core.toggles.toggle import Choice
from workbench.core.trace.trace import Trace
from workbench.core.what_if.costs.fused_costs import FusedCosts
from workbench.core.what_if.costs.fused_nodes import fused_ns
from workbench.core.what_if.costs.likened_costs import like_results, stock_ops
from workbench.core.what_if.scenario import GraphKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.experiments.comparison.applicable_toggles import NO_STAGE, no_lookup
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import COSTS, GRAPHS, IDS
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.what_if.fused_calibration import fused_costs
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import (
    DescribeGraph,
    SampledIds,
    SampleIds,
)

_BATCHES = 10
NO_PROGRAM = "what the program builds for it is not known without the program; give it"
_NO_STOCK = "the trace has fused ops, and what stock ones take is not known; trace without them"


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
    return graphs_and_ids(
        program,
        keys,
        stage,
        smart_stage,
        traced=traced,
        chosen=chosen,
        always_ids=False,
        shown=shown,
    )[0]


def graphs_and_ids(
    program: AnyProgram,
    keys: Iterable[GraphKey],
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    *,
    traced: GraphKey,
    chosen: tuple[Choice, ...] = (),
    always_ids: bool = True,
    shown: Progress,
) -> tuple[dict[GraphKey, KnownGraph], SampledIds | None]:
    """The same, with the tables of the program and the ids of its first batches.

    The latter are None of a program without tables.

    Args:
      program, keys, stage, smart_stage, traced, chosen, shown: as of `known_graphs`.
      always_ids: whether ids are fetched although no lookup can be fused.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    shown.phase("Building the graphs", GRAPHS)
    plain = Variant(label="predict", optimizations=Optimizations(chosen=chosen))
    with started_workers([(plain.label, program)], [plain.environment]) as workers:
        graphs = {
            key: _known(workers[0], key, stage, smart_stage, chosen)
            for key in dict.fromkeys([traced, *keys])
        }
        fused = _newly_fused(graphs, traced)
        sampled = None
        if _has_tables(graphs) and (always_ids or fused):
            shown.phase(f"Fetching the ids of {_BATCHES} batches", IDS)
            sampled = workers[0].call(SampleIds(batches=_BATCHES, chosen=chosen))
        stock = _no_stock(graphs, traced)
        return graphs | stock | _with_all_costs(fused, sampled, shown), sampled


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


def _has_tables(graphs: Mapping[GraphKey, KnownGraph]) -> bool:
    """Whether there are ids to fetch: a graph reads rows of variables."""
    views = [known.boundary.view for known in graphs.values() if known.boundary is not None]
    return any(map(find_tables, views))


def _no_stock(
    graphs: Mapping[GraphKey, KnownGraph], traced: GraphKey
) -> dict[GraphKey, KnownGraph]:
    """The graphs with stock lookups where fused ones were traced: nothing tells their times."""
    unfused = [key for key in graphs if traced.fused and not key.fused]
    return dict.fromkeys(unfused, KnownGraph(problem=_NO_STOCK))


def _newly_fused(
    graphs: Mapping[GraphKey, KnownGraph], traced: GraphKey
) -> dict[GraphKey, KnownGraph]:
    """The graphs whose fused lookups were not traced."""
    return {
        key: graph
        for key, graph in graphs.items()
        if key.fused and key.fused != traced.fused and graph.boundary is not None
    }


def _with_all_costs(
    fused: Mapping[GraphKey, KnownGraph],
    sampled: SampledIds | None,
    shown: Progress,
) -> dict[GraphKey, KnownGraph]:
    """Graphs whose lookups were not traced, with what those cost."""
    if not fused:
        return {}
    shown.phase("Reading what fused ops cost on this machine; measured where not yet known", COSTS)
    costs = fused_costs()
    return {key: _with_costs(graph, costs, sampled) for key, graph in fused.items()}


def _ids_in(view: GraphView, sampled: SampledIds) -> dict[str, IdStatistics]:
    """The ids of a graph's tables, by name: those that functions capture go by their numbers."""
    ids = dict(sampled.ids)
    of_capture = {
        each.capture: ids[each.name]
        for each in sampled.tables
        if each.capture is not None and each.name in ids
    }
    for table in find_tables(view):
        if table.capture in of_capture:
            ids[table.name] = of_capture[table.capture]
    return ids


def _with_costs(known: KnownGraph, costs: FusedCosts, sampled: SampledIds | None) -> KnownGraph:
    assert known.boundary is not None
    view = known.boundary.view
    ids = _ids_in(view, sampled) if sampled is not None else {}
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
