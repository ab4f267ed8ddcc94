"""find_best(): the fastest setting of a program, searched within a time and a memory budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions, require_at_least
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError
from workbench.experiments.comparison.running.open_sessions import sample_trace
from workbench.experiments.measurement.amounts import bytes_of, seconds_of
from workbench.experiments.measurement.machine_load import machine_load, measuring
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import GRAPHS, RACE, START
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import AnyProgram, require_program
from workbench.experiments.program.toggles import listed
from workbench.experiments.program.variant import environment_of
from workbench.experiments.search.best import Best
from workbench.experiments.search.contenders import Contender, refinements
from workbench.experiments.search.outcome import best_of, chosen_winner
from workbench.experiments.search.race_progress import RaceProgress
from workbench.experiments.search.racing.children import Children, children_of
from workbench.experiments.search.racing.racer import Racer
from workbench.experiments.search.racing.racers import Racers
from workbench.experiments.search.racing.run_search import run_search
from workbench.experiments.search.search import Search
from workbench.experiments.search.search_input import SearchInput, search_input_of
from workbench.experiments.search.search_wait import planned_search, untraced_notes
from workbench.experiments.search.space import impossibility, search_space
from workbench.experiments.search.winner import without_parts
from workbench.usable import free_bytes, usable_cores

# Of the free memory, for the parent and for others.
_FREE_SHARE = 0.9
# Steps of the baseline that are traced to predict from, and seconds for it, as a share.
_SEED_STEPS, _SEED_SHARE = 30, 0.06
# Started while the predictions are made, which use one core.
_AHEAD = 3
# Processes: of the baseline, of the best setting so far, of another one.
_SIDE_BY_SIDE = 3


def find_best(
    program: AnyProgram,
    *,
    budget: float | str = "2min",
    memory: float | str | None = None,
    toggles: Sequence[str | Optimizations | Toggle] | None = None,
    baseline: Optimizations | None = None,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    allow_another_training: bool = False,
    refine: bool = True,
    trace_steps: int = 20,
    seed: int = 0,
    command: str | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Best:
    """Searches the fastest setting of a program within a time and a memory budget.

    The baseline is traced and every setting predicted from it. Then they race. The most promising
    ones run blocks of steps beside the baseline and the best so far, each in a child process. A
    setting is out when its interval shows that it is slower than the best, or no more than 1 %
    faster. The next one takes its place. So does one that, by its prediction as corrected by what
    was measured, has become far likelier to be the fastest. Settings whose corrected prediction
    cannot reach the best are not run. Where nothing is predicted, each toggle alone comes first,
    then combinations of those that gave most. Once the best so far has run a few rounds, each
    choice of TensorFlow's toggles, and of your own, is tried on it. The best then varies the
    capacity of its stage and its inter-op threads, if there is time. Whether it trains the same is
    checked before it is named.

    Args:
      program: what is run.
      budget: time for all of it, as seconds or as in "2min". A first setting is measured in any
        case, so that a budget that is too short is exceeded.
      memory: what all processes may take together, as bytes or as in "8GB"; None takes what is
        free. It decides how many settings run at the same time.
      toggles: names as of `compare` of which all combinations are searched; several joined by "+",
        and settings as `Optimizations`, stand for themselves. A `Toggle` stands for its choices,
        which are tried one by one on the best setting. None means every toggle of Workbench's and
        TensorFlow's; toggles of your own alone come beside all these.
      baseline: what the others are compared with; None means all off.
      stage: options of the stage; None means the defaults.
      smart_stage: options of the smart stage; None means the defaults.
      allow_another_training: whether choices may be the best that train another model, such as
        those of toggles of your own that do not say otherwise.
      refine: whether capacities and threads of the best setting are varied, too.
      trace_steps: steps to trace of the baseline and of the best at the end; 0 traces nothing.
      seed: of the bootstrap.
      command: how to run this again, for the report; None measures the best and its runners-up.
      progress: as of `compare`.

    Returns:
      The best setting with its evidence, the runners-up, and what was not measured and why.

    Raises:
      OptionError: a budget or a memory that is none, an unknown toggle, one that trains another
        model unasked, nothing to search among, or too little memory for three processes side by
        side.
      RunError: the baseline failed; the message says where.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    require_program(program)
    budget_s = seconds_of(budget)
    limit = None if memory is None else bytes_of(memory)
    require_at_least("trace_steps", trace_steps, 0)
    options = (stage or StageOptions(), smart_stage or SmartStageOptions())
    given = None if toggles is None else listed(toggles)
    space = search_space(
        given,
        *options,
        baseline or Optimizations(),
        allow_another_training=allow_another_training,
    )
    first, settings = space.baseline, space.settings
    clock = TimeBudget(budget_s)
    shown = Progress.of(progress)
    program = without_parts(program)
    cores = usable_cores()
    try:
        load = machine_load()
        shown.machine(load.words)
        wait = planned_search(program, load, budget_s=budget_s, trace_steps=trace_steps)
        shown.plan(wait.phases, budget_s=budget_s)
        shown.phase(wait.words())
        bytes_of_all = limit or _FREE_SHARE * free_bytes()
        shown.begin(START)
        with (
            measuring(program.name),
            children_of(program, bytes_of_all, environment_of(first)) as children,
        ):
            racers = Racers(
                program,
                children,
                cores=cores,
                progress=shown,
                clock=clock,
            )
            base = racers.enter_baseline(first.label(in_full=True), first)
            _require_room(children, limit)
            seeded = _seeded(program, settings, racers, base, options, clock, shown)
            search = _search(first, seeded)
            ending = wait.ending(racers.open_s(2), base.step_ns / 1e9)
            shown.begin(RACE)
            run_search(
                search,
                racers,
                clock,
                reserve_s=ending.seconds,
                refine=lambda best: _refined(program, best, cores) if refine else (),
                neighbors=lambda best: space.neighbors(best, program),
                say=RaceProgress(shown),
            )
            children.end_idle()
            winner = chosen_winner(
                program,
                search,
                racers,
                clock,
                trace_steps=ending.trace_steps,
                trace_s=ending.trace_s,
                progress=shown,
            )
            memory_bytes = children.peak_bytes
        wait.learn(shown)
    finally:
        shown.end()
    return best_of(
        program,
        search,
        racers,
        winner,
        notes=[*seeded.notes, *space.notes, *untraced_notes(trace_steps, winner.traces)],
        seed=seed,
        command=command,
        budget_s=budget_s,
        took_s=clock.spent_s(),
        memory_limit_bytes=limit,
        memory_bytes=memory_bytes,
    )


