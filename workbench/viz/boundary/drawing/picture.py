"""The boundary as one SVG image: for paper, and for viewers that take scripts out of a notebook.

It shows the first level of boxes in flow order and the cut as it is at first; every word in it
comes from the view.
"""

from __future__ import annotations

import html

from workbench.viz.boundary.drawing.crossing import crossing, line_points, pills, share_ahead
from workbench.viz.boundary.drawing.flow_schema import (
    BOX_HEIGHT,
    BOX_WIDTH,
    COLUMN_GAP,
    FlowBox,
    FlowView,
    Link,
)
from workbench.viz.boundary.schema import AreaView, BoxView
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style import colors

_CHARACTER = 0.6  # mean width of a sans-serif character, in font sizes
_INK, _QUIET, _LINE, _ACCENT, _GROUND = "#212121", "#757575", "#bdbdbd", "#1976d2", "#f1f7fd"
_BAD = "#d32f2f"
_DASH = ' stroke-dasharray="6 4"'
_LIST_PITCH, _LIST_MARGIN = 46, 12


def boundary_picture(view: BoundaryView) -> str:
    """The picture as one SVG element, on white ground."""
    if view.flow is None:
        return _lists(view)
    flow = view.flow
    ahead = frozenset(flow.cuts[flow.shown].leaves)
    crossed = crossing(flow, ahead)
    points = line_points(flow, ahead)
    line = " ".join(f"{x},{y}" for x, y in points)
    dash = "" if flow.solid else _DASH
    shapes = [f'<polygon points="0,0 {line} 0,{flow.height}" fill="{_GROUND}"/>']
    shapes += [
        _link(flow, link, _ACCENT if (link.source, link.target) in crossed.links else _LINE)
        for link in flow.links
        if link.at
    ]
    shapes += [_node(view, box, share_ahead(box, ahead)) for box in flow.boxes]
    shapes.append(
        f'<polyline points="{line}" fill="none" stroke="{_ACCENT}" stroke-width="2"{dash}/>'
    )
    shapes += [_pill(pill.x, pill.y, str(pill.count), dash) for pill in pills(flow, ahead, crossed)]
    return _svg(flow.width, flow.height, "".join(shapes))


def _svg(width: int, height: int, shapes: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{shapes}</svg>'
    )


def _link(flow: FlowView, link: Link, stroke: str) -> str:
    x = flow.boxes[link.source].x + BOX_WIDTH
    path = [f"M{x} {link.at[0]}"]
    for k in range(1, len(link.at)):
        before, y, middle = link.at[k - 1], link.at[k], x + COLUMN_GAP // 2
        path.append(f"C{middle - 6} {before} {x + 6} {y} {middle} {y}")
        x += COLUMN_GAP + BOX_WIDTH
        path.append(f"H{x if k + 1 < len(link.at) else x - BOX_WIDTH}")
    return f'<path d="{"".join(path)}" fill="none" stroke="{stroke}" stroke-width="{link.width}"/>'


def _node(view: BoundaryView, place: FlowBox, share: float) -> str:
    box = view.boxes[place.box]
    family = colors.FAMILIES[box.family]
    x, y = place.x, place.y
    facts = ", ".join(filter(None, [box.time, box.about]))
    stroke = _ACCENT if share else _LINE
    dash = ' stroke-dasharray="4 3"' if 0 < share < 1 else ""
    parts = [
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" fill="#ffffff" '
        f'stroke="{stroke}"{dash}/><rect x="{x}" y="{y}" width="4" height="{BOX_HEIGHT}" '
        f'fill="{family.light}"/>',
        _text(x + 10, y + 16, box.label, BOX_WIDTH - 16, from_end=" " not in box.label),
        _text(x + 10, y + 32, facts, BOX_WIDTH - 16, 11, _QUIET),
    ]
    if place.state == "stay" and box.marks:
        reason = view.reasons[box.marks[0]]
        parts.append(
            f'<rect x="{x + 10}" y="{y + 38}" width="20" height="15" fill="none" stroke="{_BAD}"/>'
            + _text(x + 13, y + 50, reason.code, 20, 11)
            + _text(x + 35, y + 50, reason.word, BOX_WIDTH - 30, 11)
        )
    else:
        parts.append(_text(x + 10, y + 49, family.name, BOX_WIDTH - 16, 11, _QUIET))
    return "".join(parts)


def _pill(x: int, y: int, words: str, dash: str) -> str:
    wide = max(24, round(_wide(words, 11)) + 14)
    return (
        f'<rect x="{x - wide // 2}" y="{y - 10}" width="{wide}" height="20" rx="10" '
        f'fill="#ffffff" stroke="{_ACCENT}" stroke-width="2"{dash}/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="11" fill="{_INK}">'
        f"{html.escape(words)}</text>"
    )


def _lists(view: BoundaryView) -> str:
    """The areas of a plan without its graph: lists beside each other."""
    pitch = BOX_WIDTH + COLUMN_GAP
    tallest = max((len(_boxes(view, area)) for area in view.areas), default=0)
    shapes = []
    for number, area in enumerate(view.areas):
        x = _LIST_MARGIN + number * pitch
        shapes.append(_text(x, 30, area.title, pitch - 8, weight=600))
        shapes.append(_text(x, 47, area.about, pitch - 8, 11, _QUIET))
        for row, box in enumerate(_boxes(view, area)):
            y = 64 + row * _LIST_PITCH
            shapes.append(
                f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="38" fill="none" '
                f'stroke="{_LINE}"/>'
                + _text(x + 8, y + 16, box.label, BOX_WIDTH - 16, from_end=True)
                + _text(x + 8, y + 31, box.about, BOX_WIDTH - 16, 11, _QUIET)
            )
    width = 2 * _LIST_MARGIN + max(1, len(view.areas)) * pitch
    return _svg(width, 72 + tallest * _LIST_PITCH, "".join(shapes))


def _boxes(view: BoundaryView, area: AreaView) -> list[BoxView]:
    return [view.boxes[place] for region in area.regions for place in region.boxes]


def _text(
    x: int,
    y: int,
    words: str,
    room: float,
    size: int = 12,
    fill: str = _INK,
    weight: int = 400,
    *,
    from_end: bool = False,
) -> str:
    """A line of text, shortened to the room it has, at its beginning where the end tells more."""
    if not words:
        return ""
    most = max(1, int(room / (size * _CHARACTER)))
    cut = f"…{words[len(words) - most + 1 :]}" if from_end else f"{words[: most - 1]}…"
    shown = words if len(words) <= most else cut
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{bold}>{html.escape(shown)}</text>'
    )


def _wide(words: str, size: int) -> float:
    return len(words) * size * _CHARACTER
