"""Outcome: from a race that is over to the best setting with its evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.trace.trace import Trace
from workbench.errors import WorkbenchError
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.comparison.running.traces import steps_to_trace
from workbench.experiments.comparison.summary import summary
from workbench.experiments.measurement.anytime_interval import FEWEST_VALUES
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.as_code import compare_code, program_code
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.search.best import Best, NotRaced, Raced
from workbench.experiments.search.racing.racer import Racer
from workbench.experiments.search.racing.racers import Racers
from workbench.experiments.search.search import Search
from workbench.experiments.search.winner import as_run, checked, no_number, traced_pair

# Contenders that are checked, one after the other, before the baseline is called the best.
_MOST_CHECKED = 3
_CHECK_SHARE, _TRACE_SHARE, _LEAST_S = 0.3, 0.7, 1.0
# Runners-up that are part of the comparison.
_COMPARED = 3
_OWN_ROUNDS = (
    "The settings of a search run in different rounds, each beside the baseline: compare ratios, "
    "not steps/s. Whether it trains the same is checked for the best setting alone."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Winner:
    """The fastest setting that trains the same.

    Attributes:
      label: its name.
      checks: of it, and of those that are faster and do not train the same.
      wrong: those, each with the reason.
      traces: of it and of the baseline, by label.
    """

    label: str
    checks: tuple[Equivalence, ...]
    wrong: dict[str, str]
    traces: dict[str, Trace]


def chosen_winner(
    program: AnyProgram,
    search: Search,
    racers: Racers,
    budget: TimeBudget,
    *,
    trace_steps: int,
    trace_s: float = 0.0,
    progress: Progress,
) -> Winner:
    """Checks the fastest settings in their order until one trains the same; traces that one.

    Args:
      program, search, racers: of a race that is over.
      budget: the time of the search.
      trace_steps: steps to trace at most.
      trace_s: what traces take at least; where less is left, nothing is traced.
      progress: shows what is done.

    Raises:
      RunError: the baseline failed.
    """
    race = search.race
    base = racers.racer(race.baseline)
    label, checks, wrong = race.baseline, [], {}
    for contender in _by_speed(search)[:_MOST_CHECKED]:
        if contender == race.baseline:
            break
        reason, equivalences = _check(program, search, racers, base, contender, budget, progress)
        checks += equivalences
        if not reason:
            label = contender
            break
        wrong[contender] = reason
    pair = [base] if label == race.baseline else [base, racers.racer(label)]
    racers.keep_only([racer.variant.label for racer in pair])
    steps, _ = steps_to_trace(
        trace_steps if budget.left_s() >= trace_s else 0,
        [racer.step_ns / 1e9 for racer in pair],
        budget.share_s(_TRACE_SHARE, _LEAST_S),
    )
    traces = traced_pair(program, pair, steps, progress)
    return Winner(label=label, checks=tuple(checks), wrong=wrong, traces=traces)


def _by_speed(search: Search) -> list[str]:
    """Settings that may be the best, the one that is expected to be first."""
    race, best = search.race, search.best
    measured = [each for each in race.entered if len(race.rates(each)[0]) >= FEWEST_VALUES]
    return sorted(measured, key=lambda each: (each != best, -race.mean_log(each)))


def _check(
    program: AnyProgram,
    search: Search,
    racers: Racers,
    base: Racer,
    label: str,
    budget: TimeBudget,
    progress: Progress,
) -> tuple[str, list[Equivalence]]:
    """Why a setting does not count as training the same, "" where it does; and the checks."""
    if not racers.runs(label):
        setting = search.contender(label).optimizations
        for refused in racers.enter([label], {label: setting}):
            return refused.reason, []
    seconds = budget.share_s(_CHECK_SHARE, _LEAST_S)
    try:
        checks = checked(program, base, racers.racer(label), seconds, progress)
    except WorkbenchError as error:
        return f"it could not be checked: {error}", []
    failed = [check for check in checks if not check.passed and not check.asked_otherwise]
    if failed:
        return f"it does not train the same: {failed[0].kind}: {failed[0].detail}", checks
    return next(filter(None, map(no_number, checks)), ""), checks


def best_of(
    program: AnyProgram,
    search: Search,
    racers: Racers,
    winner: Winner,
    *,
    notes: Sequence[str],
    seed: int,
    command: str | None,
    budget_s: float,
    took_s: float,
    memory_limit_bytes: int | None,
    memory_bytes: int,
) -> Best:
    """The result of a search that is over."""
    race, baseline = search.race, search.baseline.optimizations
    others = [
        _raced(search, racers, winner, label)
        for label in race.entered
        if label not in (race.baseline, winner.label) and race.rates(label)[0]
    ]
    runners_up = sorted(others, key=lambda raced: -raced.ratio)
    best = _raced(search, racers, winner, winner.label)
    reasons = search.left_out | {
        label: reason for label, reason in search.dropped.items() if not race.rates(label)[0]
    }
    said = [*notes, *_wrong_words(winner), *_unchecked_words(winner, race.baseline)]
    setting, near = best.optimizations, runners_up[:1]
    return Best(
        program=program.name,
        baseline=baseline,
        best=best,
        runners_up=tuple(runners_up),
        not_measured=tuple(
            NotRaced(
                optimizations=search.contender(label).optimizations,
                reason=reason,
                predicted=search.contender(label).predicted,
            )
            for label, reason in reasons.items()
        ),
        comparison=_comparison(
            program,
            search,
            racers,
            winner,
            runners_up,
            seed=seed,
            command=command,
            settings={"budget_s": budget_s, "took_s": round(took_s, 1)},
        ),
        code=compare_code(
            [setting] if setting != baseline else [raced.optimizations for raced in near], baseline
        ),
        in_program=program_code(setting, program),
        budget_s=budget_s,
        took_s=took_s,
        memory_limit_bytes=memory_limit_bytes,
        memory_bytes=memory_bytes,
        rounds=race.rounds,
        notes=tuple(said),
    )


def _raced(search: Search, racers: Racers, winner: Winner, label: str) -> Raced:
    contender = search.contender(label)
    is_baseline = label == search.race.baseline
    found = search.race.interval(label, search.race.baseline)
    is_winner = label == winner.label
    return Raced(
        optimizations=contender.optimizations,
        ratio=1.0 if is_baseline else found.value,
        low=1.0 if is_baseline else found.low,
        high=1.0 if is_baseline else found.high,
        rounds=len(search.race.rates(label)[0]),
        predicted=contender.predicted,
        memory_bytes=racers.memory.get(label, 0),
        dropped_s=None if is_winner else search.dropped_s.get(label),
        reason="" if is_winner else winner.wrong.get(label) or search.dropped.get(label, ""),
    )


def _wrong_words(winner: Winner) -> list[str]:
    return [
        f"{label[:1].upper()}{label[1:]} was not chosen: {reason}."
        for label, reason in winner.wrong.items()
    ]


def _unchecked_words(winner: Winner, baseline: str) -> list[str]:
    if winner.checks or winner.label == baseline:
        return []
    return [
        "Whether it trains the same could not be checked: the program gives neither a loss nor a "
        "fingerprint of its batches."
    ]


def _comparison(
    program: AnyProgram,
    search: Search,
    racers: Racers,
    winner: Winner,
    runners_up: Sequence[Raced],
    *,
    seed: int,
    command: str | None,
    settings: dict[str, float],
) -> Comparison:
    race = search.race
    base = racers.ever[race.baseline]
    near = [raced.label for raced in runners_up if raced.rounds > 1][:_COMPARED]
    labels = [winner.label, *near] if winner.label != race.baseline else near or [winner.label]
    runs = [
        as_run(
            race,
            base,
            racers.ever[label],
            [check for check in winner.checks if check.label == label],
            winner.traces,
        )
        for label in labels
    ]
    measured = [search.contender(label).optimizations for label in labels if label != race.baseline]
    return summary(
        program,
        runs,
        seed=seed,
        command=command or compare_code(measured, search.baseline.optimizations),
        settings=settings,
        notes=[_OWN_ROUNDS],
    )
