"""compare(): one program, its toggles on and off, measured side by side → Comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError
from workbench.experiments.comparison.applicable_toggles import without_effect
from workbench.experiments.comparison.environment import environment, usable_cores
from workbench.experiments.comparison.interleaved_run import TakenTurns, take_turns, traced
from workbench.experiments.comparison.open_sessions import open_sessions
from workbench.experiments.comparison.process_groups import (
    free_bytes,
    groups_that_fit,
    largest_child_bytes,
)
from workbench.experiments.comparison.results import Comparison, Ratio, Variant
from workbench.experiments.measurement.blocks import Measured
from workbench.experiments.measurement.bounds import bounds_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import mean_interval, ratio_interval, verdict
from workbench.experiments.measurement.time_budget import TimeBudget, expected_words
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_program,
    usual_toggles,
)
from workbench.experiments.program.toggles import every_toggle
from workbench.experiments.program.variant import LEARNING, Setting, settings_of
from workbench.experiments.program.variant import TOGGLES as TOGGLES
from workbench.experiments.worker.messages import RunBlock
from workbench.experiments.worker.process import started_workers


def compare(
    program: AnyProgram,
    toggles: Sequence[str] | None = None,
    *,
    all: bool = False,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    budget_s: float = 60.0,
    trace_steps: int = 30,
    step_stats: bool = False,
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
        lookups fused; "inline_executor" and "cost_model_executor", its session on that executor;
        and several joined by "+", such as "stage+smart_stage", a plan for the program with its own
        stage. None means "stage" and "smart_stage".
      all: in place of toggles, measures every toggle alone, and together those that suit each
        other. Those that the program has no use for are left out, and a note says why. Where the
        memory is too small for all at the same time, they take turns in groups, each beside the
        baseline, and a note says so.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      budget_s: seconds for the whole call: starting, checking, warming up, blocks and traces are
        fitted into it. Starting the child processes and building their graphs takes what it
        takes (about 5 seconds of a core each, more for large graphs), and the other parts have a
        shortest form, so that a small budget, many variants or slow steps exceed it; what is to be
        expected is said first, and `settings["took_s"]` is what it was.
      trace_steps: steps to trace of each variant, and to plan a smart stage on, fewer where the
        budget is short; 0 traces nothing, so that the plan is the widest and nothing is predicted.
        A variant that runs on TensorFlow's own executor is traced on the normal one, which
        schedules alike and records its ops; untraced steps of the measured session before and
        after are noted in the trace.
      step_stats: traces the variants with TensorFlow's step stats instead, on the executor that
        they were measured on; they lengthen every step and op.
      equivalence_steps: steps whose losses are compared, fewer where the budget is short; 0
        compares neither losses nor batches.
      seed: of the bootstrap.
      command: how to run this again, for the report; None describes this call.
      progress: True shows lines on stderr, False none, a function is called with each.

    Returns:
      The Comparison; its baseline is the variant "off".

    Raises:
      OptionError: an unknown toggle, toggles beside `all`, a number out of range, or a toggle that
        the program ignores.
      PlanError: a smart stage finds no input, or several.
      RunError: a child died, or the program's own code failed; the message says where.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    require_program(program)
    wished = _wished(program, toggles, all)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    settings = settings_of(wished, *options)
    _require_at_least("trace_steps", trace_steps, 0)
    _require_at_least("equivalence_steps", equivalence_steps, 0)
    _require_session(program, step_stats)
    if not budget_s > 0:
        raise OptionError(f"budget_s is {budget_s!r}; expected seconds above 0")
    said = Progress(progress)
    budget = TimeBudget(budget_s)
    left_out: dict[str, str] = {}
    groups = [settings]
    try:
        said.phase(_expected(settings, all, budget_s, equivalence_steps))
        if all:
            left_out = without_effect(program, *options, said)
            settings = settings_of(every_toggle(left_out), *options)
            groups = groups_that_fit(settings, largest_child_bytes(), free_bytes())
        turns = [
            take_turns(
                program,
                group,
                budget_s=budget.left_s() * len(group) / sum(map(len, groups[number:])),
                trace_steps=trace_steps,
                step_stats=step_stats,
                equivalence_steps=equivalence_steps,
                progress=said,
            )
            for number, group in enumerate(groups)
        ]
    finally:
        said.end()
    ran = turns[0]
    planned = _merged(turns)
    return Comparison(
        program=program.name,
        variants=_noted(_variants(turns, seed), left_out, len(turns)),
        baseline=settings[0].label,
        ratios=tuple(_ratio(s, t.measured, seed) for t in turns for s in t.settings[1:]),
        equivalence=tuple(check for t in turns for check in t.checks),
        bounds=bounds_of(ran.settings, ran.measured, seed),
        environment=environment(ran.opened),
        command=command or _call(program, None if all else wished, stage, smart_stage, budget_s),
        settings={
            **program.settings,
            **_stage_settings(planned),
            "rounds": ran.plan.rounds,
            "steps_per_block": _by_label(turns, "steps"),
            "steps_dropped_per_block": _by_label(turns, "dropped"),
            "budget_s": budget_s,
            "took_s": round(budget.spent_s(), 1),
            "bootstrap_seed": seed,
        },
    )


def trace(
    program: AnyProgram,
    optimizations: Optimizations | None = None,
    *,
    steps: int = 30,
    warm_up_steps: int = 50,
    step_stats: bool = False,
    progress: bool | Callable[[str], None] = True,
) -> Trace:
    """Traces a few warm steps of one setting of a program, in a child process.

    They run on the normal executor, which records its ops, where the setting chooses none. Untraced
    steps before and after are noted in the trace as `meta.untraced`.

    Args:
      program: what is run.
      optimizations: what it is built with; None means without any.
      steps: how many to trace.
      warm_up_steps: how many to run before.
      step_stats: traces with TensorFlow's own step stats instead, on TensorFlow's own executor
        where the setting chooses none; they lengthen every step and op.
      progress: as of `compare`.

    Raises:
      OptionError: steps below 1, warm_up_steps below 0, or step_stats of a FunctionProgram, which
        has no session that returns them.
      RunError, KeyboardInterrupt: as `compare`.
    """
    require_program(program)
    _require_at_least("steps", steps, 1)
    _require_at_least("warm_up_steps", warm_up_steps, 0)
    _require_session(program, step_stats)
    setting = Setting(label="trace", optimizations=optimizations or Optimizations())
    said = Progress(progress)
    said.phase("Starting a child process")
    try:
        with started_workers([(setting.label, program)]) as workers:
            open_sessions(
                program,
                [setting],
                workers,
                sample_steps=steps,
                progress=said,
                recorded=not step_stats,
            )
            said.phase("Warming up")
            # A block fetches what traced steps fetch: an executor learns for each set of fetches.
            steps_before = max(warm_up_steps, setting.learning_steps)
            workers[0].call(RunBlock(session="main", steps=steps_before))
            said.phase(f"Tracing {steps} steps")
            return traced(workers[0], "main", steps, step_stats=step_stats)
    finally:
        said.end()


def _wished(
    program: AnyProgram, toggles: Sequence[str] | None, all_of_them: bool
) -> tuple[str, ...]:
    if all_of_them and toggles is not None:
        raise OptionError(
            f"all=True measures every toggle, and toggles is {toggles!r}; give one of the two"
        )
    if all_of_them:
        return every_toggle()
    if toggles is None:
        return usual_toggles(program)
    return (toggles,) if isinstance(toggles, str) else tuple(toggles)


def _expected(
    settings: Sequence[Setting], tries: bool, budget_s: float, equivalence_steps: int
) -> str:
    """How long it takes, in words: each variant builds its graph, and again to be compared."""
    graphs = len(settings) * (2 if equivalence_steps else 1)
    # What has an effect is tried in one more process, with three graphs.
    return expected_words(
        budget_s,
        processes=len(settings) + tries,
        graphs=graphs + 3 * tries,
        cores=usable_cores(),
    )


def _require_at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name} is {value!r}; expected an integer of at least {least}")


def _require_session(program: AnyProgram, step_stats: bool) -> None:
    if step_stats and isinstance(program, FunctionProgram):
        raise OptionError(
            f"program {program.name!r} is a FunctionProgram, and step_stats=True asks for "
            "TensorFlow's step stats, which only runs of a session return; leave it out: the steps "
            "are traced by the executor that runs them"
        )


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
        notes=setting.notes(),
    )


def _merged(turns: Sequence[TakenTurns]) -> list[Setting]:
    """All settings, the baseline once."""
    return [turns[0].settings[0], *(s for each in turns for s in each.settings[1:])]


def _by_label(turns: Sequence[TakenTurns], field: str) -> dict[str, int]:
    """A field of the plan of blocks; of what ran in several groups, that of the first."""
    return {
        label: count
        for each in reversed(turns)
        for label, count in zip(each.measured, getattr(each.plan, field), strict=True)
    }


def _variants(turns: Sequence[TakenTurns], seed: int) -> list[Variant]:
    ran = {s.label: each for each in reversed(turns) for s in each.settings}
    return [
        _variant(s, ran[s.label].measured[s.label], ran[s.label].traces, seed)
        for s in _merged(turns)
    ]


def _noted(variants: list[Variant], left_out: dict[str, str], groups: int) -> tuple[Variant, ...]:
    """The variants; how else they could have been measured is a note of the baseline."""
    said = [f"{toggle} was left out: {why}." for toggle, why in left_out.items()]
    if groups > 1:
        said.append(
            f"The memory is too small for all variants at the same time: they took turns in "
            f"{groups} groups, each beside a baseline of its own, which the ratios are to. Set "
            "ratios side by side, not steps/s."
        )
    baseline = dataclasses.replace(variants[0], notes=(*variants[0].notes, *said))
    return (baseline, *variants[1:])


def _ratio(setting: Setting, measured: dict[str, Measured], seed: int) -> Ratio:
    """To the baseline, which is the first that was measured."""
    baseline = next(iter(measured.values()))
    found = ratio_interval(measured[setting.label].rates, baseline.rates, seed)
    return Ratio(
        label=setting.label,
        ratio=found.value,
        low=found.low,
        high=found.high,
        verdict=verdict(found),
        predicted=setting.predicted,
    )


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
    if any(setting.learning_steps for setting in settings):
        said |= {
            "cost_model_executor.start_step": LEARNING.start_step,
            "cost_model_executor.stop_step": LEARNING.stop_step,
        }
    return said


def _call(
    program: AnyProgram,
    toggles: tuple[str, ...] | None,
    stage: StageOptions | None,
    smart_stage: SmartStageOptions | None,
    budget_s: float,
) -> str:
    what = "all=True" if toggles is None else repr(toggles)
    chosen = f", stage={stage!r}" if stage else ""
    chosen += f", smart_stage={smart_stage!r}" if smart_stage else ""
    return f"workbench.compare({program.name}, {what}{chosen}, budget_s={budget_s:g})"
