"""What every figure has in common: title, margins, and a row of the axis for each setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.viz.charts import words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme

_LINE, _ROW, _WORDS_LINE = 20, 32, 14
_LETTER, _TITLE_LETTER = 6.4, 8.4
_NARROWEST = 24
# Above the title, for plotly's buttons.
_BUTTONS = 36
# Axis, its title and the legend below a plot.
_FOOT = 92


def framed(
    traces: Iterable[Any], theme: Theme, title: Iterable[tuple[str, bool]], *, plot: int
) -> Chart:
    """A figure of these traces, with a plot `plot` px high and the legend below it."""
    said = words.headline(title)
    top = _BUTTONS + 8 + _LINE * (1 + said.count(words.BREAK))
    figure = Chart(data=list(traces))
    figure.update_layout(
        template=theme.template,
        title={
            "text": said,
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            "pad": {"t": _BUTTONS, "l": 8},
        },
        margin={"t": top, "b": _FOOT, "l": 8, "r": 16},
        height=plot + top + _FOOT,
        legend={
            "orientation": "h",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "x": 0,
            "xanchor": "left",
        },
        hovermode="closest",
    )
    return figure


def fit_title(figure: Chart, width: int) -> None:
    """Breaks the title of a figure that is shown `width` px wide, which plotly would cut."""
    said = figure.layout.title.text
    letters = max(_NARROWEST, int(width / _TITLE_LETTER))
    figure.layout.title.text = words.narrower(said, letters) if letters < words.TITLE else said
    more = figure.layout.title.text.count(words.BREAK) - said.count(words.BREAK)
    figure.layout.margin.t += _LINE * more
    figure.layout.height += _LINE * more


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the axis: the label that its marks have, and words at its left and right."""

    label: str
    left: str
    right: str = ""
    ink: str


def add_rows(figure: Chart, rows: Sequence[Row], theme: Theme) -> None:
    """A row of the axis for each, from the top down, with words where they meet no mark."""
    lines = max(max(row.left.count(words.BREAK), row.right.count(words.BREAK)) for row in rows)
    labels = [row.label for row in rows]
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=labels,
        tickmode="array",
        tickvals=labels,
        ticktext=[row.left for row in rows],
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
        ticks="",
        tickfont={"size": 12, "color": theme.ink},
        ticklabelstandoff=8,
    )
    figure.layout.height += len(rows) * (_ROW + _WORDS_LINE * lines)
    for place, row in enumerate(rows):
        figure.add_annotation(
            xref="paper",
            x=1,
            xanchor="left",
            xshift=12,
            yref="y",
            y=place,
            text=row.right,
            showarrow=False,
            align="left",
            font={"size": 12, "color": row.ink},
        )
    longest = max(_letters(row.right) for row in rows)
    figure.layout.margin.r = 28 + round(_LETTER * longest)


def upright(figure: Chart, x: float, name: str, ink: str, dash: str) -> None:
    """A line through the whole plot, which the legend names."""
    figure.add_shape(
        type="line",
        xref="x",
        x0=x,
        x1=x,
        yref="y domain",
        y0=0,
        y1=1,
        line={"color": ink, "width": 1.5, "dash": dash},
        name=name,
        showlegend=True,
    )


def _letters(text: str) -> int:
    return max(len(line) for line in text.split(words.BREAK))
