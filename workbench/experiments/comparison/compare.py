"""compare(): one program, its toggles on and off, measured side by side → Comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions, require_at_least
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError
from workbench.experiments.comparison.applicable_toggles import without_effect
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.comparison.running.interleaved_run import run_interleaved
from workbench.experiments.comparison.running.process_groups import groups_that_fit
from workbench.experiments.comparison.summary import summary
from workbench.experiments.comparison.wait import planned_wait
from workbench.experiments.measurement.amounts import require_seconds
from workbench.experiments.measurement.machine_load import machine_load, measuring
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.as_code import options_code, toggle_code
from workbench.experiments.program.builds import builds_code, builds_program
from workbench.experiments.program.configuration import configuration_of
from workbench.experiments.program.function_program import (
    AnyProgram,
    require_program,
    require_step_stats,
    untraced,
    usual_toggles,
)
from workbench.experiments.program.program import Build
from workbench.experiments.program.toggles import every_toggle, listed
from workbench.experiments.program.variant import (
    require_few_environments,
    variants_of,
)
from workbench.experiments.worker.warm_python import warm_python
from workbench.usable import free_bytes

# Of the budget, for the comparison itself where something comes after it.
_LEAST_SHARE = 0.5


def compare(
    program: AnyProgram | Mapping[str, Build],
    toggles: Sequence[str | Optimizations | Toggle] | None = None,
    *,
    all: bool = False,
    baseline: Optimizations | None = None,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    budget_s: float = 60.0,
    trace_steps: int = 30,
    step_stats: bool = False,
    equivalence_steps: int = 200,
    verify: bool = False,
    seed: int = 0,
    command: str | None = None,
    progress: bool | Callable[[str], None] = True,
    answer_limit_s: float | None = None,
    stop_when_clear: bool = False,
    samples: Mapping[Optimizations, Trace] | None = None,
) -> Comparison:
    """Runs a program without and with its optimizations, each in a child process of its own.

    A smart stage is planned on a short trace of the program without optimizations. Then losses and
    batches are compared, then throughput is measured in interleaved blocks with tracing off, then
    a few steps of each variant are traced.

    Args:
      program: what is run. Several build functions by name, such as
        {"old": build_a, "new": build_b}, are compared with each other, the first being the
        baseline.
      toggles: names of the optimizations to switch on, one variant each. None means "stage" and
        "smart_stage".
        - "stage": the user's own.
        - "smart_stage": a plan for the program without it.
        - "fused_v1", "fused_v2", "grouped": its embedding lookups fused.
        - "auto_fused": stock lookups, batch normalizations and interactions of vectors of its
          finished graph fused.
        - "inline_executor", "cost_model_executor": its session on that executor.
        - Several joined by "+", such as "stage+smart_stage", a plan for the program with its own
          stage.
        - "name=choice": a choice of TensorFlow's own toggles, see docs/toggles.md.
        - Settings, as `Optimizations`.
        - Toggles of your own, as `Toggle`: each choice but the first is a variant. The program
          reads it as `optimizations["name"]`.
      all: in place of toggles, measures every toggle alone, and together those that suit each
        other. Those that the program has no use for are left out, and a note says why. Where the
        memory is too small for all at the same time, they are measured in groups, each beside the
        baseline. A note says so.
      baseline: the setting that the others are compared with; None means all off. With it, no
        toggle at all measures it alone.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      budget_s: seconds for the whole call: starting, checking, warming up, blocks and traces are
        fitted into it. Starting the child processes and building their graphs takes what it takes:
        about 5 seconds of a core each, more for large graphs. The other parts have a shortest form.
        So a small budget, many variants or slow steps exceed it. What is to be expected is said
        first, and `settings["took_s"]` is what it was.
      trace_steps: steps to trace of each variant, and to plan a smart stage on, fewer where the
        budget is short. 0 traces nothing, so that the plan is the widest and nothing is predicted.
        A variant that runs on TensorFlow's own executor is traced on the normal one, which
        schedules alike and records its ops. Untraced steps of the measured session before and after
        are noted in the trace.
      step_stats: traces the variants with TensorFlow's step stats instead, on the executor that
        they were measured on; they lengthen every step and op.
      equivalence_steps: steps whose losses are compared, fewer where the budget is short; 0
        compares neither losses nor batches.
      verify: on one batch compares each part that is fused in a finished graph with the graph's own
        nodes: values, gradients, variables. It takes seconds for each variant with "auto_fused",
        and for that time three times the memory of its variables; see `FusionPlan.verify`.
      seed: of the bootstrap.
      command: how to run this again, for the report; None describes this call.
      progress: True shows lines on stderr, False none, a function is called with each.
      answer_limit_s: seconds after which a choice of a toggle of your own counts as hanging, when
        it builds the program or runs steps. None takes five times what the slowest other variant
        took for an answer, at least 30 seconds, and at least the budget.
      stop_when_clear: whether the blocks end as soon as each ratio is clear: above 1, below 1, or
        within 1 % of 1. The intervals then hold at every look, and are wider.
      samples: traces of un-staged settings that were taken on this machine before, by their
        setting. Smart stages are planned on these, and no other trace is taken for it.

    A variant with a choice of a toggle that fails is left out, and a note says why. The others go
    on. Where the baseline alone would be left, the failure is raised.

    Returns:
      The Comparison; its baseline is the first variant.

    Raises:
      OptionError: an unknown toggle, toggles beside `all`, a number out of range, or a toggle that
        the program ignores.
      PlanError: a smart stage finds no input, or several.
      RunError: a child died, or the program's own code failed; the message says where.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    expression = ""
    if isinstance(program, Mapping):
        expression = builds_code(program)
        program, toggles = builds_program(program, toggles)
    require_program(program)
    toggles_to_run = _chosen_toggles(program, toggles, all)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    variants = variants_of(toggles_to_run, *options, baseline)
    require_few_environments(variants)
    require_at_least("trace_steps", trace_steps, 0)
    require_at_least("equivalence_steps", equivalence_steps, 0)
    require_step_stats(program, step_stats)
    require_seconds("budget_s", budget_s)
    if answer_limit_s is not None and not answer_limit_s > 0:
        raise OptionError(f"answer_limit_s is {answer_limit_s!r}; expected seconds above 0")
    shown = Progress.of(progress)
    budget = TimeBudget(max(budget_s - shown.reserved_s, _LEAST_SHARE * budget_s))
    left_out: dict[str, str] = {}
    groups = [variants]
    try:
        load = machine_load()
        shown.machine(load.words)
        wait = planned_wait(
            program,
            variants,
            budget_s=budget_s,
            trace_steps=trace_steps,
            equivalence_steps=equivalence_steps,
            samples=bool(samples),
            tries=all,
            load=load,
        )
        shown.plan(wait.phases, budget_s=budget_s)
        shown.phase(wait.words(shown.later_s))
        with measuring(program.name), warm_python() as warm:
            if all:
                left_out = without_effect(program, *options, shown)
                variants = variants_of(every_toggle(left_out), *options, baseline)
                groups = groups_that_fit(variants, warm.largest_child_bytes, free_bytes())
            runs = [
                run_interleaved(
                    program,
                    group,
                    budget_s=budget.left_s() * len(group) / sum(map(len, groups[number:])),
                    trace_steps=trace_steps,
                    step_stats=step_stats,
                    equivalence_steps=equivalence_steps,
                    verify=verify,
                    progress=shown,
                    answer_limit_s=answer_limit_s,
                    stop_when_clear=stop_when_clear,
                    samples=samples,
                    seed=seed,
                )
                for number, group in enumerate(groups)
            ]
        wait.learn(shown)
    finally:
        shown.end()
    # Of build functions the toggle between them is said by the functions.
    wished = None if all else toggles_to_run[1:] if expression else toggles_to_run
    configuration = configuration_of(
        program,
        [variant.optimizations for variant in variants],
        budget_s=budget_s,
        trace_steps=trace_steps,
        step_stats=step_stats,
        equivalence_steps=equivalence_steps,
        verify=verify,
        stop_when_clear=stop_when_clear,
        seed=seed,
    )
    return summary(
        program,
        runs,
        seed=seed,
        command=command
        or _call(expression or program.name, wished, stage, smart_stage, baseline, budget_s),
        settings={
            "budget_s": budget_s,
            "took_s": round(budget.spent_s(), 1),
            **({} if load.is_quiet else {"machine": load.past_words}),
            "configuration": configuration.to_json(),
        },
        notes=[
            *_left_out_words(left_out),
            *_group_words(len(groups)),
            *filter(None, [untraced(program) if trace_steps else ""]),
        ],
    )


