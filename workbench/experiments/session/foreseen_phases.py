"""What runs of a session and predictions after them take: said first, then learned."""

from __future__ import annotations

from workbench.experiments.comparison.wait import times_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import (
    BATCHES,
    BUILD,
    CHECK,
    COSTS,
    GRAPHS,
    IDS,
    PLAN,
    PREDICT,
    SAMPLE,
    START,
    TRACE,
    WARM_UP,
    Expected,
)
from workbench.experiments.program.function_program import AnyProgram

# Seconds where no run before has told.
_USUAL_S = {GRAPHS: 12.0, IDS: 3.0, COSTS: 15.0, PREDICT: 3.0}
_SETTING = "predictions"
# Of a comparison, but the blocks, which take what these leave.
_COMPARING = (START, BUILD, SAMPLE, PLAN, CHECK, WARM_UP, BATCHES, TRACE)


def phases_of_predictions(program: AnyProgram, *, known: bool) -> tuple[Expected, ...]:
    """What comes after a comparison.

    Args:
      program: what is run.
      known: whether its graphs are known already; then predictions are made within the budget of
        the run, else after it.
    """
    times = times_of(program)
    names = (PREDICT,) if known else tuple(_USUAL_S)
    took = {name: times.seconds(name, _SETTING) for name in names}
    seconds = {name: _USUAL_S[name] if each is None else each for name, each in took.items()}
    return tuple(
        Expected(name=name, seconds=each, later=not known) for name, each in seconds.items()
    )


def seconds_of_predictions(program: AnyProgram, *, known: bool) -> float:
    """Seconds of all of that; the arguments are those of `phases_of_predictions`."""
    return sum(phase.seconds for phase in phases_of_predictions(program, known=known))


def first_wait(program: AnyProgram, *, budget_s: float, trace_steps: int) -> tuple[float, bool]:
    """What the first run of a session takes in all.

    Args:
      program: what is run.
      budget_s, trace_steps: of the session; 0 steps mean that nothing is predicted after it.

    Returns:
      Seconds, about, and whether runs of the program on this machine have told.
    """
    took = [times_of(program, is_quiet=quiet) for quiet in (True, False)]
    times = next((each for each in took if each.seconds(START, "") is not None), took[0])
    phases = [times.seconds(name, "") for name in _COMPARING]
    later_s = seconds_of_predictions(program, known=False) if trace_steps else 0.0
    return max(budget_s, sum(filter(None, phases))) + later_s, phases[0] is not None


def learn_phases_of_predictions(program: AnyProgram, progress: Progress) -> None:
    """Keeps what they took, once all are over, where the machine was quiet."""
    schedule = progress.schedule
    if schedule is None or progress.is_busy:
        return
    schedule.end()
    took = {name: each for name, each in schedule.durations().items() if name in _USUAL_S}
    if GRAPHS in took:
        took = {**dict.fromkeys(_USUAL_S, 0.0), **took}
    times_of(program).learn(_SETTING, took)
