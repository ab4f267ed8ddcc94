"""The timeline as HTML: alive in a report, or as a still picture with its numbers."""

from __future__ import annotations

import base64
import html

import numpy as np

from workbench.core.trace.intervals import busy_time
from workbench.viz.style import assets, colors, format
from workbench.viz.timeline.lanes import Lane
from workbench.viz.timeline.view import TimelineView

_WIDTH, _GUTTER, _COLUMNS = 960, 104, 214
_LANE, _GAP, _TOP = 18, 3, 20
_DETAIL = 12
_ROWS = 12
# width of a letter of the legend, about, and what a swatch takes with its gaps
_LETTER, _SWATCH = 6.2, 28
# the still picture keeps the light theme and its own ground: it may end up on any page
_INK, _QUIET = "#212121", "#757575"


def timeline_html(view: TimelineView, element_id: str) -> str:
    """A timeline that the page's script brings to life; until then, its still picture.

    Args:
      view: what to draw.
      element_id: unique in the page; letters, digits, "-" and "_".

    Returns:
      One element and two inert script elements (header and packed columns). The page needs
      `assets.style()` once and `assets.report_script()` once, as a module, at its end.
    """
    assets.require_id(element_id)
    packed = base64.b64encode(view.columns.packed).decode("ascii")
    return (
        f'<div id="{element_id}" class="wb wb-timeline" data-wb-timeline="{element_id}">'
        f"{_still(view, element_id)}</div>\n"
        f'<script type="application/json" id="{element_id}-header">'
        f"{assets.json_script(view.to_json_header(), drawn=True)}</script>\n"
        f'<script type="text/plain" id="{element_id}-data">{packed}</script>\n'
    )


def timeline_static_html(view: TimelineView) -> str:
    """A still picture and the largest ops as a table; no script, no style sheet needed.

    The picture is an `<img>`: viewers of notebooks that take `<svg>` out of HTML leave it.
    """
    return (
        f'<div class="wb-static">{_words(view)}'
        f"{assets.image_html(_picture(view, 'wb'), _name(view))}{_table(view)}</div>"
    )


def _still(view: TimelineView, name: str) -> str:
    return f"{_words(view)}{_picture(view, name)}{_table(view)}"


def _words(view: TimelineView) -> str:
    sentence = "".join(
        f"<strong>{html.escape(text)}</strong>" if strong else html.escape(text)
        for text, strong in view.sentence
    )
    notice = f"<p>{html.escape(view.notice)}</p>" if view.notice else ""
    return f'<p class="wb-sentence">{sentence}</p>{notice}'


def _name(view: TimelineView) -> str:
    return f"Timeline of {view.title}" if view.title else "Timeline"


def _picture(view: TimelineView, name: str) -> str:
    """Merged columns over the whole trace: per column and lane the family with most time."""
    whole = view.scale.whole_ns if view.scale else view.duration_ns
    edges = view.origin_ns + np.arange(_COLUMNS + 1) * whole // _COLUMNS
    shapes, y = [], _TOP
    for lane in view.lanes:
        label = html.escape(lane.label)
        shapes.append(f'<text x="8" y="{y + 13}" style="fill:{_INK}">{label}</text>')
        if lane.detail:
            y += _DETAIL
            detail = html.escape(lane.detail)
            shapes.append(f'<text x="8" y="{y + 13}" style="fill:{_QUIET}">{detail}</text>')
        if lane.kind == "buffer":
            shapes.append(_occupied(view, lane, edges, y))
        else:
            shapes.extend(_merged(view, lane, edges, y, f"url(#{name}-hatch)"))
        y += _LANE + _GAP
    shapes.append(_legend(view, y + 6, f"url(#{name}-hatch)"))
    y += _LANE
    end = format.duration(whole)
    title = html.escape(_name(view))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + 4}" '
        f'viewBox="0 0 {_WIDTH} {y + 4}" role="img" aria-label="{title}" '
        f'font-family="sans-serif" font-size="11">'
        f'<rect width="{_WIDTH}" height="{y + 4}" fill="#ffffff"/>{_hatch(name)}'
        f'<text x="{_GUTTER}" y="13" style="fill:{_QUIET}">0</text>'
        f'<text x="{_WIDTH - 4}" y="13" style="fill:{_QUIET}" text-anchor="end">{end}</text>'
        f"{''.join(shapes)}</svg>"
    )


