"""Sessions of a program that never runs: comparisons are made up, graphs are tiny."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from tests.builders.comparisons import comparison, variant
from tests.builders.graphs import graph
from tests.builders.small_models import MODEL, STAGED
from tests.builders.traces import timed_trace
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.core.what_if.scenario import GraphKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.statistics import Interval, verdict
from workbench.experiments.program.program import Built, Program
from workbench.experiments.session.learned_graphs import LearnedGraphs

OFF = Optimizations()
STAGE = Optimizations(stage=StageOptions())
WIDE = Optimizations(stage=StageOptions(capacity=2, num_threads=2))
SMART = Optimizations(smart_stage=SmartStageOptions())
INLINE = Optimizations(executor=ExecutorPolicy.INLINE)
RATES = {OFF: 40.0, STAGE: 60.0, WIDE: 80.0, SMART: 70.0, INLINE: 30.0}
_STEP = [
    ("next", "IteratorGetNext", 10.0),
    ("parse", "DecodeCSV", 2.0),
    ("hash", "StringToHashBucketFast", 1.0),
    ("dense", "MatMul", 7.0),
    ("train", "AssignVariableOp", 0.5),
]


def build(optimizations: Optimizations) -> Built:
    return Built(train_op=None)


PROGRAM = Program(name="tiny", build=build, settings={"batch_size": 8})


def trace() -> Trace:
    """20.6 ms a step, of which the input waits 10 ms."""
    untraced = UntracedSteps(steps=60, step_ns=20_600_000, cpu_ns=10_600_000)
    return timed_trace(_STEP, title="tiny", untraced=untraced, source_cores=0.0)


def measured(wishes: Sequence[Optimizations], half: float = 0.02, **changes: Any) -> Comparison:
    """What `compare` would find of these settings, at RATES; intervals are ± `half`, as a share."""
    labels = [setting.label(in_full=True) for setting in wishes]
    rates = [RATES.get(setting, 50.0) for setting in wishes]
    values = {
        "program": PROGRAM.name,
        "variants": tuple(
            variant(label, rate, rate * half) for label, rate in zip(labels, rates, strict=True)
        ),
        "baseline": labels[0],
        "ratios": tuple(
            ratio(label, rate / rates[0], half)
            for label, rate in zip(labels[1:], rates[1:], strict=True)
        ),
        "equivalence": (),
        "bounds": (),
    }
    return comparison(**{**values, **changes})


def ratio(label: str, value: float, half: float) -> Ratio:
    """Its interval is symmetric in logarithms."""
    found = Interval(value=value, low=value / math.exp(half), high=value * math.exp(half))
    return Ratio(label=label, ratio=value, low=found.low, high=found.high, verdict=verdict(found))


def with_trace(found: Comparison, of_baseline: Trace | None = None) -> Comparison:
    """The same with a trace of the baseline."""
    first, *others = found.variants
    traced = dataclasses.replace(first, trace=of_baseline or trace())
    return dataclasses.replace(found, variants=(traced, *others))


def fake_compare(calls: list[dict[str, Any]], *, traced: bool = False) -> Callable[..., Comparison]:
    """In the place of `compare`; notes what it was asked for."""

    def compare(program: Program, toggles: Sequence[Optimizations], **options: Any) -> Comparison:
        calls.append({"program": program, "toggles": list(toggles), **options})
        if callable(options["progress"]):
            options["progress"]("Measuring")
        found = measured([options["baseline"], *toggles], program=program.name)
        return with_trace(found) if traced else found

    return compare


def boundary(text: str) -> Boundary:
    return boundary_of(graph(text, shared={"put": "b", "take": "b"}), targets=["train"])


def learned() -> LearnedGraphs:
    """Graphs without lookups."""
    nothing = KnownGraph(problem="the program builds no embedding lookup through Workbench")
    graphs = {
        GraphKey(staged=staged, fused=fused): nothing
        for staged in (False, True)
        for fused in ("v1", "v2")
    }
    graphs[GraphKey()] = KnownGraph(boundary=boundary(MODEL))
    graphs[GraphKey(staged=True)] = KnownGraph(boundary=boundary(STAGED))
    return LearnedGraphs(graphs=graphs)
