"""One trace, the graphs of a program and settings → Predictions."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import Candidate
from workbench.core.options import ExecutorPolicy
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.doubts import UNEVEN, Doubt, named_ops
from workbench.core.prediction.predict import predict
from workbench.core.prediction.prediction import Prediction
from workbench.core.prediction.replay import Replay
from workbench.core.simulation.dispatch import INLINE, NORMAL, dispatch_of
from workbench.core.toggles.toggle import Choice
from workbench.core.trace.trace import Trace
from workbench.core.what_if.base import Base, Sample, base_of
from workbench.core.what_if.costs.batch_costs import costs_at_batch
from workbench.core.what_if.costs.graph_costs import costs_in
from workbench.core.what_if.faster import faster_costs, with_more_work
from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.core.what_if.scenario import GraphKey, SampleKey, Scenario
from workbench.core.what_if.scenario_candidate import plan_words, staged_as
from workbench.errors import PlanError

# Half of the interval of a predicted step time, as a share of it: of any setting, and what each
# kind of change adds. Over 13 models that know nothing of Workbench, 2 cores, the errors of one
# change are 6 to 13 % (root of the mean of squares), where measurements are sure to about 8 %.
_ALWAYS = 0.03
_STAGED, _FUSED, _DISPATCHED, _RESIZED = 0.08, 0.10, 0.10, 0.10
# Where work goes, the rest of the step has caches, memory and cores for itself: with a share of the
# step gone, what is left may be as many times as fast as traced as 1.6 times this share, and 1.
# Measured on programs with one planted fault each, on three days: 1.0 to 1.7 where 0.4 to 0.9 are
# gone, and 1.7 to 2.4 where it was the dense gradient of a table.
_FREER = 1.6
# What a cost model gives of what a perfect order would: the slope over 13 models that know nothing
# of Workbench, 2 cores, each beside TensorFlow's executor.
_OF_BEST_ORDER = 0.25
_NO_SAMPLE = "what its ops take is not known: no step of it was traced"
_NO_SIDE = "nothing in the graph may run ahead"
_STALE = "what stale lookups give is not predicted; measure them beside the exact ones with compare"
_ON_A_GPU = (
    "steps of the trace ran ops on a GPU, and a trace has the times in which they were launched, "
    "not those of their kernels; measure settings there with wb.compare"
)
_OF_A_CLUSTER = (
    "the trace is of a cluster, and what is simulated are the steps of one machine; measure "
    "settings there with workbench cluster"
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class KnownGraph:
    """A graph that the program builds.

    Attributes:
      boundary: the graph, and what may run ahead in it; None where there is no such graph.
      samples: a few steps of it, by what decides how long its ops take, where that isn't as in the
        trace; without stages.
      problem: why there is no graph, or nothing of it may run ahead: a clause.
    """

    boundary: Boundary | None = None
    samples: Mapping[SampleKey, Sample] = dataclasses.field(default_factory=dict)
    problem: str = ""


def what_if(
    trace: Trace,
    traced: Scenario,
    graphs: Mapping[GraphKey, KnownGraph],
    scenarios: Iterable[Scenario],
) -> Predictions:
    """Predicts the step time of other settings from one trace.

    Args:
      trace, traced, graphs: as of `predictor`.
      scenarios: what to predict.

    Returns:
      The predictions, the traced setting among them. Where the replay of the trace does not hold,
      intervals are wider by as much as it is off, and what changes the ops whose times do not fit
      is withheld. Where it is far off, everything is.
    """
    return predictor(trace, traced, graphs).predictions(scenarios)


def predictor(trace: Trace, traced: Scenario, graphs: Mapping[GraphKey, KnownGraph]) -> Predictor:
    """What one trace says of a program, from which one setting after the other can be predicted.

    Args:
      trace: of warm steps of the program, with untraced steps noted in it.
      traced: the setting that it was taken in.
      graphs: what the program builds, for the traced setting and for each other one.
    """
    blank = Predictor(title=trace.meta.title, traced=traced, graphs=graphs)
    if trace.meta.task:
        return dataclasses.replace(blank, problem=_OF_A_CLUSTER)
    if trace.on_a_gpu:
        return dataclasses.replace(blank, problem=_ON_A_GPU)
    known = graphs[traced.graph]
    if known.boundary is None:
        return dataclasses.replace(blank, problem=known.problem)
    base = base_of(trace, known.boundary.view, dispatch_of(traced.optimizations.executor))
    return dataclasses.replace(blank, base=base, problem=base.problem)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Predictor:
    """What one trace says of a program; a setting more is predicted in milliseconds.

    Answers are kept, and so is what was worked out on the way to them.

    Attributes:
      title: of the trace.
      traced: the setting that it was taken in.
      graphs: what the program builds.
      base: what the trace says of its graph; None where it says nothing.
      problem: why nothing at all is predicted, a sentence; "" where something is.
    """

    title: str
    traced: Scenario
    graphs: Mapping[GraphKey, KnownGraph]
    base: Base | None = None
    problem: str = ""

    @property
    def replay(self) -> Replay | None:
        """Whether the simulation holds for the trace; None where that cannot be known."""
        return self.base.replay if self.base else None

    @property
    def holds(self) -> bool:
        """Whether something is predicted, from a trace whose replay holds."""
        return not self.problem and self.base is not None and self.base.holds

    def predictions(self, scenarios: Iterable[Scenario]) -> Predictions:
        """What is predicted of these settings and of the traced one, the fastest first."""
        settings = dict.fromkeys([self.traced, *scenarios])
        answers = [self.answer(scenario) for scenario in settings]
        predicted = [answer for answer in answers if isinstance(answer, Predicted)]
        return Predictions(
            title=self.title,
            traced=self.traced,
            replay=self.replay,
            predicted=tuple(sorted(predicted, key=lambda each: -each.ratio)),
            withheld=tuple(answer for answer in answers if isinstance(answer, Withheld)),
        )

    def answer(self, scenario: Scenario) -> Predicted | Withheld:
        """What is predicted of a setting, or why nothing is.

        Raises:
          OptionError: its graph has no node of the work that is to be faster.
        """
        if scenario not in self._answers:
            self._answers[scenario] = self._answer(scenario)
        return self._answers[scenario]

    @functools.cached_property
    def _answers(self) -> dict[Scenario, Predicted | Withheld]:
        return {}

    def _answer(self, scenario: Scenario) -> Predicted | Withheld:
        if self.problem:
            return Withheld(scenario=scenario, reason=self.problem)
        known = self.graphs.get(scenario.graph)
        if known is None or known.boundary is None:
            reason = known.problem if known else "the program's graph for it is not known"
            return Withheld(scenario=scenario, reason=reason)
        on = scenario.optimizations
        others = set(on.switched) ^ set(self.traced.optimizations.switched)
        if others:
            return Withheld(scenario=scenario, reason=_no_model(others))
        if (on.smart_stage or on.stage) and not known.boundary.sides:
            return Withheld(scenario=scenario, reason=known.problem or _NO_SIDE)
        if on.smart_stage and on.smart_stage.stale_lookups:
            return Withheld(scenario=scenario, reason=_STALE)
        base = self._base_of(scenario.sample)
        if base is None or base.problem:
            sampled = self.graphs.get(GraphKey(fused=scenario.graph.fused))
            unknown = sampled.problem if sampled and sampled.problem else _NO_SAMPLE
            return Withheld(scenario=scenario, reason=base.problem if base else unknown)
        costs = self._costs_of(base, scenario, known.boundary)
        cores = scenario.cores or costs.cores
        try:
            chosen = staged_as(known.boundary, costs, scenario, cores)
        except PlanError as error:
            return Withheld(scenario=scenario, reason=str(error).rstrip("."))
        changed = self._changed(base, scenario, known.boundary, chosen)
        if changed:
            return Withheld(scenario=scenario, reason=_in_doubt(changed))
        # Threads that take up ready ops may need longer for less work (Graham 1969). The order of a
        # step with more work is always there, too.
        steps = (
            _simulated(
                known.boundary,
                self._costs_of(base, dataclasses.replace(scenario, faster=changes), known.boundary),
                chosen,
                on.executor,
                cores,
            )
            for changes in with_more_work(scenario.faster)
        )
        found = min(steps, key=lambda each: each.step_ms)
        return self._predicted(base, scenario, found, chosen)

    def _base_of(self, key: SampleKey) -> Base | None:
        """What settings are predicted from whose ops take as long; kept."""
        if key == self.traced.sample:
            return self.base
        if key not in self._bases:
            found = self._sampled(key)
            if found is None and key.fused == self.traced.graph.fused:
                found = self.base
            elif found is None and key.serial:
                found = self._base_of(key.beside_others)
            self._bases[key] = found
        return self._bases[key]

    def _sampled(self, key: SampleKey) -> Base | None:
        """The same from a sample; None where there is none."""
        assert self.replay is not None
        known = self.graphs.get(GraphKey(fused=key.fused))
        sample = known.samples.get(key) if known else None
        if known is None or known.boundary is None or sample is None:
            return None
        beside_ns = sample.beside_ns or 1e6 * self.replay.untraced_ms
        dispatch = INLINE if key.serial else NORMAL
        return base_of(sample.trace, known.boundary.view, dispatch, beside_ns)

    @functools.cached_property
    def _bases(self) -> dict[SampleKey, Base | None]:
        return {}

    def _changed(
        self, base: Base, scenario: Scenario, boundary: Boundary, chosen: Candidate
    ) -> tuple[Doubt, ...]:
        """The ops whose times do not fit that a setting moves, or for which it has others."""
        if base.replay is None or scenario == self.traced:
            return ()
        view, step, ran = boundary.view, boundary.step, base.view
        moved = np.any([np.zeros(len(view), bool), *(s.moved for s in chosen.stages)], axis=0)

        def is_changed(name: str) -> bool:
            at, before = view.index.get(name, -1), ran.index.get(name, -1)
            if before < 0:
                return view is not ran or bool(chosen.stages)
            if at < 0 or not step[at] or view.ops[at] != ran.ops[before]:
                return True
            return bool(moved[at])

        # What varies from step to step varies in every setting: there the interval is wide enough.
        doubts = (each for each in base.replay.doubts if each.why != UNEVEN)
        return tuple(each for each in doubts if is_changed(each.node))

    def _costs_of(self, base: Base, scenario: Scenario, boundary: Boundary) -> Costs:
        """What the nodes cost under a setting; kept, with what was worked out from them."""
        executor = scenario.optimizations.executor
        threads, ratio = scenario.inter_op_threads, scenario.batch_ratio
        wanted = (scenario.graph, executor, threads, ratio, scenario.faster)
        if wanted not in self._kept:
            known_as = (scenario.graph, base)
            if known_as not in self._in_graphs:
                assert base.costs is not None
                self._in_graphs[known_as] = costs_in(
                    base.costs, base.view, boundary.view, boundary.step
                )
            costs = self._in_graphs[known_as].dispatched(dispatch_of(executor))
            if threads:
                costs = dataclasses.replace(costs, inter_op_threads=threads)
            costs = costs_at_batch(costs, boundary.view, ratio)
            self._kept[wanted] = faster_costs(costs, boundary.view, scenario.faster)
        return self._kept[wanted]

    @functools.cached_property
    def _in_graphs(self) -> dict[tuple[GraphKey, Base], Costs]:
        """What the nodes of each graph cost in the setting of a base."""
        return {}

    @functools.cached_property
    def _kept(self) -> dict[tuple[Hashable, ...], Costs]:
        return {}

    def _predicted(
        self, base: Base, scenario: Scenario, prediction: Prediction, chosen: Candidate
    ) -> Predicted:
        assert self.replay is not None and base.replay is not None
        measured_ms = self.replay.untraced_ms
        unchanged = scenario == self.traced
        # A machine that has another speed when a sample is taken has it for the step beside it.
        then_ms = measured_ms / base.step_ms
        step_ms = measured_ms if unchanged else prediction.step_ms * then_ms
        half = 0.0 if unchanged else _half_interval(self.traced, scenario)
        if not unchanged and not base.holds:
            half += abs(base.replay.error)
        gone = max(0.0, 1 - prediction.step_ms / base.step_ms) if scenario.faster else 0.0
        freer = 1 + _FREER * gone
        ratio = measured_ms / step_ms * scenario.batch_ratio
        return Predicted(
            scenario=scenario,
            step_ms=step_ms,
            low_ms=step_ms * (1 - half) / freer,
            high_ms=step_ms * (1 + half),
            ratio=ratio,
            low=ratio / (1 + half),
            high=ratio / (1 - half) * freer,
            limited_by=prediction.limited_by,
            bound_ms=prediction.bound_ms * then_ms,
            plan=plan_words(chosen),
        )


def _no_model(choices: Iterable[Choice]) -> str:
    named = ", ".join(sorted({each.toggle.title for each in choices}))
    return f"what {named} gives is not predicted; measure it with wb.compare"


def _in_doubt(changed: tuple[Doubt, ...]) -> str:
    return (
        f"it changes ops whose traced times do not fit: {named_ops(changed)}; measure it with "
        "wb.compare"
    )


def _simulated(
    boundary: Boundary,
    costs: Costs,
    chosen: Candidate,
    executor: str | None,
    cores: int,
) -> Prediction:
    """What a step takes on an executor."""
    found = predict(boundary, costs, chosen, cores=cores)
    if executor != ExecutorPolicy.COST_MODEL:
        return found
    stock = costs.dispatched(dispatch_of(None))
    return _tried(predict(boundary, stock, chosen, cores=cores), found)


def _tried(stock: Prediction, ordered: Prediction) -> Prediction:
    """What a cost model gives that keeps stock's order where that is the faster one.

    It orders by averages that it has learned, and threads take nodes up when they can.
    """
    if ordered.step_ms >= stock.step_ms:
        return stock
    gained_ms = _OF_BEST_ORDER * (stock.step_ms - ordered.step_ms)
    return dataclasses.replace(ordered, step_ms=stock.step_ms - gained_ms)


def _half_interval(traced: Scenario, scenario: Scenario) -> float:
    a, b = traced.optimizations, scenario.optimizations
    changes = (
        ((a.stage, a.smart_stage) != (b.stage, b.smart_stage), _STAGED),
        (a.fused_embeddings != b.fused_embeddings, _FUSED),
        (a.executor != b.executor, _DISPATCHED),
        (traced.inter_op_threads != scenario.inter_op_threads, _DISPATCHED),
        (traced.cores != scenario.cores, _RESIZED),
        (traced.batch_ratio != scenario.batch_ratio, _RESIZED),
        (traced.faster != scenario.faster, _RESIZED),
    )
    return math.hypot(_ALWAYS, *(share for changed, share in changes if changed))
