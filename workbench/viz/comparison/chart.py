"""The charts of a comparison, as fractions of an axis that starts at 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.viz.comparison.rounds import in_points, point_words
from workbench.viz.style import format

_MOST_TICKS = 4
# Letters of a tick's words that stand beside those of the next one.
_SHORT_TICK = 3
# height of a line of words in the chart of blocks, as a fraction of its axis
_LINE = 0.12


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """Blocks of one variant: heights as fractions of the axis, the mean's too, and its words.

    `text_at` is where the words stand: at the mean, or apart from another's words there. Where
    there are many blocks, a point stands for some of them, as `point_words` says.
    """

    label: str
    points: tuple[float, ...]
    rounds: int
    point_words: str
    mean: float
    mean_text: str
    text_at: float
    baseline: bool


def shown_label(label: str) -> str:
    """A variant's label as a table shows it: "off" is "All off"."""
    return "All off" if label == "off" else label[:1].upper() + label[1:]


def tick_values(comparison: Comparison) -> list[float]:
    """Round values from 0 to the first at or above all that is drawn."""
    return ticks_to(_most(comparison))


def ticks_to(most: float) -> list[float]:
    """Round values from 0 to the first at or above `most`, at most four steps."""
    most = max(most, 1e-9)
    power = 10.0 ** (math.floor(math.log10(most)) - 1)
    for factor in (1, 2, 2.5, 5, 10, 20, 25, 50):
        step = factor * power
        if most / step <= _MOST_TICKS:
            break
    return [n * step for n in range(math.ceil(most / step - 1e-9) + 1)]


def labeled_ticks(ticks: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """(fraction of the axis, words) of ticks from 0 on; "" where words would meet the next ones."""
    texts, last = [f"{value:g}" for value in ticks], len(ticks) - 1
    if max(map(len, texts)) > _SHORT_TICK and last > 1:
        every = last if last % 2 else 2
        texts = [text if place % every == 0 else "" for place, text in enumerate(texts)]
    return tuple((value / ticks[-1], text) for value, text in zip(ticks, texts, strict=True))


def predicted_rate(comparison: Comparison, ratio: Ratio | None) -> float | None:
    """Steps/s that a plan has predicted for a variant; None where it has not."""
    baseline = next(
        (v.steps_per_s for v in comparison.variants if v.label == comparison.baseline), None
    )
    if ratio is None or ratio.predicted is None or baseline is None:
        return None
    return ratio.predicted * baseline


def series_of(comparison: Comparison, shown: Ratio | None, axis: float) -> tuple[Series, ...]:
    """Blocks in the order they ran: of the baseline and of the variant that is shown."""
    wanted = {comparison.baseline, shown.label if shown else comparison.baseline}
    drawn = [
        variant
        for variant in comparison.variants
        if variant.label in wanted and len(variant.block_steps_per_s) > 1
    ]
    means = [variant.steps_per_s / axis for variant in drawn]
    return tuple(
        Series(
            label=shown_label(variant.label),
            points=tuple(rate / axis for rate in in_points(variant.block_steps_per_s)),
            rounds=len(variant.block_steps_per_s),
            point_words=point_words(len(variant.block_steps_per_s)),
            mean=mean,
            text_at=_apart(mean, means),
            mean_text=format.rate(variant.steps_per_s, unit="").rstrip(),
            baseline=variant.label == comparison.baseline,
        )
        for variant, mean in zip(drawn, means, strict=True)
    )


def _most(comparison: Comparison) -> float:
    rates = [bound.steps_per_s for bound in comparison.bounds]
    for variant in comparison.variants:
        rates += [variant.steps_per_s, *variant.block_steps_per_s]
        rates += [variant.high] if math.isfinite(variant.high) else []
    predicted = [predicted_rate(comparison, ratio) for ratio in comparison.ratios]
    return max([*rates, *(rate for rate in predicted if rate is not None)])


def _apart(mean: float, means: Sequence[float]) -> float:
    """The mean, or a little to its side of the middle where the words of two would overlap."""
    low, high = min(means), max(means)
    if high - low >= _LINE or low == high:
        return mean
    middle = (low + high) / 2
    return middle + (_LINE / 2 if mean == high else -_LINE / 2)
