"""measured_ceilings(): what each kind of work could give at most, found by leaving it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.core.what_if.ceilings import Ceiling, Ceilings, MeasuredStep, simulated_of
from workbench.core.what_if.faster import KINDS
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.stub import ONE_BATCH
from workbench.errors import OptionError, RunError, TraceError, UnsupportedError
from workbench.experiments.measurement.amounts import require_seconds
from workbench.experiments.measurement.blocks import (
    MeasuredBlocks,
    TimedSession,
    run_blocks,
    run_pilots,
)
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import mean_interval, ratio_interval
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_program,
)
from workbench.experiments.program.program import Program
from workbench.experiments.what_if.ceilings import ceilings
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, RunBlock, TraceSteps

_AS_IT_IS = "as it is"
# Steps whose executed ops are looked at, and of the trace that the simulation is made from.
_CHECKED_STEPS, _TRACED_STEPS = 2, 30
_PILOTS_SHARE, _LEAST_S = 0.2, 1.0
# Other work of a step that may be missing without saying anything: TensorFlow fuses and merges
# ops, and differently where a neighbor is gone.
_MAY_BE_LOST = 0.02


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Step:
    """An open session; `ops` is how many executed ops its step is without."""

    work: str
    ops: int = 0


def measured_ceilings(
    program: AnyProgram,
    trace: Trace | None = None,
    *,
    budget_s: float = 60.0,
    seed: int = 0,
    progress: bool | Callable[[str], None] = True,
) -> Ceilings:
    """Measures a step without each kind of work: the most that any change there could give.

    The kinds are those of `ceilings`. For each the program's graph is changed. What the rest of the
    step reads of that work lies ready in variables, with values of a real step. All other work goes
    on. Without "lookups" the tables get neither gradients nor updates. Without "dense" they are
    updated with a gradient that lies ready. That nothing else is missing is checked on the executed
    ops. All such steps work on one batch again and again, while the input goes on delivering
    others. So does the step that they are compared with.

    Steps run in one child process, without optimizations, in interleaved blocks.

    Args:
      program: what is run, a `Program`.
      trace: of the program, without optimizations, whose simulated ceilings are set beside; None
        takes one.
      budget_s: seconds for the whole call. Starting the process and building a graph for each kind
        take what they take, so that a small budget is exceeded.
      seed: of the bootstrap.
      progress: as of `compare`.

    Raises:
      OptionError: no program, a FunctionProgram, or a budget that is not above 0.
      UnsupportedError: the program's step cannot be run on one batch again and again: it builds a
        stage unasked, or its input delivers what cannot be held.
      RunError, KeyboardInterrupt: as `compare`.
    """
    require_program(program)
    if isinstance(program, FunctionProgram):
        raise OptionError(
            f"{program.name!r} is a FunctionProgram, whose graph no session runs, so its work "
            "cannot be left out; wb.ceilings(trace, program) simulates what that would give"
        )
    require_seconds("budget_s", budget_s)
    shown, budget = Progress(progress), TimeBudget(budget_s)
    try:
        if trace is None:
            simulated, problem = None, ""
        else:
            shown.phase("Simulating the ceilings of the trace")
            simulated, problem = _simulated(trace, program)
        with started_workers([(program.name, program)]) as workers:
            steps, withheld = _open_steps(workers[0], shown)
            names = [_AS_IT_IS, ONE_BATCH, *(step.work for step in steps)]
            sessions = [
                TimedSession(label=name, worker=workers[0], name=name, is_alone=False)
                for name in names
            ]
            pilots = run_pilots(
                sessions, budget_s=budget.share_s(_PILOTS_SHARE, _LEAST_S), progress=shown
            )
            plan, measured = run_blocks(
                sessions, pilots, budget_s=max(_LEAST_S, budget.left_s()), progress=shown
            )
            if trace is None:
                shown.phase(f"Tracing {_TRACED_STEPS} steps to simulate the same")
                simulated, problem = _simulated(_own_trace(workers[0]), None)
    finally:
        shown.end()
    by_work = [_ceiling(step, measured, simulated, seed) for step in steps]
    again = ratio_interval(measured[ONE_BATCH].rates, measured[_AS_IT_IS].rates, seed)
    return Ceilings(
        program=program.name,
        as_it_is=_measured(measured[_AS_IT_IS], seed),
        one_batch=_measured(measured[ONE_BATCH], seed),
        one_batch_ratio=again.value,
        one_batch_low=again.low,
        one_batch_high=again.high,
        kinds=tuple(sorted(by_work, key=lambda ceiling: -ceiling.ratio)),
        withheld=withheld,
        simulation_problem=problem,
        took_s=round(budget.spent_s(), 1),
        rounds=plan.rounds,
    )


def _open_steps(worker: Worker, shown: Progress) -> tuple[list[_Step], tuple[tuple[str, str], ...]]:
    """Opens a session for each step; the kinds of work that are left out, and what cannot be."""
    shown.phase("Building the graphs")
    worker.call(Open(session=_AS_IT_IS, optimizations=Optimizations()))
    worker.call(Open(session=ONE_BATCH, optimizations=Optimizations(), without=ONE_BATCH))
    everything = _executed(worker, ONE_BATCH)
    steps: list[_Step] = []
    withheld: list[tuple[str, str]] = []
    for work in KINDS:
        shown.phase(f"Building the graph without {work}")
        try:
            steps.append(_opened(worker, work, everything))
        except UnsupportedError as refusal:
            withheld.append((work, str(refusal)))
        except RunError as failure:
            withheld.append((work, f"a step without it fails: {str(failure).splitlines()[0]}"))
    return steps, tuple(withheld)


def _opened(worker: Worker, work: str, everything: dict[str, float]) -> _Step:
    """Opens the step without some work; only that work must be missing in what it executes.

    Args:
      everything: time of each op that a step with all work executes, by name.

    Raises:
      UnsupportedError: it cannot be left out, or something else is missing, too.
    """
    opened = worker.call(Open(session=work, optimizations=Optimizations(), without=work))
    executed = _executed(worker, work)
    still = sorted(executed.keys() & set(opened.left_out))
    rest = everything.keys() & set(opened.kept)
    lost = {name: everything[name] for name in rest - executed.keys()}
    rest_ns = sum(everything[name] for name in rest)
    if still or sum(lost.values()) > _MAY_BE_LOST * rest_ns:
        worker.call(Close(session=work))
        if still:
            raise UnsupportedError(
                f"a step without it still runs {len(still)} of its ops, such as {still[0]!r}, "
                "which a hook or another fetch of the program may ask for"
            )
        largest = max(lost, key=lost.__getitem__)
        raise UnsupportedError(
            f"a step without it lacks {100 * sum(lost.values()) / rest_ns:.0f} % of the other op "
            f"time, too, most of it {largest!r}"
        )
    return _Step(work=work, ops=len(everything.keys() & set(opened.left_out)))


def _executed(worker: Worker, session: str) -> dict[str, float]:
    """Time in ns of each op that a step of the session itself executes, by name."""
    worker.call(RunBlock(session=session, steps=_CHECKED_STEPS))
    found = worker.call(TraceSteps(session=session, steps=_CHECKED_STEPS, step_stats=True))
    times = found.events.groupby("node")["dur_ns"].sum()
    names = found.nodes["name"][times.index]
    return dict(zip(names.tolist(), times.tolist(), strict=True))


def _own_trace(worker: Worker) -> Trace:
    """A trace of the step as it is, on an executor that records which op was ready when."""
    worker.call(Open(session="traced", optimizations=Optimizations(), recorded=True))
    worker.call(RunBlock(session="traced", steps=WARM_UP_STEPS))
    return worker.call(TraceSteps(session="traced", steps=_TRACED_STEPS, beside=_AS_IT_IS))


def _simulated(trace: Trace, program: Program | None) -> tuple[Predictions | None, str]:
    """The simulated ceilings; without any, why."""
    try:
        found = ceilings(trace, program, progress=False)
    except TraceError as problem:
        return None, str(problem)
    reasons = dict.fromkeys(each.reason for each in found.withheld)
    return found, "" if len(found.predicted) > 1 else " ".join(reasons)


def _ceiling(
    step: _Step,
    measured: dict[str, MeasuredBlocks],
    simulated: Predictions | None,
    seed: int,
) -> Ceiling:
    ratio = ratio_interval(measured[step.work].rates, measured[ONE_BATCH].rates, seed)
    return Ceiling(
        work=step.work,
        step=_measured(measured[step.work], seed),
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        ops=step.ops,
        simulated=simulated_of(simulated, step.work),
    )


def _measured(blocks: MeasuredBlocks, seed: int) -> MeasuredStep:
    rate = mean_interval(blocks.rates, seed)
    return MeasuredStep(
        steps_per_s=rate.value,
        low=rate.low,
        high=rate.high,
        step_ms_median=blocks.step_ns_median / 1e6,
    )
