"""The answer of a served model: which setting, how many more requests, at which p99, what next."""

from __future__ import annotations

import dataclasses

from workbench.experiments.serving.findings import ServingFinding
from workbench.experiments.serving.points import Load
from workbench.experiments.serving.results import (
    ServedVariant,
    ServingComparison,
    ServingRatio,
)
from workbench.experiments.serving.table import too_low_words
from workbench.viz.comparison.answer import Answer, Pieces
from workbench.viz.comparison.chart import shown_label
from workbench.viz.serving.load_chart import rate_words
from workbench.viz.serving.loads import (
    estimate,
    row_counts,
    rows_name,
    telling_load,
    with_load,
)
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

# A p99 that is longer than this times the baseline's is said beside more requests a second.
_LONGER = 1.1
_FASTER, _FASTER_BUT_OTHER, _NO_DIFFERENCE, _SLOWER, _UNKNOWN = range(5)
_STANDINGS = {"no clear difference": _NO_DIFFERENCE, "slower": _SLOWER}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Result:
    """One setting beside the baseline, under the load that is told."""

    label: str
    rows: int
    per_s: ServingRatio
    p99: ServingRatio | None
    answers_alike: bool | None

    @property
    def standing(self) -> int:
        if self.per_s.verdict == "faster":
            return _FASTER_BUT_OTHER if self.answers_alike is False else _FASTER
        return _STANDINGS.get(self.per_s.verdict, _UNKNOWN)


def best_label(comparison: ServingComparison) -> str | None:
    """The setting that serves best; None where the baseline stands alone or answered nothing.

    One that is clearly faster and answers alike comes before one that only has the larger mean.
    """
    results = _results(comparison)
    return results[0].label if results else None


def serving_answer(comparison: ServingComparison, findings: tuple[ServingFinding, ...]) -> Answer:
    """The answer in a sentence, and what to do with it."""
    results = _results(comparison)
    if not results:
        return _alone(comparison, findings)
    best = results[0]
    return Answer(sentence=_sentence(comparison, results), next_step=_next(best, findings))


def more_news(comparison: ServingComparison) -> tuple[str, ...]:
    """What else the best setting changes: larger requests, and the rate within the limit."""
    label = best_label(comparison)
    if label is None:
        return ()
    lines = [_of_rows(comparison, label, rows) for rows in row_counts(comparison)[1:]]
    lines += [_of_limit(comparison, label, rows) for rows in row_counts(comparison)]
    return tuple(line for line in lines if line)


def answers_alike(comparison: ServingComparison, label: str) -> bool | None:
    """Whether a setting's outputs are the baseline's; None where they were not compared."""
    receipts = [receipt for receipt in comparison.receipts_of(label) if receipt.requests]
    return all(receipt.passed for receipt in receipts) if receipts else None


def _results(comparison: ServingComparison) -> list[_Result]:
    """Every setting with its ratios, the best first."""
    rows = row_counts(comparison)[0]
    load = telling_load(comparison, rows)
    results = []
    for variant in comparison.variants[1:]:
        per_s = comparison.per_s_ratio(variant.label, load, rows)
        if per_s is not None:
            results.append(
                _Result(
                    label=variant.label,
                    rows=rows,
                    per_s=per_s,
                    p99=comparison.latency_ratio(variant.label, load, rows),
                    answers_alike=answers_alike(comparison, variant.label),
                )
            )
    return sorted(results, key=lambda result: (result.standing, -result.per_s.interval.value))


def _sentence(comparison: ServingComparison, results: list[_Result]) -> Pieces:
    best = results[0]
    other = _base_name(comparison)
    where = _where(comparison, best.rows)
    ratio = format.ratio(best.per_s.interval.value)
    interval = f"95{format.NBSP}% interval {_range(best.per_s)}"
    end = (*_p99_words(best), *_answers_words(best))
    if best.standing == _NO_DIFFERENCE:
        lead = f": {best.label} answers {ratio} the requests a second of {other} {where}"
        if len(results) > 1:
            lead = (
                f": none of {len(results)} settings answers clearly more requests a second than "
                f"{other} {where}. The nearest is {best.label}, {ratio}"
            )
        return (("No clear difference", True), (f"{lead} ({interval})", False), *end)
    if best.standing == _SLOWER and len(results) > 1:
        lead = f" than {other} {where}. The least slow of {len(results)} is {best.label}, "
        return (("Every setting is slower", True), (f"{lead}{ratio} ({interval})", False), *end)
    rank = f", the best of {len(results)} settings" if len(results) > 1 else ""
    return (
        (f"{shown_label(best.label)} answers ", False),
        (f"{ratio} the requests a second", True),
        (f" of {other} {where} ({interval}){rank}", False),
        *end,
    )


def _p99_words(best: _Result) -> Pieces:
    if best.p99 is None:
        return ()
    ratio = format.ratio(best.p99.interval.value)
    return ((", p99 ", False), (ratio, True), (f" ({_range(best.p99)})", False))


def _answers_words(best: _Result) -> Pieces:
    if best.answers_alike is None:
        return (("; whether the answers are the same was not checked.", False),)
    if best.answers_alike:
        return ((", and the answers are the same.", False),)
    return (("; the answers are ", False), ("not the same", True), (".", False))


