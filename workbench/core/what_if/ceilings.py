"""Ceilings: the measured steps/s of a step without each kind of work, beside the simulated ones."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.what_if.faster import Faster
from workbench.core.what_if.predictions import Predicted, Predictions
from workbench.display import Displayed


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A step as blocks measured it.

    Attributes:
      steps_per_s, low, high: mean over blocks and its 95 % interval.
      step_ms_median: median time of a step.
    """

    steps_per_s: float
    low: float
    high: float
    step_ms_median: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ceiling:
    """A step without one kind of work.

    Attributes:
      work: the kind, one of `faster.KINDS`.
      step: the step without it.
      ratio, low, high: its steps/s over those of the step with all work on the same batch, from
        paired blocks, with the 95 % interval: the most that any change to this work could give.
      ops: executed ops of a step that were left out.
      simulated: the same from the replay of a trace; None where nothing is predicted.
    """

    work: str
    step: MeasuredStep
    ratio: float
    low: float
    high: float
    ops: int
    simulated: Predicted | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low > 1 or self.high < 1

    @property
    def error(self) -> float | None:
        """How much too high the simulated ratio is, as a share of the measured one."""
        return None if self.simulated is None else self.simulated.ratio / self.ratio - 1


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ceilings(Displayed):
    """The most that each kind of work of a program could give, measured.

    Attributes:
      program: its name.
      as_it_is: the step of the program.
      one_batch: the step with all its work, on one batch again and again. Every step without a kind
        of work runs like this, too. The ratios are to this step.
      one_batch_ratio, one_batch_low, one_batch_high: its steps/s over those of the step as it is.
      kinds: the kinds of work, the one that could give most first.
      withheld: (kind, reason) of those that could not be left out.
      simulation_problem: why nothing is simulated, a sentence; "" where something is.
      took_s: seconds that measuring took.
      rounds: blocks of each step.
    """

    program: str
    as_it_is: MeasuredStep
    one_batch: MeasuredStep
    one_batch_ratio: float
    one_batch_low: float
    one_batch_high: float
    kinds: tuple[Ceiling, ...]
    withheld: tuple[tuple[str, str], ...] = ()
    simulation_problem: str = ""
    took_s: float = 0.0
    rounds: int = 0

    def __repr__(self) -> str:
        return f"Ceilings({len(self.kinds)} kinds of work, {len(self.withheld)} withheld)"

    @property
    def most(self) -> Ceiling | None:
        """The kind of work that could give most; None where no interval lies above 1."""
        clear = [each for each in self.kinds if each.low > 1]
        return max(clear, key=lambda each: each.ratio, default=None)

    def of(self, work: str) -> Ceiling | None:
        """What was measured without this work; None where nothing was."""
        return next((each for each in self.kinds if each.work == work), None)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each step, by what it is without; of those withheld the reason alone."""
        columns = ["steps_per_s", "steps_per_s_low", "steps_per_s_high", "step_ms_median"]
        columns += ["ratio", "low", "high", "simulated", "simulated_low", "simulated_high"]
        columns += ["ops", "withheld"]
        rows: dict[str, list[float | str | None]] = {
            "as it is": [*_step(self.as_it_is), *([None] * 7), ""],
            "one batch": [*_step(self.one_batch), 1.0, 1.0, 1.0, *([None] * 3), 0, ""],
        }
        for each in self.kinds:
            found = each.simulated
            simulated = [found.ratio, found.low, found.high] if found else [None] * 3
            ratio = [each.ratio, each.low, each.high]
            row: list[float | str | None] = [*_step(each.step), *ratio, *simulated, each.ops, ""]
            rows[f"no {each.work}"] = row
        for work, reason in self.withheld:
            rows[f"no {work}"] = [*([None] * 11), reason]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("step")


def simulated_of(predictions: Predictions | None, work: str) -> Predicted | None:
    """What is predicted of a step without this work; None where nothing is."""
    label = (Faster(work=work),)
    predicted = predictions.predicted if predictions else ()
    return next((each for each in predicted if each.scenario.faster == label), None)


def _step(step: MeasuredStep) -> list[float]:
    return [step.steps_per_s, step.low, step.high, step.step_ms_median]
