"""What still makes a setting slow, a line each."""

from __future__ import annotations

import dataclasses

from workbench.errors import WorkbenchError
from workbench.experiments.comparison.findings import ComparedFindings, findings
from workbench.experiments.comparison.results import Comparison
from workbench.viz.findings.view import findings_view

_MOST = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class FindingLine:
    """One finding: its cost in a step, what it is, what mends it, and what that gives at most."""

    cost: str
    title: str
    mend: str
    gain: str


def found_in(comparison: Comparison, label: str) -> ComparedFindings | None:
    """The findings of a variant beside the baseline's; None where no trace tells."""
    kept = tuple(v for v in comparison.variants if v.label in (comparison.baseline, label))
    try:
        compared = findings(dataclasses.replace(comparison, variants=kept))
    except WorkbenchError:
        return None
    return compared if label in dict(compared.variants) else None


def finding_lines(compared: ComparedFindings | None, label: str) -> tuple[FindingLine, ...]:
    """The findings of a variant that cost most."""
    if compared is None:
        return ()
    rows = findings_view(compared[label]).rows[:_MOST]
    return tuple(
        FindingLine(cost=row.cost, title=row.title, mend=row.mend, gain=row.gain) for row in rows
    )