def _legend(view: TimelineView, y: int, hatch: str) -> str:
    """The families that the lanes show, in one row."""
    seen = set(view.nodes["family"].to_numpy()[np.unique(view.spans.name)].tolist())
    named = [(f, family.name) for f, family in enumerate(colors.FAMILIES)]
    shapes, x = [], 8.0
    for family, words in [*named, (colors.WAIT, "wait")]:
        if family in seen:
            shapes.append(
                f'<rect x="{x:.0f}" y="{y}" width="10" height="10" fill="{_fill(family, hatch)}"/>'
                f'<text x="{x + 15:.0f}" y="{y + 9}" style="fill:{_INK}">{words}</text>'
            )
            x += _SWATCH + _LETTER * len(words)
    return "".join(shapes)


def _hatch(name: str) -> str:
    return (
        f'<defs><pattern id="{name}-hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5" stroke="{_QUIET}"/></pattern></defs>'
    )


def _merged(view: TimelineView, lane: Lane, edges: np.ndarray, y: int, hatch: str) -> list[str]:
    part = slice(lane.first, lane.first + lane.count)
    start, end = view.spans.start[part], view.spans.end[part]
    family = view.nodes["family"].to_numpy()[view.spans.name[part]]
    width = np.maximum(1, np.diff(edges))
    shares = np.stack(
        [
            np.diff(busy_time(start[family == f], end[family == f], edges)) / width
            for f in range(colors.RUN + 1)
        ]
    )
    best, covered = shares.argmax(axis=0), np.minimum(1, shares.sum(axis=0))
    height = np.where(covered > 0, np.maximum(2, np.rint(covered * _LANE)), 0).astype(int)
    # neighbors that look alike become one rectangle
    looks = best * (_LANE + 1) + height
    cuts = np.flatnonzero(np.diff(looks)) + 1
    scale = (_WIDTH - _GUTTER) / _COLUMNS
    bars: dict[int, list[str]] = {}
    for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), len(looks)], strict=True):
        tall = int(height[a])
        if tall:
            left, right = round(_GUTTER + a * scale), round(_GUTTER + b * scale)
            bar = f"M{left} {y + _LANE}V{y + _LANE - tall}H{right}V{y + _LANE}z"
            bars.setdefault(int(best[a]), []).append(bar)
    # one shape for each family: a rectangle each would be four times as many bytes
    return [f'<path d="{"".join(d)}" fill="{_fill(f, hatch)}"/>' for f, d in sorted(bars.items())]


def _fill(family: int, hatch: str) -> str:
    if family == colors.WAIT:
        return hatch
    return "#eeeeee" if family == colors.RUN else colors.FAMILIES[family].light


def _occupied(view: TimelineView, lane: Lane, edges: np.ndarray, y: int) -> str:
    part = slice(lane.first, lane.first + lane.count)
    when = view.columns["occTime"][part].astype(np.int64) + view.origin_ns
    counts = np.concatenate(([lane.held], view.columns["occCount"][part]))
    held = counts[np.searchsorted(when, edges, side="right")]
    scale = (_WIDTH - _GUTTER) / _COLUMNS
    levels = y + _LANE - np.minimum(held, lane.capacity) / lane.capacity * (_LANE - 2)
    cuts = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist()]
    stairs = "".join(f"H{_GUTTER + k * scale:.0f}V{levels[k]:.0f}" for k in cuts)
    path = f"M{_GUTTER} {levels[0]:.0f}{stairs}H{_WIDTH}"
    return f'<path d="{path}" fill="none" stroke="{_QUIET}"/>'


def _table(view: TimelineView) -> str:
    frame = view.in_view()
    titles = ("Op", "Family", "Spans", "Time", "Longest")
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    top = frame.head(_ROWS)
    rows = "".join(
        f"<tr><td>{html.escape(op)}</td><td>{_swatch(family)}{_family_words(family)}</td>"
        f"<td>{format.integer(spans)}</td><td>{format.duration(total)}</td>"
        f"<td>{format.duration(longest)}</td></tr>"
        for op, family, spans, total, longest in zip(
            *(top[column].tolist() for column in top.columns), strict=True
        )
    )
    shown = f"The largest {_ROWS} of {len(frame)} kinds of op" if len(frame) > _ROWS else "All ops"
    return (
        f'<table class="wb-table"><caption>{shown}, by summed time</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _swatch(family: int) -> str:
    if family == colors.WAIT:
        return ""
    fill = colors.FAMILIES[family].light
    box = "display:inline-block;width:10px;height:10px;margin-right:6px"
    return f'<span style="{box};background:{fill}"></span>'


def _family_words(family: int) -> str:
    return "wait" if family == colors.WAIT else colors.FAMILIES[family].name
