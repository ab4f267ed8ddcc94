"""The answer of one or several comparisons: the best variant, by how much, and what to do next."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.equivalence import Equivalence, asked_otherwise
from workbench.viz.comparison.chart import shown_label
from workbench.viz.style import format

Pieces = tuple[tuple[str, bool], ...]

# What a part of a label is called in a program.
_SWITCHES = {
    "stage": "wb.staged(…)",
    "smart stage": "wb.smart_stage(…), or wb.prepare_config(…) for a session",
    "moved boundary": (
        "wb.smart_stage(…), or wb.prepare_config(…) for a session, with its include=… and exclude=…"
    ),
    "fused V1": 'wb.fused_embeddings("v1")',
    "fused V2": 'wb.fused_embeddings("v2")',
    "fused grouped": 'wb.fused_embeddings("grouped")',
    "auto fused": "wb.apply(wb.plan_fusion(graph), config), or wb.fuse_function(…) for a function",
    "inline executor": 'wb.executor("inline"), or wb.executor_options("inline") for a session',
    "cost model executor": (
        'wb.executor("cost_model"), or wb.executor_options("cost_model") for a session'
    ),
}
_FASTER, _FASTER_BUT_OTHER, _NO_DIFFERENCE, _SLOWER, _UNKNOWN = range(5)
_STANDINGS = {"no clear difference": _NO_DIFFERENCE, "slower": _SLOWER}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What is read first.

    Attributes:
      sentence: the result, as (text, strong) pieces.
      next_step: what to do with it, one or two sentences.
    """

    sentence: Pieces
    next_step: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """One variant of one of the comparisons, or one run of a session.

    Attributes:
      comparison: where it was measured.
      ratio: to what the others stand against, too.
      checks: whether it trains the same; empty where that was not compared.
      where: the words for where it was measured.
    """

    comparison: Comparison
    ratio: Ratio
    checks: Sequence[Equivalence]
    where: str = ""

    @property
    def is_faster(self) -> bool:
        """Whether it is clearly faster, however it trains."""
        return self.ratio.verdict == "faster"

    @property
    def rank(self) -> tuple[int, float]:
        """Sorts results, the best first: its standing, and among equals the larger ratio."""
        return self.standing, -self.ratio.ratio

    @property
    def standing(self) -> int:
        if self.is_faster:
            return _FASTER if self.trains_the_same else _FASTER_BUT_OTHER
        return _STANDINGS.get(self.ratio.verdict, _UNKNOWN)

    @property
    def asked_otherwise(self) -> str:
        """What was asked for that makes it another training, in words."""
        check = asked_otherwise(self.checks)
        return check.asked_otherwise if check else ""

    @property
    def trains_the_same(self) -> bool:
        """Whether no check says otherwise."""
        return all(check.passed for check in self.checks)


def best_ratio(comparison: Comparison) -> Ratio | None:
    """The ratio of the best variant; None where the baseline stands alone.

    A variant that is clearly faster and trains the same comes before one that only has the larger
    mean; among equals the larger ratio counts.
    """
    results = _results([("", comparison)])
    return results[0].ratio if results else None


def ranked_labels(comparison: Comparison) -> list[str]:
    """The labels of all variants, the best first; the baseline stands behind what is faster."""
    results = _results([("", comparison)])
    faster = [r.ratio.label for r in results if r.is_faster]
    others = [r.ratio.label for r in results if r.ratio.label not in faster]
    return [*faster, comparison.baseline, *others]


def best_first(comparisons: Sequence[Comparison]) -> list[int]:
    """The places of comparisons, that with the best result first."""
    results = _results([("", comparison) for comparison in comparisons])
    order = [id(result.comparison) for result in results]
    rank = {comparison: place for place, comparison in reversed(list(enumerate(order)))}
    places = range(len(comparisons))
    return sorted(places, key=lambda place: rank.get(id(comparisons[place]), len(order)))


def is_faster(comparison: Comparison) -> bool:
    """Whether the best variant is clearly faster and trains the same."""
    results = _results([("", comparison)])
    return bool(results) and results[0].standing == _FASTER


def answer(comparison: Comparison) -> Answer:
    """The answer of one comparison."""
    return _answer([("", comparison)])


def overall_answer(named: Sequence[tuple[str, Comparison]]) -> Answer:
    """The answer of several comparisons.

    Args:
      named: what sets a comparison apart, such as "with input latency 12 ms", and the comparison.
    """
    return _answer([(f" {name}" if name else "", comparison) for name, comparison in named])


def _answer(named: Sequence[tuple[str, Comparison]]) -> Answer:
    results = _results(named)
    if not results:
        return _alone(named[0][1])
    return Answer(sentence=_sentence(results), next_step=next_step(results))


