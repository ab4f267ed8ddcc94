"""Outcomes of two sessions → where they differ beyond rounding."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.fuzz.sessions import Outcome

# Of float32 numbers, of which some sums are made in another order.
_RELATIVE = 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """Something that is not alike.

    Attributes:
      kind: "value", "order" (a value whose rows come in another order), "variable", "error",
        "plan", "edit", "process".
      where: the step.
      name: what was fetched, or the variable.
      text: both sides.
    """

    kind: str
    where: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} {self.name}: {self.text}"


def differences(
    stock: Sequence[Outcome],
    other: Sequence[Outcome],
    labels: Sequence[str],
    tolerance: float = _RELATIVE,
) -> Iterator[Difference]:
    """All that differs, in order."""
    for expected, found, where in zip(stock, other, labels, strict=True):
        if expected.error or found.error:
            if expected.error != found.error:
                text = f"stock {_failed(expected)}, here {_failed(found)}"
                yield Difference(kind="error", where=where, name="", text=text)
            continue
        for kind, one, two in (
            ("value", expected.values, found.values),
            ("variable", expected.state, found.state),
        ):
            for name, value in one.items():
                text = difference(value, two[name], tolerance)
                if text and kind == "value" and same_rows(value, two[name], tolerance):
                    yield Difference(kind="order", where=where, name=name, text=text)
                elif text:
                    yield Difference(kind=kind, where=where, name=name, text=text)


def _failed(outcome: Outcome) -> str:
    return f"{outcome.error}: {outcome.message}" if outcome.error else "runs"


def difference(expected: Any, found: Any, tolerance: float = _RELATIVE) -> str:
    """How two values differ; "" where they are alike."""
    if expected is None or found is None:
        return "" if expected is found else f"stock {expected!r}, here {found!r}"
    if not hasattr(expected, "dtype") and hasattr(expected, "values"):  # IndexedSlices
        return difference(expected.values, found.values, tolerance)
    one, two = np.asarray(expected), np.asarray(found)
    if one.dtype != two.dtype or one.shape != two.shape:
        return f"stock {one.dtype}{list(one.shape)}, here {two.dtype}{list(two.shape)}"
    if one.dtype.kind != "f":
        return "" if np.array_equal(one, two) else f"stock {_short(one)}, here {_short(two)}"
    if one.dtype == np.float16:
        tolerance = max(tolerance, 5e-3)
    # What has grown beyond all numbers grows otherwise with each rounding.
    finite = np.isfinite(one)
    largest = float(np.abs(one[finite]).max()) if finite.any() else 0.0
    margin = tolerance * max(largest, 1e-3)
    alike = ~finite | np.isclose(two, one, rtol=tolerance, atol=margin)
    if alike.all():
        return ""
    where = np.unravel_index(int(np.argmin(alike)), one.shape) if one.ndim else ()
    place = f" at {[int(each) for each in where]}" if where else ""
    return f"stock {one[where]:.6g}, here {two[where]:.6g}{place} ({(~alike).sum()} numbers)"


def same_rows(expected: Any, found: Any, tolerance: float = _RELATIVE) -> bool:
    """Whether two values have the same rows in another order."""
    one, two = np.asarray(expected), np.asarray(found)
    if one.ndim < 1 or one.shape != two.shape or one.dtype.kind not in "fi" or one.size < 2:
        return False
    one, two = (each.reshape(len(each), -1) for each in (one, two))
    first, second = (each[np.lexsort(np.round(each, 3).T)] for each in (one, two))
    return not difference(first, second, tolerance)


def _short(value: Any) -> str:
    text = str(value.tolist())
    return text if len(text) < 80 else text[:77] + "..."
