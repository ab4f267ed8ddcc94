"""Predictions → what their list shows, every string finished."""

from __future__ import annotations

import dataclasses
import re

from workbench.core.prediction.doubts import named_ops
from workbench.core.prediction.fit import HOLDS
from workbench.core.what_if.predictions import Predicted, Predictions
from workbench.core.what_if.scenario import Scenario
from workbench.viz.comparison.chart import shown_label
from workbench.viz.predictions.answer import Pieces, answer, counts_samples, toggles
from workbench.viz.predictions.ratio_axis import RatioAxis, ratio_axis
from workbench.viz.predictions.withheld import Reason, reasons
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

# Rows that are shown at once: this number of the best, and what has one toggle alone.
_BEST = 8
# A list up to this long is shown as a whole.
_SHORT = 15
# A number and what it counts stay in one line.
_COUNT = re.compile(r"(\d) (?=\w)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One setting.

    Attributes:
      label: its name.
      traced: whether it was measured, not predicted.
      first: whether it is among those shown at once.
      clear: whether its interval excludes 1×.
      ratio, interval: against the traced setting.
      low, at, high: the same as fractions of the axis.
      step, rate: time of a step, steps/s.
      limited_by, at_least: what bounds the step, and the least time that this allows.
      plan: what runs ahead, where a plan chose it.
    """

    label: str
    traced: bool
    first: bool
    clear: bool
    ratio: str
    interval: str
    low: float
    at: float
    high: float
    step: str
    rate: str
    limited_by: str
    at_least: str
    plan: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictionsView:
    """Predictions, ready for every outlet.

    Attributes:
      title: of the trace.
      sentence: the answer, as (text, strong) pieces.
      replay: how well the simulation holds for what was traced.
      caption: what the ratios are of.
      rows: the settings, in the order of the predictions.
      ticks: (fraction, words) of the axis. one: where 1× is on it.
      opens: what shows the rows that are not shown at once; "" where all are.
      plans: whether a row has a plan.
      assumptions: what the predictions take for granted; "" where nothing.
      withheld: reasons, and the settings of which nothing is predicted.
    """

    title: str
    sentence: Pieces
    replay: str
    caption: str
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    opens: str
    plans: bool
    assumptions: str
    withheld: tuple[Reason, ...]


def predictions_view(predictions: Predictions) -> PredictionsView:
    """The view of predictions."""
    predicted = predictions.predicted
    axis = ratio_axis(
        [
            edge
            for prediction in predicted
            for edge in (prediction.low, prediction.ratio, prediction.high)
        ]
    )
    rows = tuple(
        _row(
            prediction,
            predictions,
            axis,
            first=len(predicted) <= _SHORT or n < _BEST or toggles(prediction) <= 1,
        )
        for n, prediction in enumerate(predicted)
    )
    return PredictionsView(
        title=plain(predictions.title),
        sentence=answer(predictions),
        replay=_replay(predictions),
        caption=_caption(predictions),
        rows=rows,
        ticks=axis.ticks,
        one=axis.at(1.0),
        opens="" if all(row.first for row in rows) else f"Show all {format.integer(len(rows))}",
        plans=any(row.plan for row in rows),
        assumptions=_assumptions(predictions),
        withheld=_withheld(predictions),
    )


def _row(prediction: Predicted, predictions: Predictions, axis: RatioAxis, *, first: bool) -> Row:
    traced = prediction.scenario == predictions.traced
    return Row(
        label=plain(shown_label(prediction.label)),
        traced=traced,
        first=first,
        clear=not traced and (prediction.low > 1 or prediction.high < 1),
        ratio="measured" if traced else format.ratio(prediction.ratio),
        interval="" if traced else format.ratio_range(prediction.low, prediction.high),
        low=axis.at(prediction.low),
        at=axis.at(prediction.ratio),
        high=axis.at(prediction.high),
        step=format.duration(prediction.step_ms * 1e6),
        rate=format.rate(1e3 / prediction.step_ms, unit="").rstrip(),
        limited_by=plain(prediction.limited_by),
        at_least=f"≥ {format.duration(prediction.bound_ms * 1e6)}",
        plan=_COUNT.sub(rf"\1{format.NBSP}", plain(prediction.plan)),
    )


def _withheld(predictions: Predictions) -> tuple[Reason, ...]:
    found = reasons([(each.label, each.reason) for each in predictions.withheld])
    # Where one reason holds for everything, the answer has said it.
    return found if predictions.predicted or len(found) > 1 else ()


def _replay(predictions: Predictions) -> str:
    replay = predictions.replay
    if replay is None:
        return "Whether a simulation of the traced step takes as long as the step is not known."
    if not predictions.predicted and not replay.holds:
        # The answer has both times.
        return "They differ by too much."
    simulated = format.duration(replay.simulated_ms * 1e6)
    measured = format.duration(replay.measured_ms * 1e6)
    off, most = format.gain(1 + replay.error), f"{100 * HOLDS:.0f}{format.NBSP}%"
    words = f"Simulated, the traced step takes {simulated}; measured {measured} ({off}). "
    if replay.holds:
        return f"{words}Beyond {most} intervals are wider by as much."
    if replay.doubts:
        words += f"Times that do not fit: {plain(named_ops(replay.doubts))}. "
    return f"{words}Intervals are wider by as much, as that is beyond {most}."


def _caption(predictions: Predictions) -> str:
    unit = "Samples/s" if counts_samples(predictions) else "Steps/s"
    traced = "all off" if predictions.traced.label == "off" else plain(predictions.traced.label)
    return f"{unit} against {traced}, the traced setting"


def _assumptions(predictions: Predictions) -> str:
    said = [words for changed, words in _ASSUMED if _any(predictions, changed)]
    return f"Assumed: {'; '.join(said)}." if said else ""


def _any(predictions: Predictions, name: str) -> bool:
    """Whether a setting differs there from the traced one."""
    traced = _setting(predictions.traced, name)
    return any(_setting(each.scenario, name) != traced for each in predictions.predicted)


def _setting(scenario: Scenario, name: str) -> object:
    owner = scenario if hasattr(scenario, name) else scenario.optimizations
    return getattr(owner, name)


# What each change takes for granted.
_ASSUMED = (
    ("fused_embeddings", "fused ops take what a calibration of this machine says"),
    ("executor", "between two ops an executor takes as long as on the machine of its benches"),
    ("cores", "other cores are as fast as the traced ones"),
    ("inter_op_threads", "ops take as long with any number of inter-op threads"),
    ("batch_ratio", "all that follows from the input takes longer as the batch grows"),
)
