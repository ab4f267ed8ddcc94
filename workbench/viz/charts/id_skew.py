"""An embedding lens: how much of its lookups the most frequent ids of each table take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens, LensTable
from workbench.errors import OptionError
from workbench.viz.charts import frame, words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme
from workbench.viz.style import format

_PLOT = 380
# Shown at once: those that take most time; the legend shows the others.
_FIRST = 8
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "triangle-up", "x", "star", "cross", "hexagon", "bowtie")
# Marks on a line, which has more places.
_MARKS = 7
_MOST_NAMED, _WIDE = 6, 96


def id_skew_figure(lens: EmbeddingLens, tables: Sequence[str] | None, theme: Theme) -> Chart:
    """A line for each table whose ids were sampled and whose number of rows is known."""
    chosen = _chosen(lens, tables)
    drawn = [table for table in chosen if _rows(table) and table.ids and table.ids.skew]
    if not drawn:
        raise OptionError(
            "no ids of these tables were sampled, or their number of rows is not known; make the "
            "lens with program= and two batches or more"
        )
    traces = [
        _line(table, number, theme, wanted=tables is not None) for number, table in enumerate(drawn)
    ]
    left_out = [table.name for table in chosen if table not in drawn]
    least = min(1 / (_rows(table) or 1) for table in drawn)
    figure = frame.framed([*traces, _even(least, theme)], theme, _title(lens, drawn[0]), plot=_PLOT)
    ticks = [10.0**power for power in range(int(np.floor(np.log10(least))), 1)]
    figure.update_xaxes(
        type="log",
        range=[np.log10(least) - 0.1, 0.05],
        tickvals=ticks,
        ticktext=[f"{100 * tick:.10g}{format.NBSP}%" for tick in ticks],
        title_text="share of the table's rows, the most frequent first" + _left_out(left_out),
    )
    figure.update_yaxes(
        range=[0, 1.03],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=[f"{percent}{format.NBSP}%" for percent in (0, 25, 50, 75, 100)],
        title_text="share of its lookups",
    )
    return figure


def _chosen(lens: EmbeddingLens, tables: Sequence[str] | None) -> tuple[LensTable, ...]:
    if tables is None:
        return lens.tables
    names = [table.name for table in lens.tables]
    wanted = [tables] if isinstance(tables, str) else list(tables)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise OptionError(f"there is no table {unknown[0]!r}; expected some of {', '.join(names)}")
    return tuple(table for table in lens.tables if table.name in wanted)


def _rows(table: LensTable) -> int | None:
    return table.facts.rows if table.facts else None


def _line(table: LensTable, number: int, theme: Theme, *, wanted: bool) -> go.Scatter:
    rows, ids = _rows(table), table.ids
    assert rows and ids
    name = words.named(table.name)
    return go.Scatter(
        name=name,
        mode="lines+markers",
        x=[count / rows for count, _ in ids.skew],
        y=[part for _, part in ids.skew],
        line={
            "color": theme.ink if number % 2 == 0 else theme.quiet,
            "width": 1.8,
            "dash": _DASHES[number % len(_DASHES)],
        },
        marker={"symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 8, "maxdisplayed": _MARKS},
        visible=True if wanted or number < _FIRST else "legendonly",
        hovertext=[_hover(name, count, rows, part) for count, part in ids.skew],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _even(least: float, theme: Theme) -> go.Scatter:
    """What it would be if every row were looked up as often."""
    shares = np.geomspace(least, 1, 60).tolist()
    return go.Scatter(
        name="every row as often",
        mode="lines",
        x=shares,
        y=shares,
        line={"color": theme.quiet, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )


def _title(lens: EmbeddingLens, table: LensTable) -> tuple[tuple[str, bool], ...]:
    ids = table.ids
    assert ids
    count = f"{format.integer(ids.top_ids)} most frequent ids take"
    if ids.top_ids == 1:
        count = "most frequent id takes"
    return (
        (f"{table.name}: its {count} ", False),
        (format.share(ids.top_share), True),
        (
            f" of its lookups ({format.integer(lens.batches)} batches, ranked on one half and ",
            False,
        ),
        ("counted on the other).", False),
    )


def _left_out(names: Sequence[str]) -> str:
    """Tables without a line, in words below the axis."""
    if not names:
        return ""
    count = f"{format.integer(len(names))} table{'s' * (len(names) != 1)}"
    which = ", ".join(names[:_MOST_NAMED]) + ", …" * (len(names) > _MOST_NAMED)
    said = f"{count} without sampled ids or a known number of rows: {which}"
    return words.BREAK + words.in_lines(said, _WIDE)


def _hover(name: str, count: int, rows: int, part: float) -> str:
    return words.hover(
        name,
        f"the {format.integer(count)} most frequent of {format.integer(rows)} rows"
        if count > 1
        else f"the most frequent of {format.integer(rows)} rows",
        f"{format.share(part)} of its lookups",
    )
