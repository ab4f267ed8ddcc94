"""A critical path as plain text."""

from __future__ import annotations

from workbench.viz.critical_path.view import CriticalPathView
from workbench.viz.style import colors
from workbench.viz.style.plain_text import aligned, plain
from workbench.viz.style.table import table_lines

# Letters of a whole step in the waterfall.
_WIDTH = 48


def critical_path_text(view: CriticalPathView) -> str:
    """The answer, the waterfall of one step, shares and the largest nodes."""
    lines = [f"Critical path of {view.title}" if view.title else "Critical path"]
    lines += ["".join(text for text, _ in view.sentence), "", view.step.heading]
    lines += aligned(
        [[f"{bar.name} {bar.more}", _drawn(bar.left, bar.width, bar.family), bar.time, bar.detail]
         for bar in view.step.bars],
        left={0, 1, 3},
    )  # fmt: skip
    lines += ["", view.parts_caption]
    lines += aligned([[part.name, part.time, part.share] for part in view.parts], left={0})
    for table in (view.scopes, view.features, view.lanes):
        if table:
            lines += ["", table.caption, *table_lines(table)]
    lines += ["", view.slack_caption]
    if view.slack.bars:
        lines += aligned([[group.name, group.slack] for group in view.slack.bars], left={0})
    lines.append(view.slack.note)
    heads = ["Node", "Op", "Family or wait", "a step", "share", "slack", "source"]
    rows = [[n.name, n.op, n.kind, n.time, n.share, n.slack, n.source] for n in view.nodes]
    lines += ["", view.nodes_caption, *aligned([heads, *rows], left={0, 1, 2, 6})]
    return "\n".join(plain(line) for line in lines)


def _drawn(left: float, width: float, family: int) -> str:
    """A bar of letters; what waits is drawn with dots."""
    begin = round(left * _WIDTH)
    long = max(1, round((left + width) * _WIDTH) - begin)
    begin = min(begin, _WIDTH - long)
    return " " * begin + ("·" if family == colors.WAIT else "█") * long
