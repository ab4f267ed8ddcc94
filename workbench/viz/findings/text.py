"""Findings as plain text."""

from __future__ import annotations

import textwrap

from workbench.core.analysis.findings.finding import Findings
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.viz.findings.view import FindingsView, Row, compared_views, findings_view

_WIDE = 100
_INDENT = "    "


def findings_text(findings: Findings) -> str:
    """The findings of one trace, a block each."""
    return _view_text(findings_view(findings))


def compared_findings_text(compared: ComparedFindings) -> str:
    """The findings of each variant, below its label."""
    return "\n\n".join(f"{v.label}\n\n{_view_text(v)}" for v in compared_views(compared))


def _view_text(view: FindingsView) -> str:
    blocks = [_wrapped("".join(view.sentence), ""), _wrapped(view.summary, "")]
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
    # Names are not broken, spaces that hold a number and its unit together neither.
    return textwrap.fill(
        text,
        _WIDE,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
