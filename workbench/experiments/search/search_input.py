"""SearchInput: what a search begins with, predicted from one trace of the baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.errors import WorkbenchError
from workbench.experiments.comparison.applicable_toggles import NO_LOOKUP, NO_STAGE, NO_STOCK_LOOKUP
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.search.contenders import Contender
from workbench.experiments.search.space import impossibility
from workbench.experiments.what_if.predict import predicted

# Predictions may take this share of the time that is left; the rest is for measuring.
_MOST_SHARE = 0.4
_NO_SAMPLES = (
    "Of fused ops nothing is predicted: the budget is too short to trace a few steps of each graph "
    "that has them."
)
# Seconds of a few traced steps of a graph, beside building it and opening its session.
_SAMPLE_S = 3.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchInput:
    """What a search begins with.

    Attributes:
      contenders: the settings that may be the best.
      without_effect: those that the program has no use for, each with the reason.
      notes: what a reader should know of the predictions, a sentence each.
    """

    contenders: tuple[Contender, ...]
    without_effect: dict[str, str]
    notes: tuple[str, ...]


def search_input_of(
    program: AnyProgram,
    settings: Sequence[Optimizations],
    baseline: Optimizations,
    traced: Callable[[], Trace],
    *,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    left_s: float,
    graphs_s: Callable[[int], float],
    progress: bool | Callable[[str], None],
) -> SearchInput:
    """Predicts what settings give against the baseline, as far as that is possible.

    Args:
      program: what is searched.
      settings: without the baseline.
      baseline: what is traced.
      traced: takes a trace of warm steps, where there is something to predict.
      stage, smart_stage: options of the combinations among the settings.
      left_s: seconds of the search that are left.
      graphs_s: seconds that a new process takes to describe a number of graphs, about.
      progress: as of `compare`.
    """
    impossible = {
        setting: reason
        for setting in settings
        if (reason := impossibility(program, setting)) is not None
    }
    possible = [setting for setting in settings if setting not in impossible]
    notes: list[str] = []
    # Nothing is predicted of other choices than the baseline's, whose steps are traced.
    alike = [setting for setting in possible if setting.switched == baseline.switched]
    scenarios = {setting: _scenario(setting, baseline) for setting in alike}
    before = Scenario(optimizations=_plain(baseline))

    def needed_s(samples_each: bool) -> float:
        graphs = {scenario.graph for scenario in (before, *scenarios.values())}
        fused = {key.fused for key in graphs} - {before.graph.fused}
        samples = {
            each.sample if samples_each else each.sample.beside_others
            for each in scenarios.values()
        }
        return graphs_s(len(graphs) + len(fused)) + _SAMPLE_S * len(samples - {before.sample})

    samples_each = needed_s(True) <= _MOST_SHARE * left_s
    if scenarios and needed_s(samples_each) > _MOST_SHARE * left_s:
        kept = {
            setting: scenario
            for setting, scenario in scenarios.items()
            if scenario.graph.fused == before.graph.fused
        }
        if len(kept) < len(scenarios):
            scenarios = kept
            notes.append(_NO_SAMPLES)
    if scenarios and (seconds := needed_s(samples_each)) > _MOST_SHARE * left_s:
        notes = [_too_long(seconds, left_s)]
        scenarios = {}
    predictions: Predictions | None = None
    if scenarios:
        try:
            predictions = predicted(
                traced(),
                program,
                list(scenarios.values()),
                stage,
                smart_stage,
                traced=before.optimizations,
                samples_each=samples_each,
                progress=progress,
            )
        except WorkbenchError as error:
            notes.append(f"Nothing is predicted: {error}.")
    return _seed(settings, scenarios, impossible, predictions, notes)


def _seed(
    settings: Sequence[Optimizations],
    scenarios: dict[Optimizations, Scenario],
    impossible: dict[Optimizations, str],
    predictions: Predictions | None,
    notes: list[str],
) -> SearchInput:
    by_scenario = (
        {prediction.scenario: prediction for prediction in predictions.predicted}
        if predictions
        else {}
    )
    withheld = (
        {refused.scenario: refused.reason for refused in predictions.withheld}
        if predictions
        else {}
    )
    if predictions and not predictions.predicted and predictions.withheld:
        notes.append(f"Nothing is predicted: {predictions.withheld[0].reason}.")
    without_effect = {setting.label(in_full=True): reason for setting, reason in impossible.items()}
    without_effect |= {
        setting.label(in_full=True): reason
        for setting, scenario in scenarios.items()
        if (reason := withheld.get(scenario)) in (NO_STAGE, NO_LOOKUP, NO_STOCK_LOOKUP)
    }
    contenders = []
    for setting in settings:
        scenario = scenarios.get(setting)
        prediction = by_scenario.get(scenario) if scenario else None
        contenders.append(Contender(optimizations=setting, predicted=prediction))
    return SearchInput(
        contenders=tuple(contenders), without_effect=without_effect, notes=tuple(notes)
    )


def _too_long(needed_s: float, left_s: float) -> str:
    return (
        f"Nothing is predicted: building the graphs for it would take about {needed_s:.0f}\u00a0s "
        f"of the {left_s:.0f}\u00a0s that were left, so they were spent on measuring."
    )


def _scenario(setting: Optimizations, baseline: Optimizations) -> Scenario:
    """What differs from the traced setting."""
    threads = setting.inter_op_threads
    return scenario_of(
        dataclasses.replace(
            _plain(setting),
            inter_op_threads=None if threads == baseline.inter_op_threads else threads,
        )
    )


def _plain(setting: Optimizations) -> Optimizations:
    """The toggles of a setting."""
    return dataclasses.replace(
        setting, inter_op_threads=None, intra_op_threads=None, batch_size=None
    )
