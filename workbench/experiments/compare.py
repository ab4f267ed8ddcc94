"""compare(): one program, its toggles on and off, measured side by side → Comparison."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.core.trace import Trace, load_trace
from workbench.errors import OptionError
from workbench.experiments.blocks import Candidate, Measured, run_blocks
from workbench.experiments.environment import environment
from workbench.experiments.equivalence import Equivalence
from workbench.experiments.measure import (
    Interval,
    mean_interval,
    ratio_interval,
    verdict,
)
from workbench.experiments.opening import open_sessions
from workbench.experiments.program import Program
from workbench.experiments.progress import Progress
from workbench.experiments.results import (
    Bound as Bound,
)
from workbench.experiments.results import (
    Comparison as Comparison,
)
from workbench.experiments.results import (
    Ratio as Ratio,
)
from workbench.experiments.results import (
    Variant as Variant,
)
from workbench.experiments.results import (
    load_comparison as load_comparison,
)
from workbench.experiments.same_training import compare_batches, compare_losses
from workbench.experiments.setting import TOGGLES as TOGGLES
from workbench.experiments.setting import Setting, settings_of
from workbench.experiments.worker import Worker, started_workers
from workbench.experiments.worker_session import Opened

# A part may prefetch a little to hide what a session run costs.
_PART_AHEAD = 2
_INPUT, _COMPUTE = "input alone", "compute alone"


def compare(
    program: Program,
    toggles: Sequence[str] = TOGGLES,
    *,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    budget_s: float = 30.0,
    trace_steps: int = 30,
    equivalence_steps: int = 200,
    seed: int = 0,
    command: str | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Comparison:
    """Runs a program without and with its optimizations, each in a child process of its own.

    A smart stage is planned on a short trace of the program without optimizations. Then losses and
    batches are compared, then throughput is measured in interleaved blocks with tracing off, then
    a few steps of each variant are traced.

    Args:
      program: what is run.
      toggles: names of the optimizations to switch on, one variant each: "stage", the user's own;
        "smart_stage", a plan for the program without it; "fused_v1" and "fused_v2", its embedding
        lookups fused; and several joined by "+", such as "stage+smart_stage", a plan for the
        program with its own stage.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      budget_s: seconds of measuring; starting, checking and tracing come on top.
      trace_steps: steps to trace of each variant, and to plan a smart stage on; 0 traces nothing,
        so that the plan is the widest and nothing is predicted.
      equivalence_steps: steps whose losses are compared; 0 compares neither losses nor batches.
      seed: of the bootstrap.
      command: how to run this again, for the report; None describes this call.
      progress: True shows lines on stderr, False none, a function is called with each.

    Returns:
      The Comparison; its baseline is the variant "off".

    Raises:
      OptionError: an unknown toggle, a number out of range, or a toggle that the program ignores.
      PlanError: a smart stage finds no input, or several.
      RunError: a child died, or the program's own code failed; the message says where.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    toggles = (toggles,) if isinstance(toggles, str) else tuple(toggles)
    settings = settings_of(toggles, stage or StageOptions(), smart_stage or SmartStageOptions())
    _require_at_least("trace_steps", trace_steps, 0)
    _require_at_least("equivalence_steps", equivalence_steps, 0)
    if not budget_s > 0:
        raise OptionError(f"budget_s is {budget_s!r}; expected seconds above 0")
    said = Progress(progress)
    said.phase(f"Starting {len(settings)} child processes")
    try:
        with started_workers([(s.label, program) for s in settings]) as workers:
            opened, settings = open_sessions(
                program, settings, workers, sample_steps=trace_steps, progress=said
            )
            checks = _checks(program, settings, workers, opened, equivalence_steps, said)
            candidates = _candidates(program, settings, workers)
            plan, measured = run_blocks(candidates, budget_s=budget_s, progress=said)
            traces = _traces(settings, workers, trace_steps, said)
    finally:
        said.end()
    return Comparison(
        program=program.name,
        variants=tuple(_variant(s, measured[s.label], traces, seed) for s in settings),
        baseline=settings[0].label,
        ratios=tuple(_ratio(s, measured, settings[0].label, seed) for s in settings[1:]),
        equivalence=tuple(checks),
        bounds=_bounds(settings, measured, seed),
        environment=environment(opened),
        command=command or _call(program, toggles, stage, smart_stage, budget_s),
        settings={
            **program.settings,
            **_stage_settings(settings),
            "rounds": plan.rounds,
            "steps_per_block": dict(zip(measured, plan.steps, strict=True)),
            "steps_dropped_per_block": dict(zip(measured, plan.dropped, strict=True)),
            "budget_s": budget_s,
            "bootstrap_seed": seed,
        },
    )


def trace(
    program: Program,
    optimizations: Optimizations | None = None,
    *,
    steps: int = 30,
    warm_up_steps: int = 50,
    progress: bool | Callable[[str], None] = True,
) -> Trace:
    """Traces a few warm steps of one setting of a program, in a child process.

    Raises:
      OptionError: steps below 1, or warm_up_steps below 0.
      RunError, KeyboardInterrupt: as `compare`.
    """
    _require_at_least("steps", steps, 1)
    _require_at_least("warm_up_steps", warm_up_steps, 0)
    setting = Setting(label="trace", optimizations=optimizations or Optimizations())
    said = Progress(progress)
    said.phase("Starting a child process")
    try:
        with started_workers([(setting.label, program)]) as workers:
            open_sessions(program, [setting], workers, sample_steps=steps, progress=said)
            said.phase("Warming up")
            workers[0].call("run", session="main", steps=warm_up_steps)
            return _traces([setting], workers, steps, said)[setting.label]
    finally:
        said.end()


