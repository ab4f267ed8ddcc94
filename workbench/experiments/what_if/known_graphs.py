"""The graphs that a program builds, and a few traced steps of those that a trace is not of.

Learning them takes a child process and seconds; they hold for every trace of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.prediction.traced_graph import traced_graph
from workbench.core.toggles.toggle import Choice
from workbench.core.trace.trace import Trace
from workbench.core.what_if.scenario import GraphKey, SampleKey, Scenario
from workbench.core.what_if.what_if import KnownGraph
from workbench.experiments.comparison.applicable_toggles import NO_STAGE, no_lookup
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import COSTS, GRAPHS, IDS
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.what_if.sampled_graphs import sampled_graphs
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import DescribeGraph, SampledIds, SampleIds
from workbench.number_words import counted

_BATCHES = 10
NO_PROGRAM = "what the program builds for it is not known without the program; give it"


def known_graphs(
    program: AnyProgram,
    keys: Iterable[GraphKey],
    samples: Iterable[SampleKey],
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    *,
    traced: Optimizations,
    shown: Progress,
) -> dict[GraphKey, KnownGraph]:
    """Builds the program's graphs in a child process, and traces a few steps of some.

    Args:
      program: what is built.
      keys: which graphs.
      samples: of which steps are traced; not those that are as in the trace.
      stage: options of the user's own stage, where a graph has it.
      smart_stage: what decides what may run ahead.
      traced: the setting that the trace is of; its graph is built, too.
      shown: shows what is done.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    return graphs_and_ids(
        program, keys, samples, stage, smart_stage, traced=traced, with_ids=False, shown=shown
    )[0]


def graphs_and_ids(
    program: AnyProgram,
    keys: Iterable[GraphKey],
    samples: Iterable[SampleKey],
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    *,
    traced: Optimizations,
    with_ids: bool = True,
    shown: Progress,
) -> tuple[dict[GraphKey, KnownGraph], SampledIds | None]:
    """The same, with the tables of the program and the ids of its first batches.

    The latter are None of a program without tables.

    Args:
      program, keys, samples, stage, smart_stage, traced, shown: as of `known_graphs`.
      with_ids: whether ids are fetched.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    shown.phase("Building the graphs", GRAPHS)
    plain = Variant(label="predict", optimizations=Optimizations(chosen=traced.chosen))
    before = Scenario(optimizations=traced)
    to_sample = [each for each in dict.fromkeys(samples) if each != before.sample]
    # A sample is of the graph without a stage of the user's own.
    unstaged = [GraphKey(fused=each.fused) for each in to_sample]
    with started_workers([(plain.label, program)], [plain.environment]) as workers:
        graphs = {
            key: _known(workers[0], key, stage, smart_stage, traced.chosen)
            for key in dict.fromkeys([before.graph, *keys, *unstaged])
        }
        sampled = None
        if with_ids and _has_tables(graphs):
            shown.phase(f"Fetching the ids of {_BATCHES} batches", IDS)
            sampled = workers[0].call(SampleIds(batches=_BATCHES, chosen=traced.chosen))
        there = {key: graphs[key] for key in unstaged if graphs[key].boundary is not None}
        if there:
            shown.phase(f"Tracing a few steps of {counted(len(there), 'graph')}", COSTS)
            graphs |= sampled_graphs(workers[0], there, to_sample, traced)
    return graphs, sampled


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
