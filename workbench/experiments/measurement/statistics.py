"""How long a step takes, honestly: interleaved blocks, paired ratios, intervals, a verdict.

Pure functions on numbers; nothing here runs a step. Times are int nanoseconds, rates steps/s.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from workbench.core.analysis.mean_interval import NORMAL_95, student_95
from workbench.errors import OptionError
from workbench.experiments.worker.steps.first_steps import settling_of

Verdict = Literal["faster", "slower", "no clear difference"]

# Of a block: fewest and most steps that count, and seconds of them that are long enough. What slows
# a machine down is as large from one tenth of a second to the next as from one second to the next:
# two blocks in a row differ by a tenth, whether they last 0.02 or 0.8 seconds. So precision comes
# from the number of blocks.
_FEWEST_STEPS, _MOST_STEPS, _BLOCK_S = 6, 400, 0.08
_MOST_ROUNDS = 200
# Rounds, if they fit the budget. No measurement has fewer than the last number. Few make wide
# intervals, which say so.
_ENOUGH_ROUNDS, FEWEST_ROUNDS = 6, 4
_RESAMPLES = 4000
# Of the time of a block, until it is known to far less than a step.
_HALVINGS = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """How a measurement is laid out.

    Attributes:
      rounds: how often each session runs a block.
      steps: steps of one block of each session, the dropped ones included.
      dropped: steps at the start of each block that do not count: a session that produces
        ahead has filled its buffer while others ran, and would get those items for nothing.
      seconds: how long it takes.
    """

    rounds: int
    steps: tuple[int, ...]
    dropped: tuple[int, ...]
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """The same times a number above 0."""
        return Interval(value=factor * self.value, low=factor * self.low, high=factor * self.high)


def plan_blocks(
    step_ns: Sequence[float],
    ahead: Sequence[int],
    budget_s: float,
    rest_s: Sequence[float] = (),
) -> BlockPlan:
    """Chooses rounds and block lengths that fill `budget_s` seconds.

    Args:
      step_ns: time of a step of each session, from a pilot.
      ahead: items each session can hold ready when its block begins.
      budget_s: seconds for all blocks; a budget too short for the fewest useful rounds and steps
        is exceeded.
      rest_s: time that each session's block takes beside its steps; none means 0.

    Raises:
      OptionError: the budget is not positive.
    """
    if not budget_s > 0:
        raise OptionError(f"budget_s is {budget_s!r}; expected seconds above 0")
    step_s = [ns / 1e9 for ns in step_ns]
    dropped = tuple(map(dropped_steps, step_ns, ahead))
    between = sum(rest_s)
    rest = between + sum(count * s for count, s in zip(dropped, step_s, strict=True))
    counted = sum(max(_FEWEST_STEPS * s, _BLOCK_S) for s in step_s)
    rounds = min(_MOST_ROUNDS, int(budget_s / (rest + counted)))
    if rounds < _ENOUGH_ROUNDS:
        fit = int(budget_s / (rest + _FEWEST_STEPS * sum(step_s)))
        rounds = max(FEWEST_ROUNDS, min(_ENOUGH_ROUNDS, fit))
    # An even number of rounds runs every order as often as its reverse.
    rounds -= rounds % 2
    steps = _steps(step_s, dropped, max(0.0, budget_s / rounds - between))
    seconds = rounds * (sum(n * s for n, s in zip(steps, step_s, strict=True)) + between)
    return BlockPlan(rounds=rounds, steps=steps, dropped=dropped, seconds=seconds)


def dropped_steps(step_ns: float, ahead: int) -> int:
    """First steps of each block that do not count.

    Args:
      step_ns: time of a step.
      ahead: items that the session can hold ready when its block begins.
    """
    return ahead + settling_of(step_ns / 1e9)


def counted_steps(step_ns: float) -> int:
    """How many steps of a block count, where nothing says that more are to."""
    return min(max(math.ceil(1e9 * _BLOCK_S / step_ns), _FEWEST_STEPS), _MOST_STEPS)


def _steps(step_s: Sequence[float], dropped: Sequence[int], round_s: float) -> tuple[int, ...]:
    """Steps of each block: equal times where they are neither too few steps nor more than say
    something new; what one needs more or less, the others have less or more.
    """
    bounds = [(d + _FEWEST_STEPS, d + _MOST_STEPS, s) for d, s in zip(dropped, step_s, strict=True)]
    low, high = 0.0, max(most * s for _, most, s in bounds)
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        if sum(min(max(share, least * s), most * s) for least, most, s in bounds) > round_s:
            high = share
        else:
            low = share
    return tuple(max(least, min(most, int(low / s + 1e-6))) for least, most, s in bounds)


def block_order(round_number: int, sessions: int) -> tuple[int, ...]:
    """The order of the sessions in a round: every second one is reversed, each pair starts further.

    Two sessions run A B, B A, A B, …, so that a machine that slows down steadily is fair to both.
    """
    start = round_number // 2 % sessions
    order = [(start + i) % sessions for i in range(sessions)]
    return tuple(reversed(order) if round_number % 2 else order)


def block_rate(ends_ns: np.ndarray, dropped: int) -> float:
    """Steps/s of one block.

    Args:
      ends_ns: int64 [steps + 1], start of the first step, then the end of each.
      dropped: first steps that do not count; at least one is left.
    """
    kept = ends_ns[min(dropped, len(ends_ns) - 2) :]
    return float((len(kept) - 1) * 1e9 / max(1, int(kept[-1] - kept[0])))


def mean_interval(rates: Sequence[float], seed: int = 0) -> Interval:
    """The mean of rates of blocks (geometric) with its bootstrap interval."""
    return _interval(np.log(rates), seed)


def ratio_interval(
    rates: Sequence[float], baseline_rates: Sequence[float], seed: int = 0
) -> Interval:
    """How many times faster than the baseline: mean (geometric) over blocks of the same round.

    Raises:
      OptionError: the two have different numbers of blocks, or fewer than two.
    """
    if len(rates) != len(baseline_rates) or len(rates) < 2:
        raise OptionError(
            f"cannot pair {len(rates)} blocks with {len(baseline_rates)}; "
            "expected two or more blocks of each, one per round"
        )
    return _interval(np.log(rates) - np.log(baseline_rates), seed)


def verdict(interval: Interval) -> Verdict:
    """What an interval of a ratio lets one say."""
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "no clear difference"


def _interval(logs: Any, seed: int) -> Interval:
    """Percentile bootstrap of the mean, widened for few blocks, back from logarithms.

    A plain percentile bootstrap of n values is too narrow by sqrt((n - 1) / n) and by the
    difference between Student's and the normal distribution; with 6 blocks that is a third.
    """
    count = len(logs)
    mean = float(np.mean(logs))
    if count < 2:
        return Interval(value=math.exp(mean), low=0.0, high=math.inf)
    picks = np.random.default_rng(seed).integers(0, count, (_RESAMPLES, count))
    low, high = np.quantile(logs[picks].mean(axis=1), [0.025, 0.975])
    wider = math.sqrt(count / (count - 1)) * student_95(count - 1) / NORMAL_95
    return Interval(
        value=math.exp(mean),
        low=math.exp(mean + wider * (float(low) - mean)),
        high=math.exp(mean + wider * (float(high) - mean)),
    )
