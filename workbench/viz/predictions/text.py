"""Predictions as plain text."""

from __future__ import annotations

from workbench.viz.predictions.view import PredictionsView
from workbench.viz.predictions.withheld import reason_lines
from workbench.viz.style.plain_text import aligned, plain, wrapped


def predictions_text(view: PredictionsView) -> str:
    """The answer, whether the simulation holds, every setting, and what is withheld."""
    title = f"{view.title}: " if view.title else ""
    lines = wrapped(title + "".join(text for text, _ in view.sentence))
    lines += wrapped(view.replay)
    if view.rows:
        lines += ["", *_table(view), f"{view.caption}."]
    if view.assumptions:
        lines += wrapped(view.assumptions)
    lines += reason_lines(view.withheld)
    return "\n".join(plain(line) for line in lines)


def _table(view: PredictionsView) -> list[str]:
    heads = ["Setting", "ratio", "95\u00a0%", "step", "steps/s", "limited by"]
    rows = [[r.label, r.ratio, r.interval, r.step, r.rate, r.limited_by] for r in view.rows]
    if view.plans:
        heads = [*heads, "plan"]
        rows = [[*row, each.plan] for row, each in zip(rows, view.rows, strict=True)]
    return aligned([heads, *rows], left={0, 5, 6})
