"""A calibration: predicted against measured, with the diagonal and a band around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from workbench.core.what_if.calibration import Calibration, Check
from workbench.errors import OptionError
from workbench.viz.charts import frame, words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme
from workbench.viz.predictions.calibration_view import calibration_view
from workbench.viz.style import format

# Within this share of what was measured a prediction counts as near.
BAND = 0.08
_PLOT = 440
_MOST_NAMES = 6
# One for each program; a hollow diamond would be a prediction alone.
_SYMBOLS = ("circle", "square", "triangle-up", "x", "star", "cross", "hexagon", "bowtie")


def calibration_figure(calibration: Calibration, theme: Theme) -> Chart:
    """A mark for each setting, with both intervals; names stand beside those outside the band."""
    if not calibration.checks:
        raise OptionError("no setting was both predicted and measured, so there is none to draw")
    low, high = _ends(calibration.checks)
    programs = calibration.programs
    names = _named(calibration.checks)
    traces = [_band(low, high, theme), _diagonal(low, high, theme)]
    for number, program in enumerate(programs):
        own = [check for check in calibration.checks if check.program == program]
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        traces.append(_marks(own, names, symbol, theme, several=len(programs) > 1))
    sentence = calibration_view(calibration).sentence
    figure = frame.framed(traces, theme, sentence, plot=_PLOT)
    axis = {"range": [low, high], "ticksuffix": "×", "zeroline": False}
    figure.update_xaxes(
        title_text="predicted, against the traced setting",
        constrain="domain",
        constraintoward="left",
        **axis,
    )
    figure.update_yaxes(title_text="measured", scaleanchor="x", constrain="domain", **axis)
    return figure


def _ends(checks: Sequence[Check]) -> tuple[float, float]:
    """The ends of both axes: all marks and intervals, and 1×."""
    edges = [1.0]
    for each in checks:
        edges += [each.predicted, each.predicted_low, each.predicted_high]
        edges += [each.measured, each.measured_low, each.measured_high]
    edges = [edge for edge in edges if math.isfinite(edge)]
    room = 0.06 * max(max(edges) - min(edges), 0.1)
    return max(0.0, min(edges) - room), max(edges) + room


def _band(low: float, high: float, theme: Theme) -> go.Scatter:
    # Where the error of a prediction, a share of what was measured, is that of the band.
    below, above = 1 / (1 + BAND), 1 / (1 - BAND)
    return go.Scatter(
        name=f"within ±{100 * BAND:.0f}{format.NBSP}%",
        mode="lines",
        x=[low, high, high, low],
        y=[low * below, high * below, high * above, low * above],
        fill="toself",
        fillcolor=theme.tint,
        line={"width": 0},
        hoverinfo="skip",
    )


def _diagonal(low: float, high: float, theme: Theme) -> go.Scatter:
    return go.Scatter(
        name="as predicted",
        mode="lines",
        x=[low, high],
        y=[low, high],
        line={"color": theme.quiet, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )


def _marks(
    checks: Sequence[Check], names: set[Check], symbol: str, theme: Theme, *, several: bool
) -> go.Scatter:
    program = words.named(checks[0].program)
    return go.Scatter(
        name=program,
        mode="markers+text",
        x=[check.predicted for check in checks],
        y=[check.measured for check in checks],
        error_x=_errors([(c.predicted_low, c.predicted, c.predicted_high) for c in checks], theme),
        error_y=_errors([(c.measured_low, c.measured, c.measured_high) for c in checks], theme),
        marker={"symbol": symbol, "size": 9, "color": theme.ink},
        text=[_name(check, several=several) if check in names else "" for check in checks],
        textposition=[
            "top left" if check.measured > check.predicted else "bottom right" for check in checks
        ],
        textfont={"size": 11},
        hovertext=[_hover(check) for check in checks],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _errors(of: Sequence[tuple[float, float, float]], theme: Theme) -> dict[str, object]:
    known = [math.isfinite(low) and math.isfinite(high) for low, _, high in of]
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - at if k else 0.0 for (_, at, high), k in zip(of, known, strict=True)],
        "arrayminus": [at - low if k else 0.0 for (low, at, _), k in zip(of, known, strict=True)],
        "color": theme.quiet,
        "thickness": 1,
        "width": 3,
    }


def _named(checks: Sequence[Check]) -> set[Check]:
    """Those outside the band, the farthest first, as many as there is room for."""
    outside = [check for check in checks if abs(check.error) > BAND]
    return set(sorted(outside, key=lambda check: -abs(check.error))[:_MOST_NAMES])


def _name(check: Check, *, several: bool) -> str:
    own = words.shown_label(check.label)
    return words.in_lines(f"{check.program}: {own}" if several else own)


def _hover(check: Check) -> str:
    predicted = format.ratio_range(check.predicted_low, check.predicted_high)
    measured = format.ratio_range(check.measured_low, check.measured_high)
    return words.hover(
        f"{words.named(check.program)}: {words.setting(check.label)}",
        f"predicted {format.ratio(check.predicted)} ({predicted})",
        f"measured {format.ratio(check.measured)} ({measured})",
        f"error {format.gain(1 + check.error)}",
    )
