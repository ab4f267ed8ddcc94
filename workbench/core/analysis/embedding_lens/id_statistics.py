"""Sampled ids of a table → how many a batch has, how often they repeat, how skewed they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.mean_interval import mean_interval

# The ids that count as the most frequent: this part of all that were seen.
TOP = 0.01


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
    """

    batches: int
    per_batch: float
    per_batch_interval: tuple[float, float] | None
    unique_share: float | None
    seen: int
    top_ids: int
    top_share: float | None


def id_statistics(batches: Sequence[np.ndarray]) -> IdStatistics:
    """What the ids of a table are like.

    Args:
      batches: the ids of each batch, of any shape, at least one batch.
    """
    valid = [batch.ravel()[batch.ravel() >= 0] for batch in batches]
    counts = np.array([len(batch) for batch in valid], np.float64)
    unique = sum(len(np.unique(batch)) for batch in valid)
    half = len(valid) // 2
    top_ids, top_share = _top(valid[:half], valid[half:]) if half else (0, None)
    return IdStatistics(
        batches=len(valid),
        per_batch=float(counts.mean()),
        per_batch_interval=mean_interval(counts),
        unique_share=unique / counts.sum() if counts.sum() else None,
        seen=len(np.unique(np.concatenate(valid))),
        top_ids=top_ids,
        top_share=top_share,
    )


def _top(first: list[np.ndarray], second: list[np.ndarray]) -> tuple[int, float | None]:
    """How many ids count as the most frequent, and their share of the second half."""
    ids, counts = np.unique(np.concatenate(first), return_counts=True)
    asked = np.concatenate(second)
    if not len(ids) or not len(asked):
        return 0, None
    many = max(1, round(TOP * len(ids)))
    top = ids[np.argsort(-counts, kind="stable")[:many]]
    return many, float(np.isin(asked, top).mean())
