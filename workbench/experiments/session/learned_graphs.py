"""LearnedGraphs: what a session knows of its program's graphs, to predict settings from a trace."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from workbench.core.boundary.boundary import Boundary
from workbench.core.optimizations import FUSIONS, Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.trace.trace import Trace
from workbench.core.what_if.scenario import GraphKey, SampleKey
from workbench.core.what_if.what_if import KnownGraph, Predictor, predictor
from workbench.errors import TraceError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.session.scenarios import traced_scenario
from workbench.experiments.what_if.known_graphs import graphs_and_ids, graphs_of_trace
from workbench.experiments.worker.wire.messages import SampledIds

_OTHER_SMART_STAGE = (
    "what may run ahead was found for a smart stage with other starts, keep, move or fed, so "
    "nothing is known of this one before it is run"
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LearnedGraphs:
    """What is known of the graphs that a program builds.

    Attributes:
      graphs: empty where none could be built.
      smart_stage: what decided what may run ahead in them.
      problem: why none could be built, or is known: a clause; "" where they are known.
      sampled: the embedding tables and the ids of a few batches; None where they were not fetched.
    """

    graphs: Mapping[GraphKey, KnownGraph] = dataclasses.field(default_factory=dict)
    smart_stage: SmartStageOptions = dataclasses.field(default_factory=SmartStageOptions)
    problem: str = ""
    sampled: SampledIds | None = None

    def predictor(self, trace: Trace, baseline: Optimizations) -> Predictor:
        """What predicts settings from a trace of the baseline.

        Without graphs it is made from the trace alone, which knows of no stage and no fused lookup.
        """
        traced = traced_scenario(baseline)
        if self.graphs:
            return predictor(trace, traced, self.graphs)
        try:
            known = graphs_of_trace(trace, _keys(), self.problem)
        except TraceError:
            # Where a stage begins only a graph tells, and why there is none is known.
            return Predictor(title=trace.meta.title, traced=traced, graphs={}, problem=self.problem)
        return predictor(trace, traced, known)

    def boundary_of(self, optimizations: Optimizations) -> Boundary | None:
        """What may run ahead in the graph of a setting; None where there is no such graph."""
        known = self.graphs.get(_key_of(optimizations))
        return known.boundary if known else None

    def no_use(self, optimizations: Optimizations) -> str:
        """Why the program has no use for what a setting switches on: a clause; "" where it has."""
        known = self.graphs.get(_key_of(optimizations))
        return known.problem if known is not None and known.boundary is None else ""

    def unknown(self, optimizations: Optimizations) -> str:
        """Why nothing can be said of a setting's smart stage; "" where it can."""
        smart = optimizations.smart_stage
        if smart is None or not self.graphs:
            return ""
        learned = self.smart_stage
        names = ("starts", "keep", "move", "fed")
        same = all(getattr(smart, name) == getattr(learned, name) for name in names)
        return "" if same else _OTHER_SMART_STAGE


def learned_graphs(
    program: AnyProgram,
    baseline: Optimizations,
    progress: bool | Callable[[str], None],
) -> LearnedGraphs:
    """Builds the program's graphs in a child process.

    Args:
      program: what is built.
      baseline: what its traces are of; the options of its stages are taken for all graphs.
      progress: as of `compare`.

    Raises:
      RunError, KeyboardInterrupt: as `compare`.
    """
    smart_stage = baseline.smart_stage or SmartStageOptions()
    shown = Progress.of(progress)
    try:
        graphs, sampled = graphs_and_ids(
            program,
            _keys(staged=not isinstance(program, FunctionProgram)),
            _samples(),
            baseline.stage or StageOptions(),
            smart_stage,
            traced=baseline,
            shown=shown,
        )
    finally:
        shown.end()
    return LearnedGraphs(graphs=graphs, smart_stage=smart_stage, sampled=sampled)


def _keys(*, staged: bool = True) -> list[GraphKey]:
    """Every graph that a program may build."""
    stages = (False, True) if staged else (False,)
    return [
        GraphKey(staged=on, fused=fused)
        for on, fused in itertools.product(stages, (None, *FUSIONS))
    ]


def _samples() -> list[SampleKey]:
    """Of which steps a few are traced.

    Not of all that there are: that would take a minute where a program builds lookups of each kind.
    """
    serial = [SampleKey(fused=fused, serial=True) for fused in (None, "auto")]
    return [*(SampleKey(fused=fused) for fused in (None, *FUSIONS)), *serial]


def _key_of(optimizations: Optimizations) -> GraphKey:
    return GraphKey(staged=optimizations.stage is not None, fused=optimizations.fused_embeddings)