def _seeded(
    program: AnyProgram,
    settings: Sequence[Optimizations],
    racers: Racers,
    base: Racer,
    options: tuple[StageOptions, SmartStageOptions],
    clock: TimeBudget,
    shown: Progress,
) -> SearchInput:
    """The contenders, predicted while the first children start."""
    baseline = base.variant.optimizations
    shown.begin(GRAPHS)

    def traced() -> Trace:
        shown.phase(f"Tracing {_SEED_STEPS} steps of {base.variant.label}")
        seconds = clock.share_s(_SEED_SHARE, least_s=1.0)
        trace = sample_trace(base.worker, baseline, _SEED_STEPS, seconds)
        racers.keep_sample(baseline, trace)
        racers.start_ahead(min(_AHEAD, len(settings)))
        return trace

    return search_input_of(
        program,
        settings,
        baseline,
        traced,
        stage=options[0],
        smart_stage=options[1],
        left_s=clock.left_s(),
        graphs_s=racers.graphs_s,
        progress=shown.phase,
    )


def _search(baseline: Optimizations, found: SearchInput) -> Search:
    search = Search(baseline, found.contenders)
    for label, reason in found.without_effect.items():
        search.leave_out(label, reason)
    return search


def _refined(program: AnyProgram, best: Optimizations, cores: int) -> list[Contender]:
    if best.is_all_off:
        return []
    return [
        Contender(optimizations=each, refusal=impossibility(program, each) or "")
        for each in refinements(best, cores)
    ]


def _require_room(children: Children, limit: int | None) -> None:
    """Requires that the best so far and another one fit beside the baseline.

    Raises:
      OptionError: it does not.
    """
    children.look()
    if limit is not None and _SIDE_BY_SIDE * children.each_bytes > limit:
        each, least = (math.ceil(n * children.each_bytes / 1e6) for n in (1, _SIDE_BY_SIDE))
        raise OptionError(
            f"memory is {limit / 1e6:.0f} MB, and one process of this program takes {each} MB; the "
            "baseline, the best setting so far and another one run side by side, so give at least "
            f"{least} MB"
        )
