"""Results as plain text, for terminals and for front ends that show nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from workbench.core.metrics import StepMetrics
from workbench.viz.compare import CompareView, compare_view
from workbench.viz.compare_input import ComparisonLike
from workbench.viz.compare_tables import Table, measures_table


def comparison_table(comparison: ComparisonLike) -> str:
    """The answer in a sentence, the variants as a table, then what it rests on."""
    return view_text(compare_view(comparison))


def view_text(view: CompareView) -> str:
    """A comparison's view as plain text."""
    sentence = "".join(text for text, _ in view.sentence)
    heads = ["Variant", "steps/s", "step, median", "ratio", "95\u00a0%", "verdict", "training"]
    rows = [
        [
            row.label,
            f"{row.rate} {row.half}".rstrip(),
            row.step_time,
            row.ratio,
            row.interval,
            row.verdict,
            row.receipt,
        ]
        for row in view.rows
    ]
    lines = [f"{view.program}: {sentence}", "", *_aligned([heads, *rows], left={0, 5, 6})]
    lines += ["", f"{view.caption}."]
    lines += [f"{limit.name}: {limit.rate}. {limit.detail}." for limit in view.limits]
    lines += [
        f"{check.label}, {check.kind}: {check.result}, {check.detail}." for check in view.checks
    ]
    lines += list(view.notes)
    return "\n".join(_plain(line) for line in lines)


def metrics_text(metrics: StepMetrics) -> str:
    """Step metrics as plain text."""
    return "\n".join(table_lines(measures_table([("Trace", metrics)])))


def table_lines(table: Table) -> list[str]:
    """A table as aligned lines, the first column to the left, numbers to the right."""
    rows = [table.heads, *table.rows, *([table.total] if table.total else [])]
    return [_plain(line) for line in _aligned(rows, left={0})]


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
