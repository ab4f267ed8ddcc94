"""Difference: how far two values of one tensor are apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

# By how much of a tensor's largest number a result may differ that is summed in another order.
_ROUNDING = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
# A result may move as far as TensorFlow's own does where its inputs are rounded otherwise.
_OWN_SHARE, _ULPS = 10.0, 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """How far two values of one tensor are apart.

    Attributes:
      largest: the largest difference of two numbers; infinite where values are no numbers.
      scale: the largest number of the first value.
      allowed: how large a difference is rounding.
      reason: what differs beside numbers, a clause; "" for nothing.
      same: whether all bits are the same.
    """

    largest: float = 0.0
    scale: float = 0.0
    allowed: float = 0.0
    reason: str = ""
    same: bool = False

    @property
    def relative(self) -> float:
        """The largest difference, as a share of the largest number."""
        if not self.largest:
            return 0.0
        return self.largest / self.scale if self.scale else float("inf")

    @property
    def is_rounding(self) -> bool:
        """Whether numbers that are summed in another order may differ so."""
        return not self.reason and self.largest <= self.allowed


def difference(stock: Any, other: Any) -> Difference:
    """How far another value of a tensor is from TensorFlow's."""
    one, two = np.asarray(stock), np.asarray(other)
    if one.shape != two.shape or one.dtype != two.dtype:
        shapes = f"{two.dtype} {list(two.shape)}, where it is {one.dtype} {list(one.shape)}"
        return Difference(largest=float("inf"), reason=f"a tensor is {shapes}")
    rounding = _ROUNDING.get(one.dtype.name)
    if rounding is None:
        if np.array_equal(one, two):
            return Difference(same=True)
        count = int(np.sum(one != two))
        return Difference(largest=float("inf"), reason=f"{count} of {one.size} values are others")
    if np.array_equal(_bytes_of(one), _bytes_of(two)):
        return Difference(same=True)
    first, second = one.astype(np.float64), two.astype(np.float64)
    finite = np.isfinite(first)
    alike = (first == second) | (np.isnan(first) & np.isnan(second))
    if not np.all(alike | (finite & np.isfinite(second))):
        return Difference(largest=float("inf"), reason="a number is finite on one side alone")
    apart = np.where(alike, 0.0, np.abs(np.where(alike, 0.0, first - np.where(alike, 0, second))))
    scale = float(np.max(np.abs(first[finite]), initial=0.0))
    largest = float(np.max(apart, initial=0.0))
    return Difference(largest=largest, scale=scale, allowed=rounding * scale)


def _bytes_of(values: Any) -> Any:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def rows_difference(stock: tuple[Any, Any], other: tuple[Any, Any]) -> Difference:
    """How far rows with ids are from TensorFlow's, in any order, those of one id summed."""
    if all(np.array_equal(one, two) for one, two in zip(stock, other, strict=True)):
        return difference(stock[1], other[1])
    if any(len(ids) != len(rows) for ids, rows in (stock, other)):
        return Difference(largest=float("inf"), reason="there are not as many ids as rows")
    ids = np.unique(np.concatenate([stock[0], other[0]]))
    return difference(_summed(*stock, ids), _summed(*other, ids))


def _summed(ids: Any, rows: Any, every: Any) -> Any:
    sums = np.zeros((len(every), *rows.shape[1:]), np.float64)
    np.add.at(sums, np.searchsorted(every, ids), rows)
    return sums.astype(rows.dtype)


def widened(found: Difference, own: Difference) -> Difference:
    """A difference of which that is rounding which TensorFlow's own result shows."""
    if own.reason:
        return found
    return dataclasses.replace(found, allowed=max(found.allowed, _OWN_SHARE * own.largest))


def rounded_otherwise(values: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Values of which each number of floating point is moved up or down by some last digits."""
    draw = np.random.default_rng(seed)
    moved: dict[str, Any] = {}
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype in (np.float32, np.float64):
            up = 2 * draw.integers(2, size=array.shape, dtype=np.int8) - 1
            with np.errstate(invalid="ignore", over="ignore"):
                array = array + (up * _ULPS * np.spacing(array)).astype(array.dtype)
        moved[name] = array
    return moved