def _require_at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name} is {value!r}; expected an integer of at least {least}")


def _checks(
    program: Program,
    settings: Sequence[Setting],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
    said: Progress,
) -> list[Equivalence]:
    """Whether training stays the same; the first steps of the sessions to measure are compared."""
    checks: list[Equivalence] = []
    if steps:
        said.phase("Checking that training stays the same")
        if opened.has_loss:
            checks += compare_losses(settings, workers, steps)
        checks += compare_batches(program, settings, workers, opened, steps)
    return checks


def _candidates(
    program: Program, settings: Sequence[Setting], workers: Sequence[Worker]
) -> list[Candidate]:
    """The variants and, where the program has them, its parts for the bound."""
    candidates = [
        Candidate(label=setting.label, worker=worker, session="main", ahead=setting.ahead)
        for setting, worker in zip(settings, workers, strict=True)
    ]
    if program.build_input and program.build_compute:
        for label, part in ((_INPUT, "build_input"), (_COMPUTE, "build_compute")):
            # In the child of the baseline: a part is no variant, and while it runs all else waits.
            workers[0].call("open", session=label, part=part, optimizations=Optimizations())
            candidates.append(
                Candidate(label=label, worker=workers[0], session=label, ahead=_PART_AHEAD)
            )
    return candidates


def _traces(
    settings: Sequence[Setting], workers: Sequence[Worker], steps: int, said: Progress
) -> dict[str, Trace]:
    if not steps:
        return {}
    said.phase(f"Tracing {steps} steps")
    traces = {}
    with tempfile.TemporaryDirectory(prefix="workbench-") as directory:
        for number, (setting, worker) in enumerate(zip(settings, workers, strict=True)):
            path = str(Path(directory) / f"{number}.parquet")
            worker.call("trace", session="main", steps=steps, path=path)
            traces[setting.label] = load_trace(path)
    return traces


def _variant(setting: Setting, measured: Measured, traces: dict[str, Trace], seed: int) -> Variant:
    rate = mean_interval(measured.rates, seed)
    return Variant(
        label=setting.label,
        steps_per_s=rate.value,
        low=rate.low,
        high=rate.high,
        block_steps_per_s=measured.rates,
        step_ms_median=measured.step_ns_median / 1e6,
        trace=traces.get(setting.label),
        plan=setting.plan,
        plan_view=setting.plan_view,
        notes=setting.notes(),
    )


def _ratio(setting: Setting, measured: dict[str, Measured], baseline: str, seed: int) -> Ratio:
    found = ratio_interval(measured[setting.label].rates, measured[baseline].rates, seed)
    return Ratio(
        label=setting.label,
        ratio=found.value,
        low=found.low,
        high=found.high,
        verdict=verdict(found),
        predicted=setting.predicted,
    )


def _bounds(
    settings: Sequence[Setting], measured: dict[str, Measured], seed: int
) -> tuple[Bound, ...]:
    """1 / max(T_input, T_compute), where both parts were measured."""
    if _INPUT not in measured:
        return ()
    parts = [mean_interval(measured[part].rates, seed).value for part in (_INPUT, _COMPUTE)]
    slower = (_INPUT, _COMPUTE)[int(np.argmin(parts))]
    reached = {
        setting.label: ratio_interval(measured[setting.label].rates, measured[slower].rates, seed)
        for setting in settings
    }
    shares = (f"{label} reaches {_share(share)}" for label, share in reached.items())
    detail = (
        f"T_input {_ms(parts[0])}, T_compute {_ms(parts[1])}: what overlapping the input alone can "
        f"reach, while a stage that also parses may exceed it; {', '.join(shares)}"
    )
    return (Bound(name="1 / max(T_input, T_compute)", steps_per_s=min(parts), detail=detail),)


def _ms(rate: float) -> str:
    return f"{1000 / rate:.3g}\u00a0ms"


def _share(of_bound: Interval) -> str:
    return f"{of_bound.value:.1%} ({of_bound.low:.1%}–{of_bound.high:.1%})".replace("%", "\u00a0%")


def _stage_settings(settings: Sequence[Setting]) -> dict[str, Any]:
    wishes = [setting.optimizations for setting in settings]
    said: dict[str, Any] = {}
    for stage in [wish.stage for wish in wishes if wish.stage][:1]:
        said |= {"stage.capacity": stage.capacity, "stage.num_threads": stage.num_threads}
    for smart in [wish.smart_stage for wish in wishes if wish.smart_stage][:1]:
        said |= {
            "smart_stage.capacity": smart.capacity or "chosen by the plan",
            "smart_stage.num_threads": smart.num_threads or "chosen by the plan",
            "smart_stage.reorder": smart.reorder,
        }
    return said


def _call(
    program: Program,
    toggles: tuple[str, ...],
    stage: StageOptions | None,
    smart_stage: SmartStageOptions | None,
    budget_s: float,
) -> str:
    chosen = f", stage={stage!r}" if stage else ""
    chosen += f", smart_stage={smart_stage!r}" if smart_stage else ""
    return f"workbench.compare({program.name}, {toggles!r}{chosen}, budget_s={budget_s:g})"
