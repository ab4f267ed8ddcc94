"""What predicting the settings of a session takes, after its runs: said first, then learned."""

from __future__ import annotations

from workbench.experiments.comparison.wait import times_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import COSTS, GRAPHS, IDS, PREDICT, Expected
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.what_if.fused_calibration import costs_are_known

# Seconds where no run before has told.
_USUAL_S = {GRAPHS: 12.0, IDS: 3.0, COSTS: 1.0, PREDICT: 3.0}
# Of measuring what fused ops cost, once for a machine.
_CALIBRATION_S = 60.0
_SETTING = "predictions"


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
    # Of a program without lookups nothing is measured.
    if COSTS in seconds and took[COSTS] != 0.0 and not costs_are_known():
        seconds[COSTS] = _CALIBRATION_S
    return tuple(
        Expected(name=name, seconds=each, later=not known) for name, each in seconds.items()
    )


def seconds_of_predictions(program: AnyProgram, *, known: bool) -> float:
    """Seconds of all of that; the arguments are those of `phases_of_predictions`."""
    return sum(phase.seconds for phase in phases_of_predictions(program, known=known))


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
