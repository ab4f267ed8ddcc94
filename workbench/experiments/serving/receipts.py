"""Whether a variant answers as the baseline does."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from workbench.experiments.serving.results import FLOAT32_ROUNDING, Receipt
from workbench.experiments.serving.server.messages import Answers

_FLOAT32, _FLOAT64 = np.finfo(np.float32).eps, np.finfo(np.float64).eps
# Sums of a short type are made in float32. What they give is rounded once, and again by each op
# that reads it: some of its last places, each of them `eps`.
_SHORT_PLACES = 4
_ROUNDING = {
    "bfloat16": _SHORT_PLACES * 2.0**-7,
    "float16": _SHORT_PLACES * 2.0**-10,
    "float64": FLOAT32_ROUNDING * float(_FLOAT64 / _FLOAT32),
    "complex128": FLOAT32_ROUNDING * float(_FLOAT64 / _FLOAT32),
}
_WIDE = ("float64", "complex128")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Apart:
    """How far an output is from the baseline's.

    Attributes:
      output: its name.
      largest: the largest difference, relative to the baseline's largest number; infinite where
        texts, shapes or whole numbers differ.
      rounding: the largest one that rounding makes.
    """

    output: str
    largest: float
    rounding: float = FLOAT32_ROUNDING


def receipt(label: str, rows: int, answers: Answers, baseline: Answers) -> Receipt:
    """Compares the answers of a variant with the baseline's, output by output.

    Requests that both refuse are not compared.

    Args:
      label: the variant.
      rows: of the requests.
      answers, baseline: what both answered to the same requests.
    """
    errors = list(zip(answers.errors, baseline.errors, strict=True))
    if any(bool(mine) != bool(base) for mine, base in errors):
        refused = _Apart(output=answers.outputs[0], largest=math.inf)
        return _of(label, rows, len(errors), refused)
    answered = [number for number, (error, _) in enumerate(errors) if not error]
    apart = []
    for at, (output, kind) in enumerate(zip(answers.outputs, answers.types, strict=True)):
        pairs = [(answers.values[each][at], baseline.values[each][at]) for each in answered]
        difference = _difference(pairs)
        if difference is not None:
            rounding = _rounding(kind, pairs)
            apart.append(_Apart(output=output, largest=difference, rounding=rounding))
    farthest = max(apart, key=lambda each: each.largest / each.rounding, default=None)
    return _of(label, rows, len(answered), farthest)


def _of(label: str, rows: int, requests: int, apart: _Apart | None) -> Receipt:
    if apart is None:
        return Receipt(label=label, rows=rows, requests=requests, bit_equal=requests > 0)
    return Receipt(
        label=label,
        rows=rows,
        requests=requests,
        bit_equal=False,
        largest_difference=apart.largest if math.isfinite(apart.largest) else None,
        output=apart.output,
        rounding=apart.rounding,
    )


def _rounding(kind: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """The largest difference that rounding makes of an output of a TensorFlow type.

    Numbers of float64 that are all numbers of float32 were computed as such.
    """
    if kind in _WIDE and all(_is_narrow(each) for pair in pairs for each in pair):
        return FLOAT32_ROUNDING
    return _ROUNDING.get(kind, FLOAT32_ROUNDING)


def _is_narrow(values: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        short = values.astype(np.complex64 if values.dtype.kind == "c" else np.float32)
    return bool(np.array_equal(short, values, equal_nan=True))


def _difference(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """The largest difference of an output in all requests; None if all are equal, bit by bit.

    It is relative to the baseline's largest number in any of them, for one request may have small
    numbers alone, which round as those of others do.
    """
    largest, scale, equal = 0.0, 0.0, True
    for value, other in pairs:
        if value.shape != other.shape or value.dtype != other.dtype:
            return math.inf
        if value.dtype == object:
            if value.tolist() != other.tolist():
                return math.inf
            continue
        same = value.tobytes() == other.tobytes()
        equal &= same
        if value.dtype.kind in "fc":
            wide = np.result_type(value.dtype, np.float64)
            mine, base = value.astype(wide), other.astype(wide)
            scale = max(scale, np.max(np.abs(base), where=np.isfinite(base), initial=0.0))
            apart = ~((mine == base) | (np.isnan(mine) & np.isnan(base)))
            difference = float(np.max(np.abs(mine[apart] - base[apart]), initial=0.0))
            largest = max(largest, math.inf if math.isnan(difference) else difference)
        elif not same:
            return math.inf
    if equal:
        return None
    if not largest:
        return 0.0
    return float(largest / scale) if scale else math.inf
