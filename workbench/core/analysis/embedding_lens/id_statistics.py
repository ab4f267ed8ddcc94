"""Sampled ids of a table → how many a batch has, how often they repeat, how skewed they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.mean_interval import mean_interval

# The ids that count as the most frequent: this part of all that were seen.
TOP = 0.01
# Places on the curve of how skewed the ids are.
_PLACES = 48


@dataclasses.dataclass(frozen=True, kw_only=True)
class IdStatistics:
    """The ids that a table was asked for in a few batches; invalid ones, below 0, do not count.

    Attributes:
      batches: how many were sampled.
      per_batch: mean of the ids in a batch. per_batch_interval: its 95 % interval, batches taken as
        independent; None of a single batch.
      unique_share: different ids of a batch over its ids; None where no id was seen.
      seen: different ids of all batches.
      top_ids: as many as TOP of the ids that the first half of the batches has, at least one.
      top_share: the part of the lookups of the second half that goes to the `top_ids` most frequent
        ids of the first half; None of fewer than two batches. Ranked on one half and counted on
        the other, chance repetitions do not add to it.
      skew: (n, part) with n growing to all ids of the first half: the part of the lookups of the
        second half that goes to its n most frequent ids, `top_ids` among them; none where
        `top_share` is None.
    """

    batches: int
    per_batch: float
    per_batch_interval: tuple[float, float] | None
    unique_share: float | None
    seen: int
    top_ids: int
    top_share: float | None
    skew: tuple[tuple[int, float], ...] = ()


def id_statistics(batches: Sequence[np.ndarray]) -> IdStatistics:
    """What the ids of a table are like.

    Args:
      batches: the ids of each batch, of any shape, at least one batch.
    """
    valid = [batch.ravel()[batch.ravel() >= 0] for batch in batches]
    counts = np.array([len(batch) for batch in valid], np.float64)
    unique = sum(len(np.unique(batch)) for batch in valid)
    half = len(valid) // 2
    top_ids, covered = _covered(valid[:half], valid[half:]) if half else (0, np.empty(0))
    return IdStatistics(
        batches=len(valid),
        per_batch=float(counts.mean()),
        per_batch_interval=mean_interval(counts),
        unique_share=unique / counts.sum() if counts.sum() else None,
        seen=len(np.unique(np.concatenate(valid))),
        top_ids=top_ids,
        top_share=float(covered[top_ids - 1]) if len(covered) else None,
        skew=_skew(covered, top_ids),
    )


def _covered(first: list[np.ndarray], second: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """How many ids count as the most frequent; shares of the second half that 1, 2, … ids take."""
    ids, counts = np.unique(np.concatenate(first), return_counts=True)
    asked = np.concatenate(second)
    if not len(ids) or not len(asked):
        return 0, np.empty(0)
    place = np.empty(len(ids), np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(ids))
    nearest = np.minimum(np.searchsorted(ids, asked), len(ids) - 1)
    hits = place[nearest[ids[nearest] == asked]]
    covered = np.cumsum(np.bincount(hits, minlength=len(ids))) / len(asked)
    return max(1, round(TOP * len(ids))), covered


def _skew(covered: np.ndarray, top_ids: int) -> tuple[tuple[int, float], ...]:
    """A few places of the curve, evenly far apart on an axis of logarithms."""
    if not len(covered):
        return ()
    even = np.geomspace(1, len(covered), _PLACES).round().astype(np.int64)
    places = np.unique(np.append(even, top_ids)).tolist()
    return tuple((n, float(covered[n - 1])) for n in places)
