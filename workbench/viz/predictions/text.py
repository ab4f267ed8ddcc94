"""Predictions as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from workbench.core.what_if.predictions import Predictions
from workbench.viz.predictions.view import PredictionsView, predictions_view
from workbench.viz.predictions.withheld import Reason
from workbench.viz.style.plain_text import aligned, plain

_WIDE = 100


def predictions_text(predictions: Predictions) -> str:
    """The answer, whether the simulation holds, every setting, and what is withheld."""
    return view_text(predictions_view(predictions))


def view_text(view: PredictionsView) -> str:
    """A view of predictions as plain text."""
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


def reason_lines(withheld: Sequence[Reason]) -> list[str]:
    """What is withheld, and why."""
    lines: list[str] = []
    for reason in withheld:
        lines += ["", *wrapped(f"Withheld: {reason.settings}"), *wrapped(reason.words, "    ")]
    return lines


def wrapped(text: str, indent: str = "") -> list[str]:
    """A text in lines; no name is broken, nor what a no-break space holds together."""
    return textwrap.wrap(
        plain(text),
        _WIDE,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
