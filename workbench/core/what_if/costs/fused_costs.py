"""What fused ops cost on a machine: fitted to a calibration, asked for any size."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Ops that go through every row of a table, asked for or not.
_WHOLE_TABLE = ("WorkbenchGroupedApplyAll",)
# A table up to this size stays in the caches of a core, one 32 times as large is all in memory.
_CACHED_BYTES, _DOUBLINGS = 8 << 20, 5.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class LookupLoad:
    """What a lookup is asked for.

    Attributes:
      ids: in a batch.
      unique: of them different.
      dim: values in a row of the table.
      table_bytes: size of the table.
    """

    ids: float
    unique: float
    dim: int
    table_bytes: float

    def terms(self, op: str) -> list[float]:
        """What the time of a lookup may grow with in an op, six numbers; a fixed part first."""
        far = float(np.clip(np.log2(max(self.table_bytes, 1.0) / _CACHED_BYTES) / _DOUBLINGS, 0, 1))
        rows = self.unique * self.dim
        asked = [1.0, self.ids, self.ids * self.dim, rows]
        if kind_of(op) in _WHOLE_TABLE:
            return [*asked, self.table_bytes, self.table_bytes * far]
        return [*asked, self.unique * far, rows * far]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """One op, measured: its type, what each of its lookups was asked for, and its time in ns."""

    op: str
    loads: tuple[LookupLoad, ...]
    ns: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedCosts:
    """What ops of fused lookups, layers and columns of text cost.

    Attributes:
      weights: by op type, ns of a run, and for each of its lookups of their `LookupLoad.terms`.
      error: how far the fit is off, as a share: the square root of the mean of squares.
      times: by op type of batch normalizations and interactions, how many times as long it
        takes as the stock op that gives the same result, and of hashed columns each of them; of
        what another kernel does as the stock kernel.
    """

    weights: Mapping[str, tuple[float, ...]]
    error: float
    times: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def ns(self, op: str, loads: Sequence[LookupLoad]) -> float | None:
        """Time of an op with one lookup or several; None of a type that was not measured."""
        weights = self.weights.get(kind_of(op))
        return None if weights is None else float(np.dot(weights, _terms(op, loads)))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "weights": {op: list(each) for op, each in self.weights.items()},
            "error": self.error,
            "times": dict(self.times),
        }

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> FusedCosts:
        """What `to_json` gave."""
        weights = {str(op): tuple(map(float, each)) for op, each in known["weights"].items()}
        times = {str(op): float(each) for op, each in known["times"].items()}
        return cls(weights=weights, error=float(known["error"]), times=times)


def kind_of(op: str) -> str:
    """The op type under which its cost is kept: resource variables cost what others do."""
    return op.replace("WorkbenchResource", "Workbench")


def _terms(op: str, loads: Sequence[LookupLoad]) -> list[float]:
    """What the time of an op grows with: its runs, then the sums over its lookups."""
    return [1.0, *np.sum([load.terms(op) for load in loads], axis=0).tolist()]


def fitted(samples: Sequence[Sample]) -> FusedCosts:
    """Fits the cost of each op type to what was measured of it.

    Relative errors count, and no term has a negative weight.
    """
    by_op: dict[str, list[Sample]] = {}
    for sample in samples:
        by_op.setdefault(kind_of(sample.op), []).append(sample)
    weights, errors = {}, []
    for op, own in by_op.items():
        terms = np.array([_terms(op, sample.loads) for sample in own])
        relative = terms / np.array([[sample.ns] for sample in own])
        found = _least_squares(relative, np.ones(len(own)))
        weights[op] = tuple(found.tolist())
        errors.append(relative @ found - 1)
    off = np.concatenate(errors) if errors else np.zeros(1)
    return FusedCosts(weights=weights, error=float(np.sqrt(np.mean(off**2))))


def _least_squares(terms: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The weights, none below 0, with which the terms come nearest to what is wanted."""
    used = list(range(terms.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(terms[:, used], wanted, rcond=None)
        if not len(used) or found.min() >= 0:
            break
        # the one that lowers its row's sum the most goes first
        del used[int(np.argmin(found * terms[:, used].mean(axis=0)))]
    weights = np.zeros(terms.shape[1])
    weights[used] = found
    return weights
