"""Results as plain text, for terminals and for front ends that show nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from workbench.core.metrics import StepMetrics
from workbench.viz.boundary import BoundaryView
from workbench.viz.boundary_parts import AreaView, BoxView
from workbench.viz.compare import CompareView, compare_view
from workbench.viz.compare_input import ComparisonLike
from workbench.viz.compare_tables import Table, measures_table

_MOST_CAUSES = 8


def comparison_table(comparison: ComparisonLike) -> str:
    """The answer in a sentence, the variants as a table, then what it rests on."""
    return view_text(compare_view(comparison))


def view_text(view: CompareView) -> str:
    """A comparison's view as plain text."""
    sentence = "".join(text for text, _ in view.sentence)
    heads = ["Variant", "steps/s", "step, median", "ratio", "95\u00a0%"]
    heads += ["predicted"] if view.predicts else []
    rows = [
        [
            row.label,
            f"{row.rate} {row.half}".rstrip(),
            row.step_time,
            row.ratio,
            row.interval,
            *([row.predicted] if view.predicts else []),
            row.verdict,
            row.training,
        ]
        for row in view.rows
    ]
    left = {0, len(heads), len(heads) + 1}
    table = _aligned([[*heads, "verdict", "training"], *rows], left=left)
    lines = [f"{view.program}: {sentence}", f"Next: {view.next_step}", "", *table]
    lines += ["", f"{view.caption}."]
    lines += [f"{limit.name}: {limit.rate}. {limit.detail}." for limit in view.limits]
    lines.append(view.receipt.sentence)
    lines += [
        f"{check.label}, {check.kind}: {check.result}, {check.detail}."
        for check in view.receipt.exceptions
    ]
    lines += list(view.notes)
    return "\n".join(_plain(line) for line in lines)


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
        lines += _aligned([heads, *causes], left={0, 1, 2})
    lines += ["", *(f"{name}: {reason}" for name, reason in view.edits)] if view.edits else []
    if view.ways:
        heads = ("Predicted", "step", "at best", "ratio", "limited by")
        rows = [
            (("→ " if w.chosen else "  ") + w.label, w.step, w.bound, w.ratio, w.limited_by)
            for w in view.ways
        ]
        lines += ["", *_aligned([heads, *rows], left={0, 4})]
    return "\n".join(_plain(line) for line in lines)


def metrics_text(metrics: StepMetrics) -> str:
    """Step metrics as plain text."""
    return "\n".join(table_lines(measures_table([("Trace", metrics)])))


def table_lines(table: Table) -> list[str]:
    """A table as aligned lines, the first column to the left, numbers to the right."""
    rows = [table.heads, *table.rows, *([table.total] if table.total else [])]
    return [_plain(line) for line in _aligned(rows, left={0})]


def _area_lines(view: BoundaryView, area: AreaView) -> list[str]:
    travels = f": {area.travels}" if area.travels else ""
    lines = [f"{area.title} ({area.about}){travels}"]
    for region in area.regions:
        indent = "  "
        if region.title:
            lines.append(f"  {region.title}")
            indent = "    "
        rows = [_box_cells(view, view.boxes[place]) for place in region.boxes]
        lines += [indent + line for line in _aligned(rows, left={0, 1, 2})] if rows else []
        lines += [] if rows else [indent + region.empty]
    return lines


def _box_cells(view: BoundaryView, box: BoxView) -> tuple[str, str, str]:
    said = [view.reasons[place].word for place in box.marks]
    if box.travels:
        said.append(f"→ {box.travels}")
    if box.reads:
        said.insert(0, f"reads {box.reads}")
    return box.label, box.about, ", ".join(said)


def _aligned(rows: Sequence[Sequence[str]], left: set[int]) -> list[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            cells.append(cell + space if number in left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def _width(text: str) -> int:
    """Columns that a terminal gives to a text: wide letters take two, marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in _plain(text)
    )


def _plain(text: str) -> str:
    """No control characters: a name must not move the cursor or start a line."""
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
