"""Predictions: the gain of each setting with its range, and what is withheld."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.errors import OptionError
from workbench.viz.charts import frame, words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme
from workbench.viz.predictions.answer import answer, counts_samples
from workbench.viz.predictions.withheld import sentence
from workbench.viz.style import format

_REASON = 72


def predictions_figure(predictions: Predictions, theme: Theme) -> Chart:
    """A hollow diamond with its range for each setting, the fastest first; the traced one at 0."""
    predicted, withheld = predictions.predicted, predictions.withheld
    if not predicted and not withheld:
        raise OptionError("there is no setting to draw; predict some toggles")
    traced = [prediction for prediction in predicted if prediction.scenario == predictions.traced]
    others = [prediction for prediction in predicted if prediction.scenario != predictions.traced]
    traces = [_predicted(others, theme)] if others else []
    traces += [_measured(traced[0], theme)] if traced else []
    figure = frame.framed(traces, theme, answer(predictions), plot=0)
    rows = [
        frame.Row(
            label=prediction.label,
            left=words.setting_lines(prediction.label),
            right=_beside(prediction, prediction in traced),
            ink=theme.ink,
        )
        for prediction in predicted
    ]
    frame.add_rows(figure, [*rows, *(_refused(refused, theme) for refused in withheld)], theme)
    for row, refused in enumerate(withheld, len(predicted)):
        _add_withheld(figure, refused, row, theme)
    if not predicted:
        return figure.update_xaxes(visible=False)
    figure.add_vline(x=0, line={"color": theme.quiet, "width": 1})
    unit = "samples/s" if counts_samples(predictions) else "steps/s"
    traced_label = predictions.traced.label
    name = "all off" if traced_label == "off" else words.named(traced_label)
    return figure.update_xaxes(
        range=_ends(others),
        title_text=f"predicted gain in {unit} against {name}",
        tickformat="+.0f",
        ticksuffix=f"{format.NBSP}%",
    )


def _predicted(others: Sequence[Predicted], theme: Theme) -> go.Scatter:
    gains = [_percent(prediction.ratio) for prediction in others]
    return go.Scatter(
        name=f"predicted, 95{format.NBSP}% interval; none of it was run",
        mode="markers",
        x=gains,
        y=[prediction.label for prediction in others],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [
                _percent(prediction.high) - at for prediction, at in zip(others, gains, strict=True)
            ],
            "arrayminus": [
                at - _percent(prediction.low) for prediction, at in zip(others, gains, strict=True)
            ],
            "color": theme.quiet,
            "thickness": 1.5,
            "width": 5,
        },
        marker={
            "symbol": "diamond-open",
            "size": 11,
            "color": theme.ink,
            "line": {"width": 1.6, "color": theme.ink},
        },
        hovertext=[_hover(prediction) for prediction in others],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _measured(traced: Predicted, theme: Theme) -> go.Scatter:
    step = format.duration(traced.step_ms * 1e6)
    return go.Scatter(
        name="traced, measured",
        mode="markers",
        x=[0.0],
        y=[traced.label],
        marker={"symbol": "circle", "size": 10, "color": theme.ink},
        hovertext=[words.hover(words.setting(traced.label), f"measured, {step} a step")],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _add_withheld(figure: Chart, refused: Withheld, row: int, theme: Theme) -> None:
    """The reason in words where a mark would stand."""
    reason = words.in_lines(sentence(refused.reason), _REASON)
    figure.add_annotation(
        name=refused.label,
        text=_reason(refused),
        xref="x domain",
        x=0,
        xanchor="left",
        yref="y",
        y=row,
        showarrow=False,
        bgcolor=theme.template.layout.plot_bgcolor or theme.page,
        font={"size": 11, "color": theme.quiet},
        hovertext=words.hover(words.setting(refused.label), reason),
    )


def _refused(refused: Withheld, theme: Theme) -> frame.Row:
    words_of = words.setting_lines(refused.label)
    grey = words.BREAK.join(
        f'<span style="color:{theme.quiet}">{line}</span>' for line in words_of.split(words.BREAK)
    )
    return frame.Row(label=refused.label, left=grey, ink=theme.quiet)


def _reason(refused: Withheld) -> str:
    text = f"withheld: {refused.reason}"
    return words.named(text if len(text) <= _REASON else f"{text[: _REASON - 1]}…")


def _ends(others: Sequence[Predicted]) -> tuple[float, float]:
    """The ends of the axis: all marks and intervals, and 0."""
    edges = [_percent(edge) for each in others for edge in (each.low, each.ratio, each.high)]
    low, high = min([0.0, *edges]), max([0.0, *edges])
    room = 0.06 * max(high - low, 1.0)
    return low - room, high + room


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _range(each: Predicted) -> str:
    return format.ratio_range(each.low, each.high)


def _beside(each: Predicted, traced: bool) -> str:
    if traced:
        return "measured"
    return f"{format.ratio(each.ratio)} ({_range(each)})"


def _hover(each: Predicted) -> str:
    step, least = (format.duration(ms * 1e6) for ms in (each.step_ms, each.bound_ms))
    return words.hover(
        words.setting(each.label),
        f"predicted {format.gain(each.ratio)}, {format.ratio(each.ratio)} ({_range(each)})",
        f"{step} a step, limited by {words.named(each.limited_by)} (≥ {least})",
        words.named(each.plan),
    )