def _results(named: Sequence[tuple[str, Comparison]]) -> list[Result]:
    """Every variant of every comparison, the best first."""
    results = [
        Result(
            comparison=comparison,
            ratio=ratio,
            checks=comparison.checks_of(ratio.label),
            where=where,
        )
        for where, comparison in named
        for ratio in comparison.ratios
    ]
    return sorted(results, key=lambda result: result.rank)


def _alone(comparison: Comparison) -> Answer:
    first = comparison.variants[0]
    rate = format.rate_between(first.steps_per_s, first.low, first.high)
    return Answer(
        sentence=((f"{shown_label(first.label)} trains at ", False), (rate, True), (".", False)),
        next_step=next_step([]),
    )


def _sentence(results: Sequence[Result]) -> Pieces:
    best, count = results[0], len(results)
    label, ratio = best.ratio.label, format.ratio(best.ratio.ratio)
    # "all off" inside a sentence, other labels as the user wrote them
    other = "all off" if best.comparison.baseline == "off" else best.comparison.baseline
    interval = f"95{format.NBSP}% interval "
    interval += format.ratio_range(best.ratio.low, best.ratio.high)
    end = _training(best)
    if best.standing == _NO_DIFFERENCE:
        lead = f": {label} trains {ratio} as fast as {other} ({interval}){best.where}"
        if count > 1:
            lead = (
                f": none of {_counted(results)} trains clearly faster than {other}. The nearest is "
                f"{label}{best.where}, {ratio} as fast ({interval})"
            )
        return (("No clear difference", True), (lead, False), *end)
    if best.standing == _SLOWER and count > 1:
        lead = f" than {other}. The least slow of {_counted(results)} is {label}{best.where}, "
        words = f"{lead}{ratio} as fast ({interval})"
        return (("Every variant is slower", True), (words, False), *end)
    rank = f", the best of {_counted(results)}" if count > 1 and best.standing == _FASTER else ""
    return (
        (f"{shown_label(label)} trains ", False),
        (f"{ratio} as fast", True),
        (f" as {other} ({interval}){best.where}{rank}", False),
        *end,
    )


def _counted(results: Sequence[Result]) -> str:
    inputs = len({id(result.comparison) for result in results})
    if inputs == 1:
        return f"{len(results)} variants"
    return f"{len(results)} results with {inputs} inputs"


def _training(best: Result) -> Pieces:
    """The end of the sentence: is it the same training?"""
    if not best.checks:
        return (("; whether the training is the same was not checked.", False),)
    if best.asked_otherwise:
        words = (best.asked_otherwise, True)
        return (("; it trains another way: ", False), words, (".", False))
    if not best.trains_the_same:
        return (("; the training is ", False), ("not the same", True), (".", False))
    losses = any("loss" in check.kind for check in best.checks)
    return ((f", and the {'training is' if losses else 'batches are'} the same.", False),)


def next_step(results: Sequence[Result]) -> str:
    """What to do with some results, the best first; one or two sentences."""
    if not results:
        return "Measure it beside an optimization: give compare a toggle."
    best = results[0]
    if best.standing == _FASTER:
        return _switch_on(best) + _as_good(best, results)
    if best.standing == _FASTER_BUT_OTHER and best.asked_otherwise:
        return (
            f"Look at its losses beside the baseline's before you train with {best.ratio.label}; "
            "no variant that trains the same is clearly faster."
        )
    if best.standing == _FASTER_BUT_OTHER:
        return (
            f"Leave {best.ratio.label} off until the difference in the equivalence receipt is "
            "understood; no variant that trains the same is clearly faster."
        )
    if best.standing == _NO_DIFFERENCE:
        return (
            "Leave all off, or measure longer if a difference this small matters: four times the "
            "budget makes the interval about half as wide."
        )
    if best.standing == _SLOWER:
        return (
            "Leave all off for this model, data and machine. The timelines show what bounds a step."
        )
    return "Measure again: the verdicts of this comparison are not known."


def _switch_on(best: Result) -> str:
    parts = best.ratio.label.split(" + ")
    if not all(part in _SWITCHES for part in parts):
        return f"Train with {best.ratio.label}."
    return f"Train with {'; '.join(_SWITCHES[part] for part in parts)}."


def _as_good(best: Result, results: Sequence[Result]) -> str:
    """Other variants of the same comparison that may be as fast."""
    near = [
        f"{each.ratio.label} ({format.ratio(each.ratio.ratio)})"
        for each in results[1:]
        if each.comparison is best.comparison
        and each.standing == _FASTER
        and each.ratio.ratio >= best.ratio.low
    ]
    if not near:
        return ""
    *first, last = near
    names = f"{', '.join(first)} and {last}" if first else last
    verb = "lie" if first else "lies"
    return f" {shown_label(names)} {verb} within its interval: take what is simplest to switch on."
