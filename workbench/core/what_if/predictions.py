"""Predictions: what each setting would give, and whether the replay of the trace holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from workbench.core.prediction.replay import Replay
from workbench.core.what_if.scenario import Scenario
from workbench.display import Displayed, charts

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_T = TypeVar("_T")
# A setting that measures, or is predicted, within this share of the best one is as good.
AS_GOOD = 0.02


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predicted:
    """What one setting would give.

    Attributes:
      scenario: the setting.
      step_ms: time of a step in the steady state. low_ms, high_ms: its interval, wider for
        a setting that changes more.
      ratio, low, high: steps/s (samples/s where the batch has another size) against the traced
        setting's.
      limited_by: what bounds the step, such as "the step" or "the cores".
      bound_ms: the least time that this allows.
      plan: in words, where stages run and with how many threads; "" without a stage.
    """

    scenario: Scenario
    step_ms: float
    low_ms: float
    high_ms: float
    ratio: float
    low: float
    high: float
    limited_by: str
    bound_ms: float
    plan: str = ""

    @property
    def label(self) -> str:
        """Name of the setting."""
        return self.scenario.label

    def in_time_of(self, factor: float) -> Predicted:
        """The same where steps take so many times as long; ratios stay.

        Args:
          factor: the time of a step over that of an untraced step beside the trace.
        """
        return dataclasses.replace(
            self,
            step_ms=factor * self.step_ms,
            low_ms=factor * self.low_ms,
            high_ms=factor * self.high_ms,
            bound_ms=factor * self.bound_ms,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Withheld:
    """A setting of which nothing is predicted.

    Attributes:
      scenario: the setting.
      reason: why, a sentence.
    """

    scenario: Scenario
    reason: str

    @property
    def label(self) -> str:
        """Name of the setting."""
        return self.scenario.label


def simplest_of_best(
    found: Iterable[_T], ratio: Callable[[_T], float], effort: Callable[[_T], int]
) -> _T | None:
    """The best of what is predicted; None where nothing is.

    Predictions are not so exact that what is within `AS_GOOD` of the highest was worse: of those it
    is the one that asks for least, of these the one with the highest ratio.
    """
    listed = list(found)
    highest = max(map(ratio, listed), default=0.0)
    as_good = [each for each in listed if ratio(each) >= (1 - AS_GOOD) * highest]
    return min(as_good, key=lambda each: (effort(each), -ratio(each)), default=None)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions(Displayed):
    """What other settings of a traced program would give.

    Attributes:
      title: of the trace.
      traced: the setting that was traced.
      replay: whether the simulation holds for it; None where the trace does not say how long an
        untraced step takes.
      predicted: the settings, the fastest first; among them the traced one.
      withheld: settings of which nothing is predicted, and why.
    """

    title: str
    traced: Scenario
    replay: Replay | None
    predicted: tuple[Predicted, ...]
    withheld: tuple[Withheld, ...] = ()

    def __repr__(self) -> str:
        return f"Predictions({len(self.predicted)} settings, {len(self.withheld)} withheld)"

    @property
    def best(self) -> Predicted | None:
        """The simplest of the settings predicted to train most samples a second, or as many."""
        return simplest_of_best(
            self.predicted, lambda each: each.ratio, lambda e: e.scenario.effort
        )

    def of(self, label: str) -> Predicted | None:
        """What is predicted of the setting of that name; None where nothing is."""
        return next((each for each in self.predicted if each.label == label), None)

    def where_a_step_takes(self, step_ms: float) -> Predictions:
        """The same where an untraced step of the traced setting takes so long; ratios stay.

        A trace takes its steps at another time than a measurement, on a machine that may be faster
        or slower then.

        Args:
          step_ms: what was measured.
        """
        if self.replay is None or not self.replay.untraced_ms:
            return self
        factor = step_ms / self.replay.untraced_ms
        predicted = tuple(each.in_time_of(factor) for each in self.predicted)
        return dataclasses.replace(self, predicted=predicted)

    def plot(self, *, theme: str | None = None) -> Figure:
        """A plotly figure: the predicted gain of each setting with its range, and what is withheld.

        Args:
          theme: "light" or "dark"; None takes `plotly.io.templates.default` where one was set.

        Raises:
          OptionError: another theme, or there is no setting.
        """
        return charts().of_predictions(self, theme)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each setting, by label; of those withheld the reason alone."""
        columns = ["steps_per_s", "step_ms", "low_ms", "high_ms", "ratio", "low", "high"]
        columns += ["limited_by", "bound_ms", "plan", "withheld"]
        rows = {
            setting.label: [
                1e3 / setting.step_ms,
                *(setting.step_ms, setting.low_ms, setting.high_ms),
                *(setting.ratio, setting.low, setting.high),
                *(setting.limited_by, setting.bound_ms, setting.plan, ""),
            ]
            for setting in self.predicted
        }
        rows |= {setting.label: [None] * 10 + [setting.reason] for setting in self.withheld}
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return table.rename_axis("setting")
