"""A boundary as plain text."""

from __future__ import annotations

from workbench.viz.boundary.schema import AreaView, BoxView
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style.plain_text import aligned, plain

_MOST_CAUSES = 8


def boundary_text(view: BoundaryView) -> str:
    """A boundary's view as plain text: first level of the boxes, reasons, plan, predictions."""
    lines = ["".join(text for text, _ in view.sentence), *([view.notice] if view.notice else [])]
    for area in view.areas:
        lines += ["", *_area_lines(view, area)]
    refused = [f"{reason.word} {reason.nodes}" for reason in view.reasons if reason.rows]
    if refused:
        lines += ["", f"Refused: {', '.join(refused)}; explain(node) says why."]
        heads = ("Held back by", "op", "reason", "nodes behind it", "behind it alone")
        causes = [
            (c.title, c.about, view.reasons[c.reason].word, c.behind, c.alone)
            for c in view.causes[:_MOST_CAUSES]
        ]
        lines += aligned([heads, *causes], left={0, 1, 2})
    lines += ["", *(f"{name}: {reason}" for name, reason in view.edits)] if view.edits else []
    if view.candidates:
        heads = ("Predicted", "step", "at best", "ratio", "limited by")
        rows = [
            (("→ " if c.chosen else "  ") + c.label, c.step, c.bound, c.ratio, c.limited_by)
            for c in view.candidates
        ]
        lines += ["", *aligned([heads, *rows], left={0, 4})]
    return "\n".join(plain(line) for line in lines)


def _area_lines(view: BoundaryView, area: AreaView) -> list[str]:
    travels = f": {area.travels}" if area.travels else ""
    lines = [f"{area.title} ({area.about}){travels}"]
    for region in area.regions:
        indent = "  "
        if region.title:
            lines.append(f"  {region.title}")
            indent = "    "
        rows = [_box_cells(view, view.boxes[place]) for place in region.boxes]
        lines += [indent + line for line in aligned(rows, left={0, 1, 2})] if rows else []
        lines += [] if rows else [indent + region.empty]
    return lines


def _box_cells(view: BoundaryView, box: BoxView) -> tuple[str, str, str]:
    marks = [view.reasons[place].word for place in box.marks]
    if box.travels:
        marks.append(f"→ {box.travels}")
    if box.reads:
        marks.insert(0, f"reads {box.reads}")
    return box.label, box.about, ", ".join(marks)