def _chosen_toggles(
    program: AnyProgram,
    toggles: Sequence[str | Optimizations | Toggle] | None,
    all_of_them: bool,
) -> tuple[str | Optimizations | Toggle, ...]:
    if all_of_them and toggles is not None:
        raise OptionError(
            f"all=True measures every toggle, and toggles is {toggles!r}; give one of the two"
        )
    if all_of_them:
        return every_toggle()
    if toggles is None:
        return usual_toggles(program)
    return listed(toggles)


def _left_out_words(left_out: Mapping[str, str]) -> list[str]:
    return [f"{toggle} was left out: {reason}." for toggle, reason in left_out.items()]


def _group_words(groups: int) -> list[str]:
    if groups == 1:
        return []
    return [
        "The memory is too small for all variants at the same time: they were measured in "
        f"{groups} groups, each beside a baseline of its own, which the ratios are to. Compare "
        "ratios, not steps/s, across groups."
    ]


def _call(
    program: str,
    toggles: tuple[str | Optimizations | Toggle, ...] | None,
    stage: StageOptions | None,
    smart_stage: SmartStageOptions | None,
    baseline: Optimizations | None,
    budget_s: float,
) -> str:
    what = "all=True" if toggles is None else f"[{', '.join(map(_code, toggles))}]"
    named = {"stage": stage, "smart_stage": smart_stage, "baseline": baseline}
    chosen = "".join(f", {name}={_code(value)}" for name, value in named.items() if value)
    # What is compared with each other is there already where build functions are given by name.
    given = [program] if program.startswith("{") and toggles == () else [program, what]
    return f"wb.compare({', '.join(given)}{chosen}, budget_s={budget_s:g})"


def _code(given: str | Optimizations | StageOptions | SmartStageOptions | Toggle) -> str:
    if isinstance(given, str):
        return repr(given)
    return toggle_code(given) if isinstance(given, Toggle) else options_code(given)
