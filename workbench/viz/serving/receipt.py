"""Whether the settings answer as the baseline does: one sentence, and each exception."""

from __future__ import annotations

import dataclasses

from workbench.experiments.serving.results import Receipt, ServingComparison
from workbench.number_words import counted
from workbench.viz.comparison.chart import shown_label
from workbench.viz.serving.throughput import receipt_words
from workbench.viz.style.plain_text import plain


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerReceipt:
    """Whether the settings answer alike.

    Attributes:
      sentence: how many do, and on how many requests.
      checks: (setting and rows, result, whether it is other) of each that is not bit-equal.
    """

    sentence: str
    checks: tuple[tuple[str, str, bool], ...]


def answer_receipt(comparison: ServingComparison) -> AnswerReceipt:
    """The receipt of a comparison."""
    receipts = comparison.receipts
    return AnswerReceipt(
        sentence=_sentence(receipts),
        checks=tuple(
            (_name(one), receipt_words(one), one.differs) for one in receipts if not one.bit_equal
        ),
    )


def _sentence(of_all: tuple[Receipt, ...]) -> str:
    receipts = [one for one in of_all if one.requests]
    if not receipts:
        return "The answers of settings were not compared."
    labels = list(dict.fromkeys(one.label for one in receipts))
    other = {one.label for one in receipts if not one.passed}
    requests = counted(max(one.requests for one in receipts), "request")
    same = "bit by bit" if all(one.bit_equal for one in receipts) else "but for rounding"
    who = shown_label(plain(labels[0])) if len(labels) == 1 else "Both settings"
    if len(labels) > 2:
        who = f"All {len(labels)} settings"
    if not other:
        verb = "answers" if len(labels) == 1 else "answer"
        return f"{who} {verb} as the baseline does, {same}, on a sample of {requests}."
    if len(other) == len(labels):
        who = who if len(labels) == 1 else "No setting"
        verb = "does not answer" if len(labels) == 1 else "answers"
        return f"{who} {verb} as the baseline does, on a sample of {requests}."
    alike = len(labels) - len(other)
    return f"{alike} of {len(labels)} settings answer as the baseline does, on {requests}."


def _name(one: Receipt) -> str:
    rows = f", {counted(one.rows, 'row')}" if one.rows else ""
    return f"{shown_label(plain(one.label))}{rows}"
