"""Cells of the bench of lookups, and their ids: the same for TensorFlow and its peers."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

FEATURES = 26
BATCH = 2048
ROTATED_BYTES = 120e6
# Stock's and fused training, two sessions, two peers, the limit and the process of one thread have
# tables and slots of their own.
TABLE_BYTES = min(1.75e9, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 32)
MOST_IDS = 60_000_000
# A stretch of Zipf's law as long as a table: p(rank) ~ rank ** -ZIPF.
ZIPF = 1.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One size of table and kind of batch.

    Attributes:
      rows, dim: of each table.
      kind: "m1": one id a row; "m10": 10 % of rows are empty, else 1 + Poisson(10.1) ids, 1 % of
        ids are -1; "z1" and "z10": the same with ids by Zipf's law.
      size: rows of a batch.
    """

    rows: int
    dim: int
    kind: str
    size: int = BATCH

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of a name such as "1e5x16xm1", or "1e5x16xm1x512" of batches of 512 rows."""
        rows, dim, kind, *size = name.split("x")
        return cls(rows=int(float(rows)), dim=int(dim), kind=kind, size=int((size or [BATCH])[0]))

    @property
    def tables(self) -> int:
        """Different tables that fit into memory; features beyond share them."""
        return max(1, min(FEATURES, int(TABLE_BYTES / (4 * self.rows * self.dim))))

    @property
    def one_id(self) -> bool:
        """Whether each row has one id."""
        return self.kind.endswith("1")

    def batches(self) -> int:
        """How many there are before they repeat: no row is in a cache from the batch before."""
        ids = sum(len(values) for values, _ in batch(0, self))
        return int(np.clip(ROTATED_BYTES / (ids * self.dim * 4), 2, MOST_IDS / ids / 3)) + 1


def batch(seed: int, cell: Cell) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values and indices of each feature, of a SparseTensor [size, 64]."""
    random = np.random.default_rng(seed)
    features = []
    for _ in range(FEATURES):
        if cell.one_id:
            lengths = np.ones(cell.size, np.int64)
        else:
            lengths = np.minimum(1 + random.poisson(10.1, cell.size), 64)
            lengths[random.random(cell.size) < 0.1] = 0
        values = _ids(random, int(lengths.sum()), cell)
        if not cell.one_id:
            values[random.random(values.size) < 0.01] = -1
        row = np.repeat(np.arange(cell.size), lengths)
        column = np.arange(values.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        features.append((values, np.stack([row, column], 1)))
    return features


def _ids(random: np.random.Generator, count: int, cell: Cell) -> np.ndarray:
    if cell.kind.startswith("m"):
        return random.integers(0, cell.rows, count, dtype=np.int64)
    # Zipf's law as a continuous one, by its inverse; ranks are scattered over the table.
    share = 1 - ZIPF
    top = (cell.rows**share - 1) * random.random(count) + 1
    ranks = np.minimum((top ** (1 / share)).astype(np.int64), cell.rows) - 1
    return ranks * 2_654_435_761 % cell.rows
