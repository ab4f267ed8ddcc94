"""A calibration as plain text."""

from __future__ import annotations

from workbench.viz.predictions.calibration_view import CalibrationView
from workbench.viz.predictions.withheld import reason_lines
from workbench.viz.style.plain_text import aligned, plain, wrapped
from workbench.viz.style.table import table_lines


def calibration_text(view: CalibrationView) -> str:
    """The answer, each program, every setting, and what was not predicted."""
    lines = wrapped("".join(text for text, _ in view.sentence))
    lines += wrapped(view.note)
    if view.programs:
        lines += ["", *table_lines(view.programs)]
    if view.rows:
        lines += ["", *_table(view), f"{view.caption}."]
    lines += reason_lines(view.missing)
    return "\n".join(plain(line) for line in lines)


def _table(view: CalibrationView) -> list[str]:
    heads = [
        "Setting",
        "predicted",
        "95\u00a0%",
        "measured",
        "95\u00a0%",
        "error",
        "sign",
        "intervals",
    ]
    rows = [
        [
            f"{row.program}: {row.label}" if view.programs else row.label,
            *(row.predicted, row.predicted_range, row.measured, row.measured_range),
            *(row.error, row.sign, row.intervals),
        ]
        for row in view.rows
    ]
    return aligned([heads, *rows], left={0, 6, 7})
