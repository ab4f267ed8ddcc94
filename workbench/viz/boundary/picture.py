"""The boundary as one SVG image: for viewers that take style and scripts out of a notebook.

Columns from the left: the areas that run ahead, then the regions of the compute side. It shows
the first level of boxes; every word in it comes from the view.
"""

from __future__ import annotations

import dataclasses
import html
import itertools

from workbench.viz.boundary.schema import AreaView, BoxView
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style import colors

_WIDTH, _MARGIN, _GAP = 960, 12, 28
_HEAD, _HEADING, _BOX, _PITCH = 64, 20, 38, 46
_CHARACTER = 0.55  # mean width of a sans-serif character, in font sizes
_INK, _QUIET, _LINE, _ACCENT = "#212121", "#757575", "#bdbdbd", "#1976d2"
# an area that may run ahead is dashed, as in the living picture
_DASH = ' stroke-dasharray="5 4"'


@dataclasses.dataclass(frozen=True)
class _Column:
    """Boxes below each other: heading and place of one area, or of one region of it."""

    area: AreaView
    heading: str
    boxes: tuple[BoxView, ...]
    x: float
    y: float
    width: float
    first: bool
    line: float = 0.0  # how far down the line of its buffer goes

    @property
    def end(self) -> float:
        return self.y + _HEAD + _HEADING + max(1, len(self.boxes)) * _PITCH


def boundary_picture(view: BoundaryView) -> str:
    """The picture as one SVG element of 960 px width, on white ground."""
    columns = _columns(view)
    height = max((column.end for column in columns), default=_HEAD) + _MARGIN
    shapes = "".join(_column(view, column) for column in columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}" font-family="sans-serif" font-size="12">'
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>{shapes}</svg>'
    )


def _columns(view: BoundaryView) -> list[_Column]:
    ahead = [area for area in view.areas if area.kind != "compute"]
    chains = [list(chain) for _, chain in itertools.groupby(ahead, key=lambda area: area.chain)]
    compute = [area for area in view.areas if area.kind == "compute"]
    regions = [(area, region) for area in compute for region in area.regions]
    deepest = max(map(len, chains), default=0)
    many = max(1, deepest + len(regions))
    width = (_WIDTH - 2 * _MARGIN + _GAP) / many - _GAP

    def place(number: int) -> float:
        return _MARGIN + number * (width + _GAP)

    compute_side = [
        _Column(
            area=area,
            heading=region.title,
            boxes=_boxes(view, region.boxes),
            x=place(deepest + number),
            y=_MARGIN,
            width=width,
            first=region is area.regions[0],
        )
        for number, (area, region) in enumerate(regions)
    ]
    columns: list[_Column] = []
    y = float(_MARGIN)
    for chain in chains:
        # a short chain ends at the compute side, as a long one does
        start = deepest - len(chain)
        row = [
            _Column(
                area=area,
                heading="",
                boxes=_boxes(view, tuple(p for region in area.regions for p in region.boxes)),
                x=place(start + number),
                y=y,
                width=width,
                first=True,
            )
            for number, area in enumerate(chain)
        ]
        # the last buffer stands along all of the compute side
        beside = compute_side if chain is chains[-1] else []
        end = max(column.end for column in (*row, *beside))
        columns += [dataclasses.replace(column, line=end) for column in row]
        y = end + _MARGIN
    return columns + compute_side


def _boxes(view: BoundaryView, places: tuple[int, ...]) -> tuple[BoxView, ...]:
    """What stays inside an area first, then what travels out of it."""
    boxes = [view.boxes[place] for place in places]
    return tuple(sorted(boxes, key=lambda box: bool(box.travels)))


def _column(view: BoundaryView, column: _Column) -> str:
    x, y, width = column.x, column.y, column.width
    parts = []
    if column.first:
        parts.append(_text(x, y + 30, column.area.title, width, weight=600))
        parts.append(_text(x, y + 47, column.area.about, width, size=11, fill=_QUIET))
    parts.append(_text(x, y + _HEAD + 8, column.heading, width, size=11, fill=_QUIET))
    if column.area.kind != "compute":
        parts.append(_buffer(column))
    top = y + _HEAD + _HEADING
    for number, box in enumerate(column.boxes):
        parts.append(_box(view, column, box, top + number * _PITCH))
    return "".join(parts)


def _buffer(column: _Column) -> str:
    """The line that the values cross, with how many they are."""
    x = column.x + column.width + _GAP / 2
    words = f"{column.area.tensors} {'tensor' if column.area.tensors == '1' else 'tensors'}"
    wide = _wide(words, 11) + 12
    taken = column.area.kind != "may"
    ground, ink = (_ACCENT, "#ffffff") if taken else ("#ffffff", _INK)
    return (
        f'<path d="M{x:.0f} {column.y:.0f}V{column.line:.0f}" stroke="{_ACCENT}" '
        f'stroke-width="2"{_dash(column)}/>'
        f'<rect x="{x - wide:.0f}" y="{column.y:.0f}" width="{wide:.0f}" height="18" '
        f'fill="{ground}" stroke="{_ACCENT}"{_dash(column)}/>'
        + _text(x - wide + 6, column.y + 13, words, wide, 11, ink)
    )


def _dash(column: _Column) -> str:
    return _DASH if column.area.kind == "may" else ""


def _box(view: BoundaryView, column: _Column, box: BoxView, y: float) -> str:
    x, width = column.x, column.width
    family = colors.FAMILIES[box.family]
    marks = " ".join(view.reasons[place].code for place in box.marks[:2])
    about = f"{box.about}, reads {box.reads}" if box.reads else box.about
    parts = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX}" fill="none" '
        f'stroke="{_LINE}"/><rect x="{x:.0f}" y="{y:.0f}" width="4" height="{_BOX}" '
        f'fill="{family.light}"/>',
        _text(x + 10, y + 16, box.label, width - 16),
        _text(x + 10, y + 31, about, width - 44 - _wide(marks, 11), 11, _QUIET),
        _text(x + width - 6, y + 31, f"{marks}  {family.code}".strip(), width, 11, end=True),
    ]
    if box.travels:
        middle, edge = y + _BOX / 2, x + width + _GAP / 2
        parts.append(
            f'<path d="M{x + width:.0f} {middle:.0f}H{edge:.0f}" stroke="{_ACCENT}" '
            f'stroke-width="2"{_dash(column)}/>'
            f'<rect x="{edge - 12:.0f}" y="{middle - 9:.0f}" width="24" height="18" rx="9" '
            f'fill="#ffffff" stroke="{_ACCENT}" stroke-width="2"/>'
            f'<text x="{edge:.0f}" y="{middle + 4:.0f}" text-anchor="middle" font-size="11" '
            f'fill="{_INK}">{html.escape(box.travels)}</text>'
        )
    return "".join(parts)


def _text(
    x: float,
    y: float,
    words: str,
    room: float,
    size: int = 12,
    fill: str = _INK,
    weight: int = 400,
    *,
    end: bool = False,
) -> str:
    """A line of text, shortened to the room it has; "" for no words."""
    if not words:
        return ""
    most = max(1, int(room / (size * _CHARACTER)))
    shown = words if len(words) <= most else f"{words[: most - 1]}…"
    anchor = ' text-anchor="end"' if end else ""
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}"{anchor}{bold}>'
        f"{html.escape(shown)}</text>"
    )


def _wide(words: str, size: int) -> float:
    return len(words) * size * _CHARACTER
