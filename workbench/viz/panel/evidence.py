"""Evidence view: the rounds so far of each variant, as finished words and fractions of one axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from workbench.experiments.measurement.evidence import Evidence
from workbench.viz.comparison.chart import shown_label
from workbench.viz.comparison.rounds import in_points
from workbench.viz.style import format

# The axis of ratios is one of logarithms, and at least this wide to either side of 1.
_LEAST_SPAN = math.log(1.25)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """The rounds so far of one variant.

    Attributes:
      label: the variant.
      dots: the ratio of each round, as fractions of the axis; means of some where there are many.
      low, at, high: the interval and the mean, as fractions of the axis; None where too few rounds
        have run.
      words: the mean and its interval.
      verdict: what the interval lets one say so far.
      rounds: how many have run of how many, in words.
    """

    label: str
    dots: tuple[float, ...]
    low: float | None
    at: float
    high: float | None
    words: str
    verdict: str
    rounds: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvidenceView:
    """What the blocks so far say.

    Attributes:
      rows: one for each variant.
      one: where 1× is on the axis.
      first, last: the ends of the axis, in words.
      final: whether no more rounds come.
    """

    rows: tuple[EvidenceRow, ...]
    one: float
    first: str
    last: str
    final: bool


def evidence_view(evidence: Sequence[Evidence]) -> EvidenceView | None:
    """The view of what the blocks so far say; None before the first round."""
    if not evidence:
        return None
    drawn = [math.log(ratio) for said in evidence for ratio in in_points(said.ratios)]
    span = max(_LEAST_SPAN, *(abs(log) for log in drawn))
    return EvidenceView(
        rows=tuple(_row(said, span) for said in evidence),
        one=_at(1.0, span),
        first=format.ratio(math.exp(-span)),
        last=format.ratio(math.exp(span)),
        final=all(said.final for said in evidence),
    )


def _row(evidence: Evidence, span: float) -> EvidenceRow:
    interval = evidence.interval
    known = math.isfinite(interval.high)
    return EvidenceRow(
        label=shown_label(evidence.label),
        dots=tuple(round(_at(ratio, span), 4) for ratio in in_points(evidence.ratios)),
        low=_at(interval.low, span) if known else None,
        at=_at(interval.value, span),
        high=_at(interval.high, span) if known else None,
        words=ratio_words(evidence),
        verdict=verdict_words(evidence),
        rounds=f"{len(evidence.ratios)} of {evidence.rounds} rounds",
    )


def _at(ratio: float, span: float) -> float:
    """A ratio as a fraction of the axis; an interval may be wider than all that has run."""
    if ratio <= 0:
        return 0.0
    return min(1.0, max(0.0, (math.log(ratio) + span) / (2 * span)))


def ratio_words(evidence: Evidence) -> str:
    """The mean with its interval: "1.49× (1.31–1.70)"."""
    interval = evidence.interval
    words = format.ratio(interval.value)
    if not math.isfinite(interval.high):
        return words
    return f"{words} ({format.ratio_range(interval.low, interval.high)})"


def verdict_words(evidence: Evidence) -> str:
    """What the interval lets one say: "faster", "slower", "no difference" or "not clear yet"."""
    interval = evidence.interval
    if interval.low > 1:
        return "faster"
    if interval.high < 1:
        return "slower"
    if evidence.is_clear:
        return "no difference"
    return "no clear difference" if evidence.final else "not clear yet"
