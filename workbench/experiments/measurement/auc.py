"""The area under the ROC curve: how well scores tell the positive examples from the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Auc:
    """The area under the ROC curve over the rows of some steps.

    Attributes:
      value: the chance that a positive row has a higher score than a negative one, where equal
        scores count half; None where it is undefined.
      rows, steps: over which it is.
      undefined: why there is no value, such as "one class"; "" where there is one.
    """

    value: float | None
    rows: int
    steps: int
    undefined: str = ""


def auc_of(scored: Sequence[tuple[np.ndarray, np.ndarray]]) -> Auc:
    """The exact area over all rows together.

    Args:
      scored: of each step its labels, 0 and 1, and its scores, [rows] each.
    """
    labels = np.concatenate([np.empty(0), *(pair[0] for pair in scored)])
    scores = np.concatenate([np.empty(0), *(pair[1] for pair in scored)])
    undefined = _undefined(labels, scores)
    value = None if undefined else _area(labels == 1, scores)
    return Auc(value=value, rows=len(labels), steps=len(scored), undefined=undefined)


def _undefined(labels: np.ndarray, scores: np.ndarray) -> str:
    if len(labels) != len(scores):
        return f"{len(labels)} labels and {len(scores)} scores"
    if not len(labels):
        return "no row was read"
    if not np.isin(labels, (0, 1)).all():
        return "labels other than 0 and 1"
    if np.isnan(scores).any():
        return "scores that are no numbers"
    return "one class" if len(np.unique(labels)) == 1 else ""


def _area(positive: np.ndarray, scores: np.ndarray) -> float:
    """By the sum of the positive rows' ranks, where equal scores share their average rank."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    positives = int(positive.sum())
    above = float(ranks[place.ravel()[positive]].sum()) - positives * (positives + 1) / 2
    return above / (positives * (len(positive) - positives))
