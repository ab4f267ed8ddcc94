"""Findings as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.findings.view import FindingsView, Row
from workbench.viz.style.plain_text import wrapped

_INDENT = "    "


def compared_findings_text(views: Sequence[FindingsView]) -> str:
    """The findings of each variant, below its label."""
    return "\n\n".join(f"{view.label}\n\n{findings_text(view)}" for view in views)


def findings_text(view: FindingsView) -> str:
    """The findings of one trace, a block each."""
    blocks = [_wrapped("".join(view.sentence), ""), _wrapped(view.summary, "")]
    blocks += [_wrapped(view.limit, "")] * bool(view.limit)
    blocks += [_row_text(row) for row in view.rows]
    if view.rest:
        cost, title, evidence = view.rest
        blocks.append(f"{cost} a step  {title}\n{_wrapped(evidence)}")
    if view.nothing:
        blocks.append(view.nothing)
    if view.gone:
        blocks.append("\n".join(f"gone  {title} ({cost} a step)" for title, cost in view.gone))
    return "\n\n".join(blocks)


def _row_text(row: Row) -> str:
    head = f"{row.cost} a step  {row.title}" + f" ({row.cause})" * bool(row.cause)
    mend = f"Mend: {row.mend}." + f" Toggle: {row.toggle}." * bool(row.toggle)
    mend += f" Gives {row.gain}." * bool(row.gain)
    evidence = "".join(text for text, _ in row.evidence)
    lines = [head, _wrapped(evidence), _wrapped(mend)]
    return "\n".join([*lines, *(f"{_INDENT}{source}" for source in row.sources)])


def _wrapped(text: str, indent: str = _INDENT) -> str:
    return "\n".join(wrapped(text, indent))
