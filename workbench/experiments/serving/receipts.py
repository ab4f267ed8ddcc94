"""Whether a variant answers as the baseline does."""

from __future__ import annotations

import math

import numpy as np

from workbench.experiments.serving.results import Receipt
from workbench.experiments.serving.server.messages import Answers


def receipt(label: str, rows: int, answers: Answers, baseline: Answers) -> Receipt:
    """Compares the answers of a variant with the baseline's, output by output.

    Args:
      label: the variant.
      rows: of the requests.
      answers, baseline: what both answered to the same requests.
    """
    equal, largest, where = True, 0.0, ""
    for number, (mine, base) in enumerate(zip(answers.values, baseline.values, strict=True)):
        if bool(answers.errors[number]) != bool(baseline.errors[number]):
            return _of(label, rows, answers, False, math.inf, answers.outputs[0])
        for output, value, other in zip(answers.outputs, mine, base, strict=False):
            difference = _difference(value, other)
            equal &= difference is None
            if difference is not None and (not where or difference > largest):
                largest, where = difference, output
    return _of(label, rows, answers, equal, largest, where)


def _of(
    label: str, rows: int, answers: Answers, equal: bool, largest: float, output: str
) -> Receipt:
    return Receipt(
        label=label,
        rows=rows,
        requests=len(answers.values),
        bit_equal=equal,
        largest_difference=largest if math.isfinite(largest) else None,
        output=output,
    )


def _difference(value: np.ndarray, other: np.ndarray) -> float | None:
    """The largest difference of two outputs, relative to the other's largest; None if equal."""
    if value.shape != other.shape or value.dtype != other.dtype:
        return math.inf
    if value.dtype == object:
        return None if value.tolist() == other.tolist() else math.inf
    if value.tobytes() == other.tobytes():
        return None
    if value.dtype.kind not in "fc":
        return math.inf
    with np.errstate(all="ignore"):
        difference = float(np.max(np.abs(value - other)))
        scale = float(np.max(np.abs(other)))
    if not math.isfinite(difference):
        return math.inf
    return difference / scale if scale else math.inf
