"""How much longer a traced step is than an untraced one, on the six models as they are traced.

Each round traces a block of steps on the normal executor between two halves of a block of untraced
ones, once on TensorFlow's own executor, which is what a comparison measures, and once on the normal
executor itself. The first ratio is what a reader of a timeline sees, the second is the tracer's own
part of it; between the two lies what the normal executor costs. All sessions live in one process.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.trace.metrics import step_metrics
from workbench.core.trace.trace import Trace
from workbench.experiments.measurement.statistics import Interval, ratio_interval
from workbench.experiments.program.program import Program
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import GetPlan, Open, RunBlock, TraceSteps
from workbench.models import MODELS

GOAL = 1.05
WARM_UP_STEPS = 30
# A step of DIEN's own batch takes a quarter of a second on 2 cores.
BATCHES = {"dien": 128}
ROWS = 50_000
VARIANTS = {
    "un-staged": Optimizations(),
    "stage": Optimizations(stage=StageOptions(capacity=2, num_threads=2)),
    "smart stage": Optimizations(
        smart_stage=SmartStageOptions(capacity=2, num_threads=2, reorder=True)
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inflation:
    """What tracing costs one variant of a model.

    Attributes:
      untraced_ms, traced_ms: medians over the rounds of the median step.
      seen: traced step over the untraced one on TensorFlow's executor.
      tracer: traced step over the untraced one on the same executor.
      after_ops: share of the traced runs that lies after their last op.
    """

    model: str
    variant: str
    untraced_ms: float
    traced_ms: float
    seen: Interval
    tracer: Interval
    after_ops: float


def inflations(
    models: Sequence[str], home: Path, *, rounds: int, steps: int
) -> Iterator[Inflation]:
    """Measures one variant of these models after the other; generated data is kept in `home`."""
    for name in models:
        model = MODELS[name]()
        path = home / f"{Path(model.file_name).stem}-{ROWS}{Path(model.file_name).suffix}"
        options = model.options(data=model.check(model.generate(path, rows=ROWS, seed=1)))
        batch = BATCHES.get(name, options.batch_size)
        program = model.program(dataclasses.replace(options, batch_size=batch))
        for variant, optimizations in VARIANTS.items():
            print(f"{name}, {variant}", file=sys.stderr, flush=True)
            yield inflation(name, variant, program, optimizations, rounds, steps)


def inflation(
    model: str,
    variant: str,
    program: Program,
    optimizations: Optimizations,
    rounds: int,
    steps: int,
) -> Inflation:
    """Measures one variant."""
    with started_workers([(variant, program)]) as (worker,):
        worker.call(Open(session="main", optimizations=optimizations))
        plan = None
        if optimizations.smart_stage:
            plan = worker.call(GetPlan(session="main")).plan
        worker.call(Open(session="traced", optimizations=optimizations, plan=plan, recorded=True))
        for session in ("main", "traced"):
            worker.call(RunBlock(session=session, steps=WARM_UP_STEPS))
        pairs: dict[str, list[Trace]] = {"main": [], "traced": []}
        for number in range(rounds):
            for beside in list(pairs)[:: -1 if number % 2 else 1]:
                pairs[beside].append(_traced(worker, beside, steps))
    seen, own = pairs["main"], pairs["traced"]
    return Inflation(
        model=model,
        variant=variant,
        untraced_ms=statistics.median(map(_untraced_ns, seen)) / 1e6,
        traced_ms=statistics.median(map(_traced_ns, seen)) / 1e6,
        seen=_ratio(seen),
        tracer=_ratio(own),
        after_ops=statistics.median(map(after_last_op, seen)),
    )


def table_lines(found: Iterable[Inflation]) -> Iterator[str]:
    """The figures as Markdown, with the goal; each line once its figures are there."""
    yield f"Traced over untraced step, goal {GOAL}: medians, 95 % intervals of paired blocks"
    yield ""
    yield (
        "| model | variant | untraced | traced | traced / untraced | of it the tracer | after the "
        "last op | goal |"
    )
    yield "|---|---|---:|---:|---|---|---:|---|"
    for each in found:
        yield (
            f"| {each.model} | {each.variant} | {each.untraced_ms:.2f} ms "
            f"| {each.traced_ms:.2f} ms | {_words(each.seen)} | {_words(each.tracer)} "
            f"| {each.after_ops:.1%} | {'reached' if each.seen.value <= GOAL else 'MISSED'} |"
        )


def after_last_op(trace: Trace) -> float:
    """Share of the time of all steps that lies after the last op of each."""
    steps = trace.steps().set_index("number")
    main = (trace.tracks["kind"] == "inter_op").to_numpy(bool)
    events = trace.events[main[trace.events["track"].to_numpy()]]
    last = (events["start_ns"] + events["dur_ns"]).groupby(events["step"]).max()
    after = (steps["end_ns"] - last.reindex(steps.index)).clip(lower=0)
    return float(after.sum() / (steps["end_ns"] - steps["start_ns"]).sum())


def _traced(worker: Worker, beside: str, steps: int) -> Trace:
    return worker.call(TraceSteps(session="traced", steps=steps, beside=beside))


def _traced_ns(trace: Trace) -> float:
    return float(step_metrics(trace).step_ns_median or 0)


def _untraced_ns(trace: Trace) -> float:
    untraced = trace.meta.untraced
    return float(untraced.run_ns or 0) if untraced else 0.0


def _ratio(traces: Sequence[Trace]) -> Interval:
    return ratio_interval([*map(_traced_ns, traces)], [*map(_untraced_ns, traces)], 0)


def _words(ratio: Interval) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f}–{ratio.high:.3f})"
