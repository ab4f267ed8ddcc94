"""What was found then and now, as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.regression.rerun import Again
from workbench.viz.comparison.chart import shown_label
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain

_MACHINE = ("cpu", "cores", "tensorflow", "workbench")


def rerun_text(again: Sequence[Again], then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The verdict, every variant then and now, and what else differs.

    Args:
      again: the variants.
      then, now: the environments.
    """
    heads = ("Variant", "then", "95\u00a0%", "now", "95\u00a0%", "now / then", "95\u00a0%", "")
    rows = [_row(each) for each in again]
    lines = [_sentence(again), "", *aligned([heads, *rows], left={0, len(heads) - 1})]
    notes = [
        f"{key} is {now.get(key)!r} now and was {then.get(key)!r}."
        for key in _MACHINE
        if now.get(key) != then.get(key)
    ]
    return "\n".join(plain(line) for line in [*lines, *([""] if notes else []), *notes])


def _sentence(again: Sequence[Again]) -> str:
    if not again:
        return "Nothing was compared: only the baseline was measured."
    for standing, words in (("no longer", "No longer holds"), ("not clear", "Not clear")):
        named = [each.then.label for each in again if each.standing == standing]
        if named:
            return f"{words}: {', '.join(named)} ({len(named)} of {len(again)})."
    count = len(again)
    return f"Still holds: {again[0].then.label if count == 1 else f'all {count} variants'}."


def _row(again: Again) -> tuple[str, ...]:
    change = again.change
    return (
        shown_label(again.then.label),
        *_ratio(again.then),
        *_ratio(again.now),
        format.ratio(change.value),
        format.ratio_range(change.low, change.high),
        again.standing,
    )


def _ratio(ratio: Ratio) -> tuple[str, str]:
    return format.ratio(ratio.ratio), format.ratio_range(ratio.low, ratio.high)
