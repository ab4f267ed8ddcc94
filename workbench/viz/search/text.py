"""A search as plain text."""

from __future__ import annotations

import textwrap

from workbench.experiments.search.best import Best
from workbench.viz.predictions.text import wrapped
from workbench.viz.search.view import SearchView, search_view
from workbench.viz.style.plain_text import aligned, plain


def search_text(found: Best) -> str:
    """The answer, every setting that was measured, why others were not, and the code."""
    view = search_view(found)
    lines = wrapped(f"{view.program}: " + "".join(text for text, _ in view.sentence))
    lines += wrapped(" ".join(filter(None, [view.receipt, view.spent])))
    lines += ["", *_table(view), f"{view.caption}."]
    for note in view.notes:
        lines += wrapped(note)
    for reason in view.not_measured:
        lines += ["", *wrapped(f"Not measured: {reason.settings}"), *wrapped(reason.words, "    ")]
    lines = [plain(line) for line in lines]
    code = [textwrap.indent(each, "    ") for each in (view.code, view.in_program)]
    return "\n".join([*lines, "", "Measure it again:", code[0], "", "In a program:", code[1]])


def _table(view: SearchView) -> list[str]:
    heads = ["Setting", "ratio", "95\u00a0%", "rounds", "outcome"]
    rows = [[r.label, r.ratio, r.interval, r.rounds, r.outcome] for r in view.rows]
    if view.predicts:
        heads.insert(3, "predicted")
        for cells, row in zip(rows, view.rows, strict=True):
            cells.insert(3, row.predicted)
    return aligned([heads, *rows], left={0, len(heads) - 1})
