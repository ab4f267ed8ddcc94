"""ScoredSteps: labels and scores of the last steps of a run, as numbers in one row each."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np

from workbench.experiments.program.program import Built

# More say no more of a curve, and take memory.
_MOST_ROWS = 1_000_000


class ScoredSteps:
    """Collects what steps fetch; forgets the oldest steps where rows are too many."""

    def __init__(self) -> None:
        self._pairs: collections.deque[tuple[np.ndarray, np.ndarray]] = collections.deque()
        self._rows = 0

    def add(self, labels: Any, scores: Any) -> None:
        """Notes one step's values, of whatever shape and type of numbers."""
        pair = _numbers(labels), _numbers(scores)
        self._pairs.append(pair)
        self._rows += len(pair[0])
        while len(self._pairs) > 1 and self._rows > _MOST_ROWS:
            self._rows -= len(self._pairs.popleft()[0])

    def pairs(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Labels and scores of each step, float64 [rows], the oldest first."""
        return tuple(self._pairs)


def _numbers(values: Any) -> np.ndarray:
    return np.asarray(values).astype(np.float64).ravel()


def has_scores(labels: Any, scores: Any) -> bool:
    """Whether two values are tensors of numbers."""
    return _are_numbers(labels) and _are_numbers(scores)


def _are_numbers(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return bool(
        getattr(dtype, "is_floating", False)
        or getattr(dtype, "is_integer", False)
        or getattr(dtype, "is_bool", False)
    )


def to_be_scored(built: Built, scored: bool) -> Built:
    """A step of which labels and scores can be fetched, else one that has neither.

    Args:
      built: in the graph that is the default one.
      scored: whether they will be fetched. They then have nodes of their own, which stay in the
        step, while what they read may run ahead or be fused.
    """
    import tensorflow as tf

    if not (scored and has_scores(built.labels, built.scores)):
        return dataclasses.replace(built, labels=None, scores=None)
    labels, scores = tf.identity(built.labels), tf.identity(built.scores)
    return dataclasses.replace(built, labels=labels, scores=scores)