def _next(best: _Result, findings: tuple[ServingFinding, ...]) -> str:
    longer = best.p99 is not None and best.p99.interval.low > _LONGER
    if best.standing == _FASTER:
        words = f"Serve with {best.label}; code for a session of your own is below."
        if longer:
            words += f" Its p99 is longer.{_mend(best.label, findings)}"
        return words
    if best.standing == _FASTER_BUT_OTHER:
        return (
            f"Leave {best.label} off until the difference in the receipt is understood; no setting "
            "that answers alike is clearly faster."
        )
    if best.standing == _NO_DIFFERENCE:
        return (
            "Leave all off, or measure longer if a difference this small matters: four times the "
            "budget makes the interval about half as wide."
        )
    return "Leave all off for this model, requests and machine; the findings say what holds it up."


def _mend(label: str, findings: tuple[ServingFinding, ...]) -> str:
    """What the setting's own findings say to do about its p99; "" where none does."""
    mends = [
        finding.mend
        for finding in findings
        if finding.label == label and finding.toggle == "steps_at_once"
    ]
    return f" {mends[0]}" if mends else ""


def _alone(comparison: ServingComparison, findings: tuple[ServingFinding, ...]) -> Answer:
    """The answer where no setting stands beside the baseline, or where nothing was answered."""
    rows = row_counts(comparison)[0]
    base, load = comparison.baseline, telling_load(comparison, rows)
    point = base.point(load, rows)
    if point.per_s is None or point.latency is None:
        error = f": {plain(point.first_error)}" if point.first_error else ""
        return Answer(
            sentence=(("No answer", True), (f" {_where(comparison, rows)}{error}.", False)),
            next_step="Send one of these requests by itself, and mend the model or the request.",
        )
    p99 = format.duration(point.latency.p99_ns.value)
    first = findings[0].mend if findings else ""
    why, next_step = _no_ratio(comparison, load, rows)
    return Answer(
        sentence=(
            (f"{shown_label(base.label)} answers ", False),
            (rate_words(estimate(point.per_s)), True),
            (f" {_where(comparison, rows)}, p99 {p99}.{why}", False),
        ),
        next_step=next_step or first or "Measure it beside a setting: give it a toggle.",
    )


def _no_ratio(comparison: ServingComparison, load: Load, rows: int) -> tuple[str, str]:
    """Why no setting has a ratio, and what to do; "" twice where the baseline stands alone."""
    others = [(v.label, v.point(load, rows)) for v in comparison.variants[1:]]
    if not others:
        return "", ""
    empty = next(((label, point) for label, point in others if point.per_s is None), None)
    if empty is not None:
        label, point = empty
        error = f": {plain(point.first_error)}" if point.first_error else ""
        return (
            f" A block of {label} has no answer{error}.",
            "Look at that error, or measure with longer blocks: a larger budget.",
        )
    return (
        " One round gives no ratio.",
        "Measure with more rounds: two give a ratio, five say more.",
    )


def _of_rows(comparison: ServingComparison, label: str, rows: int) -> str:
    load = telling_load(comparison, rows)
    per_s = comparison.per_s_ratio(label, load, rows)
    if per_s is None:
        return ""
    p99 = comparison.latency_ratio(label, load, rows)
    tail = f", p99 {format.ratio(p99.interval.value)} ({_range(p99)})" if p99 else ""
    return (
        f"With {rows_name(rows)} and {with_load(load).removeprefix('with ')} it answers "
        f"{format.ratio(per_s.interval.value)} the requests a second ({_range(per_s)}){tail}."
    )


def _of_limit(comparison: ServingComparison, label: str, rows: int) -> str:
    best, base = _rate(comparison.variant(label), rows), _rate(comparison.baseline, rows)
    ratio = comparison.rate_ratio(label, rows)
    limit = comparison.baseline.rate_at_limit(rows)
    if not best or limit is None or (ratio is None and limit.below is None):
        return ""
    size = f" with {rows_name(rows)}" if len(row_counts(comparison)) > 1 else ""
    tail = f": {format.ratio(ratio.interval.value)} ({_range(ratio)})" if ratio else ""
    return (
        f"Within a p99 of {format.duration(limit.limit_ns)}{size} it takes {best} instead of "
        f"{base or too_low_words(limit)}{tail}."
    )


def _rate(variant: ServedVariant, rows: int) -> str:
    at_limit = variant.rate_at_limit(rows)
    per_s = at_limit.per_s if at_limit else None
    if at_limit is None or per_s is None:
        return ""
    return "at least " * at_limit.at_least + rate_words(estimate(per_s))


def _where(comparison: ServingComparison, rows: int) -> str:
    size = f" and {rows_name(rows)}" if len(row_counts(comparison)) > 1 else ""
    return with_load(telling_load(comparison, rows)) + size


def _base_name(comparison: ServingComparison) -> str:
    """The baseline inside a sentence."""
    return "all off" if comparison.baseline.label == "off" else comparison.baseline.label


def _range(ratio: ServingRatio) -> str:
    return format.ratio_range(ratio.interval.low, ratio.interval.high)
