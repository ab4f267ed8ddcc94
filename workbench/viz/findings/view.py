"""Findings → what their list shows, every string finished."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from workbench.core.analysis.findings.finding import Finding, Findings
from workbench.core.toggles.built_in import on_screen
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.viz.comparison.chart import shown_label
from workbench.viz.findings.fill import FillLine, fill_line
from workbench.viz.limit.sentence import limit_sentence
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

_NOTHING = "No open findings for this setting."
_MOST_NODES = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of a toggle beside the run whose finding names it.

    Attributes:
      predicted, measured: ratios to that run, in words; "" where they are not known.
      run: number of the run that measured it; 0 for none.
    """

    predicted: str = ""
    measured: str = ""
    run: int = 0


@dataclasses.dataclass(frozen=True)
class Row:
    """One finding.

    Attributes:
      cost: time of a step. bar: the same, as a part of the largest cost, 0 to 1.
      title, evidence, mend: as words; evidence in pieces, and whether each is a name.
      cause: what it explains of the wait, if that makes it the cause; else "".
      toggle: what to switch on; "" where only a change of code helps.
      gain: what that gives at most; "" where the trace cannot tell.
      names, sources: nodes, and lines of the user's code.
      nodes: the names, among these and in the evidence, that are of nodes.
      on_screen: the toggle's title and position in the panel; "" twice where there is none.
      trial: what came of the toggle; None outside of a panel.
    """

    cost: str
    bar: float
    title: str
    evidence: tuple[tuple[str, bool], ...]
    mend: str
    cause: str
    toggle: str
    gain: str
    names: tuple[str, ...]
    sources: tuple[str, ...]
    nodes: frozenset[str]
    on_screen: tuple[str, str]
    trial: Trial | None


@dataclasses.dataclass(frozen=True)
class FindingsView:
    """The findings of one trace.

    Attributes:
      label: of the variant; "" of a trace alone.
      sentence: what bounds the step, or the cause; its first piece is strong.
      summary: how long a step is, how much of it is wait, and what explains that.
      rows: the findings.
      rest: cost, title and evidence of the wait that nothing explains; None where there is none.
      gone: title and cost in the first variant of what is not found here.
      fills: of the stages' buffers.
      nothing: said where there is no finding; else "".
      limit: the steps against what the machine can do, a sentence; "" where that is not known.
    """

    label: str
    sentence: tuple[str, str]
    summary: str
    rows: tuple[Row, ...]
    rest: tuple[str, str, str] | None
    gone: tuple[tuple[str, str], ...]
    fills: tuple[FillLine, ...]
    nothing: str
    limit: str = ""


def findings_view(
    findings: Findings,
    label: str = "",
    gone: tuple[Row, ...] = (),
    trials: Mapping[str, Trial] | None = None,
) -> FindingsView:
    """What the list of one trace shows.

    Args:
      findings: of the trace.
      label: of the variant; "" of a trace alone.
      gone: what is found in the first variant and not here.
      trials: by toggle, what came of it; None outside of a panel.
    """
    most = max((each.cost_ns for each in findings), default=0.0)
    return FindingsView(
        label=plain(shown_label(label)) if label else "",
        sentence=_sentence(findings),
        summary=_summary(findings),
        rows=tuple(_row(each, each.cost_ns / most, trials) for each in findings),
        rest=_rest(findings),
        gone=tuple((row.title, row.cost) for row in gone),
        fills=_fills(findings),
        nothing="" if len(findings) else _NOTHING,
        limit="".join(limit_sentence(findings.limit)) if findings.limit else "",
    )


def compared_views(
    compared: ComparedFindings,
    label: str | None = None,
    trials: Mapping[str, Trial] | None = None,
) -> list[FindingsView]:
    """What the lists of all variants show; what the first alone has is gone in others.

    Args:
      compared: the findings.
      label: shows those of this variant alone.
      trials: as of `findings_view`.
    """
    return [
        findings_view(
            findings,
            variant,
            tuple(_row(each, 0.0, None) for each in compared.gone(variant)),
            trials,
        )
        for variant, findings in compared.variants
        if label in (None, variant)
    ]


def _sentence(findings: Findings) -> tuple[str, str]:
    for each in findings:
        if each.is_cause:
            wait = format.duration(findings.wait_ns)
            says = f"{each.title}: "
            return says, f"that is {format.share(each.wait_share)} of the wait of {wait} a step."
    first, _, rest = findings.verdict.words.partition(": ")
    return f"{first}: ", rest


def _summary(findings: Findings) -> str:
    said = (
        f"{format.integer(findings.steps)} steps of {format.duration(findings.step_ns)}; in each, "
        f"{format.duration(findings.wait_ns)} of the critical path are wait."
    )
    if any(each.is_cause for each in findings):
        return f"{said} {findings.verdict.words}"
    if len(findings) and findings.wait_ns:
        said += (
            f" No finding alone explains 80{format.NBSP}% of the wait, so none is called its cause."
            " Findings may share time, so their costs do not add up."
        )
    return said


def _row(finding: Finding, bar: float, trials: Mapping[str, Trial] | None) -> Row:
    gain, toggle = finding.gain_ns, finding.toggle
    return Row(
        cost=format.duration(finding.cost_ns),
        bar=bar,
        title=finding.title,
        evidence=_pieces(plain(finding.evidence)),
        mend=finding.mend,
        cause=f"explains {format.share(finding.wait_share)} of the wait" * finding.is_cause,
        toggle=toggle or "",
        gain="" if gain is None else f"at most {format.duration(gain)} a step",
        names=tuple(plain(name) for name in finding.nodes[:_MOST_NODES]),
        sources=tuple(plain(line) for line in finding.sources),
        nodes=frozenset(name for name in finding.nodes if plain(name) == name),
        on_screen=on_screen(toggle) if toggle else ("", ""),
        trial=trials.get(toggle) if trials and toggle else None,
    )


def _pieces(text: str) -> tuple[tuple[str, bool], ...]:
    """A text cut at the quotes around names: pieces, and whether each is a name."""
    return tuple((piece, i % 2 == 1) for i, piece in enumerate(text.split("`")) if piece)


def _rest(findings: Findings) -> tuple[str, str, str] | None:
    # What is not explained to the last µs would be a row in each list.
    if findings.not_explained_ns < 0.01 * findings.step_ns:
        return None
    part = format.share(findings.not_explained_ns / findings.wait_ns)
    cost = format.duration(findings.not_explained_ns)
    return cost, "Not explained", f"{part} of the wait; no finding says where it comes from."


def _fills(findings: Findings) -> tuple[FillLine, ...]:
    end = int(findings.trace.steps()["end_ns"].max())
    capacity = findings.trace.meta.capacity
    return tuple(
        fill_line(plain(str(stage)), changes, end, capacity.get(str(stage)))
        for stage, changes in findings.fill.groupby("stage", sort=False)
    )
