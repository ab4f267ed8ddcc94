"""An alignment as plain text."""

from __future__ import annotations

from workbench.viz.alignment.view import AlignmentView
from workbench.viz.style.plain_text import aligned, plain
from workbench.viz.style.table import table_lines


def alignment_text(view: AlignmentView) -> str:
    """An alignment's view as plain text: answer, notes, parts of the difference, nodes, runs."""
    rows = [(bar.label, bar.about, bar.a, bar.b, bar.difference) for bar in view.bars]
    lines = ["".join(text for text, _ in view.sentence), view.counts, *view.notes, ""]
    lines += aligned([("", "", *view.labels, "difference"), *rows], left={0, 1})
    lines += [view.caption, ""]
    for table in (view.nodes, view.runs):
        lines += [f"{table.caption}:", *table_lines(table), ""]
    return "\n".join(plain(line) for line in lines).rstrip()
