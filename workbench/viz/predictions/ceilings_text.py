"""Measured ceilings as plain text."""

from __future__ import annotations

from workbench.core.what_if.ceilings import Ceilings
from workbench.viz.predictions.ceilings_view import CAPTION, CeilingsView, ceilings_view
from workbench.viz.predictions.text import reason_lines, wrapped
from workbench.viz.style.plain_text import aligned, plain


def ceilings_text(ceilings: Ceilings) -> str:
    """The answer, every step, and what could not be left out."""
    view = ceilings_view(ceilings)
    lines = wrapped(f"{view.title}: " + "".join(text for text, _ in view.sentence))
    lines += ["", *_table(view), f"{CAPTION}."]
    for note in view.notes:
        lines += wrapped(note)
    lines += reason_lines(view.withheld)
    return "\n".join(plain(line) for line in lines)


def _table(view: CeilingsView) -> list[str]:
    interval = "95\u00a0%"
    heads = ["Step", "measured", interval, "simulated", interval, "step", "steps/s", "ops left out"]
    rows = [
        [
            *(row.label, row.ratio, row.interval, row.simulated, row.simulated_interval),
            *(row.step, row.rate, row.ops),
        ]
        for row in view.rows
    ]
    return aligned([heads, *rows], left={0})
