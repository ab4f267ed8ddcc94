"""Memory: live bytes over one step, stacked by op family or by name scope."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.core.analysis.memory.live_parts import OTHERS, live_parts
from workbench.core.analysis.memory.memory import BUFFER, By, Memory
from workbench.core.graph.op_families import FAMILY_NAMES
from workbench.viz.charts import frame, words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme
from workbench.viz.memory.view import memory_view
from workbench.viz.style import colors, format

_PLOT = 340
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
# plotly's name of each pattern of the palette.
_PATTERNS = {
    "vertical": "|",
    "slash": "/",
    "dots": ".",
    "plain": "",
    "backslash": "\\",
    "horizontal": "-",
    "crossed": "x",
    "squares": "+",
}
_SCOPE_PATTERNS = ("", "/", ".", "-", "\\", "|", "")


@dataclasses.dataclass(frozen=True)
class _Fill:
    """Color of an area, its pattern as plotly calls it, and color and opacity of the lines."""

    color: str
    pattern: str
    lines: str
    opacity: float = 0.4


def memory_figure(memory: Memory, by: By, step: int | None, theme: Theme) -> Chart:
    """What lives over a step, part on part, up to all that lives."""
    parts = live_parts(memory, by, step)
    steps = memory.trace.steps()
    row = int(memory.step_peaks.argmax()) if step is None else steps["number"].tolist().index(step)
    number, low, high = (int(steps[name].iloc[row]) for name in ("number", "start_ns", "end_ns"))
    lasts = max(high - low, 1)
    top = int(parts.sum(axis=1).max()) if len(parts.columns) else 0
    per_byte, unit = _unit(top, _UNITS)
    per_ns, time_unit = _unit(lasts, _TIMES)
    moments = [each / per_ns for each in [*parts.index.tolist(), lasts]]
    fills = _fills(list(parts.columns), by, theme)
    traces = [
        _area(str(name), parts[name], moments, per_byte, fills[str(name)]) for name in parts.columns
    ]
    figure = frame.framed(traces, theme, _title(memory, step, top), plot=_PLOT)
    figure.update_layout(hovermode="x unified", legend_traceorder="reversed")
    figure.update_xaxes(
        title_text=f"{time_unit} since the begin of step {format.integer(number)}",
        range=[0, lasts / per_ns],
        showgrid=False,
    )
    return figure.update_yaxes(
        title_text=f"live bytes, {unit}", range=[0, 1.06 * max(top, 1) / per_byte]
    )


def _area(
    name: str, values: pd.Series, moments: list[float], per_byte: float, fill: _Fill
) -> go.Scatter:
    counts = [*values.tolist(), values.tolist()[-1]]
    return go.Scatter(
        name=words.named(name),
        mode="lines",
        stackgroup="live",
        x=moments,
        y=[count / per_byte for count in counts],
        line={"shape": "hv", "width": 0, "color": fill.color},
        fillcolor=fill.color,
        fillpattern={
            "shape": fill.pattern,
            "fgcolor": fill.lines,
            "fgopacity": fill.opacity,
            "fillmode": "overlay",
            "size": 8,
            "solidity": 0.15,
        },
        hovertext=[f"{words.named(name)}: {format.size(count)}" for count in counts],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _fills(names: list[str], by: By, theme: Theme) -> dict[str, _Fill]:
    """How each part is filled; greys are for name scopes, which have no color of their own."""
    if by == "family":
        fills = {
            name: _of_family(FAMILY_NAMES.index(name), theme) for name in names if name != BUFFER
        }
    else:
        scopes = [name for name in names if name not in (BUFFER, OTHERS)]
        fills = {
            name: _Fill(_grey(number, len(scopes), theme), pattern, theme.page)
            for number, (name, pattern) in enumerate(zip(scopes, _SCOPE_PATTERNS, strict=False))
        }
        fills[OTHERS] = _Fill(theme.fill, "+", theme.page)
    fills[BUFFER] = _Fill(theme.page, "x", theme.ink, opacity=1.0)
    return fills


def _of_family(number: int, theme: Theme) -> _Fill:
    color = theme.family(number)
    return _Fill(color, _PATTERNS[colors.FAMILIES[number].pattern], colors.text_on(color))


def _grey(number: int, count: int, theme: Theme) -> str:
    """From near the ink to the fill of a bar, the largest scope the strongest."""
    ink, fill = (
        np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
        for color in (theme.ink, theme.fill)
    )
    part = 0.3 + 0.7 * number / max(1, count - 1)
    return "#{:02x}{:02x}{:02x}".format(*(ink + part * (fill - ink)).astype(int).tolist())


def _title(memory: Memory, step: int | None, top: int) -> tuple[tuple[str, bool], ...]:
    if step is None:
        strong, rest = memory_view(memory).sentence
        return ((strong, True), (rest, False))
    said = f" of tensors live at once at the peak of step {format.integer(step)}."
    return ((format.size(top), True), (said, False))


def _unit(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest unit of which there is at least one."""
    return next(((per, name) for per, name in units if value >= per), units[-1])
