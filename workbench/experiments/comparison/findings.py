"""Findings of a trace, or of each variant of a comparison that has one."""

from __future__ import annotations

import dataclasses
from typing import overload

import pandas as pd

from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Finding, Findings
from workbench.core.analysis.limit.limit import Limit
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import DataError
from workbench.experiments.comparison.limit import known_limit
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.program.toggles import SMART_STAGE, TOGGLES


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ComparedFindings(Displayed):
    """Findings of the variants of a comparison.

    Attributes:
      variants: label and findings of each variant that has a trace, the baseline first.
    """

    variants: tuple[tuple[str, Findings], ...]

    def __repr__(self) -> str:
        return f"ComparedFindings({', '.join(label for label, _ in self.variants)})"

    def __getitem__(self, label: str) -> Findings:
        for each, findings in self.variants:
            if each == label:
                return findings
        known = ", ".join(repr(each) for each, _ in self.variants)
        raise KeyError(f"no variant {label!r} has a trace; expected one of {known}")

    def gone(self, label: str) -> tuple[Finding, ...]:
        """What was found in the first variant and is not in this one."""
        open_here = {each.key for each in self[label]}
        return tuple(each for each in self.variants[0][1] if each.key not in open_here)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each finding of each variant."""
        tables = [findings.df.assign(variant=label) for label, findings in self.variants]
        table = pd.concat(tables, ignore_index=True)
        return table[["variant", *(name for name in table.columns if name != "variant")]]


@overload
def findings(of: Trace) -> Findings: ...
@overload
def findings(of: Comparison) -> ComparedFindings: ...
def findings(of: Trace | Comparison) -> Findings | ComparedFindings:
    """What makes steps slow, in words: ranked, each with its evidence, its cost and what mends it.

    Args:
      of: a trace taken by Workbench's own tracer, or a comparison whose variants have such traces.
        Of a trace without the answer of the rules of fusion, see `CaptureHook.start`, no batch
        normalization and no interaction is found.

    Raises:
      TraceError: a trace has no steps, or does not know which op feeds which.
      DataError: the comparison has no trace.
    """
    if isinstance(of, Trace):
        return dataclasses.replace(find(of), limit=known_limit(of))
    first = sorted(of.variants, key=lambda variant: variant.label != of.baseline)
    traced = [(each, each.trace) for each in first if each.trace is not None]
    if not traced:
        raise DataError("no variant of the comparison has a trace; compare again with trace_steps")
    return ComparedFindings(
        variants=tuple(
            (each.label, _knowing(each, find(trace), known_limit(trace, of)))
            for each, trace in traced
        )
    )


def _knowing(variant: MeasuredVariant, findings: Findings, limit: Limit | None) -> Findings:
    """The findings without toggles that are on already, and with what is known of the limit."""
    return dataclasses.replace(
        findings,
        limit=limit,
        findings=tuple(_without_toggle_that_is_on(variant, finding) for finding in findings),
    )


def _without_toggle_that_is_on(variant: MeasuredVariant, finding: Finding) -> Finding:
    if finding.toggle is None or finding.toggle not in _toggles_of(variant):
        return finding
    reasons = [edit.reason for edit in variant.plan.edits] if variant.plan else []
    if finding.toggle == SMART_STAGE and reasons:
        mend = f"SmartStage is on and leaves it so: {reasons[0]}"
    else:
        mend = f"{finding.toggle} is on already, and this is left: {finding.mend}"
    return dataclasses.replace(finding, toggle=None, mend=mend)


def _toggles_of(variant: MeasuredVariant) -> set[str]:
    """The toggles of a variant, by the words of its label."""
    words = variant.label.lower().split(" + ")
    return {name for name in TOGGLES if name.replace("_", " ") in words}
