"""Whether a variant answers as the baseline does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.experiments.serving.results import Receipt
from workbench.experiments.serving.server.messages import Answers


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
        return _of(label, rows, len(errors), False, math.inf, answers.outputs[0])
    answered = [number for number, (error, _) in enumerate(errors) if not error]
    equal, largest, where = bool(answered), 0.0, ""
    for at, output in enumerate(answers.outputs):
        pairs = [(answers.values[each][at], baseline.values[each][at]) for each in answered]
        difference = _difference(pairs)
        equal &= difference is None
        if difference is not None and (not where or difference > largest):
            largest, where = difference, output
    return _of(label, rows, len(answered), equal, largest, where)


def _of(label: str, rows: int, requests: int, equal: bool, largest: float, output: str) -> Receipt:
    return Receipt(
        label=label,
        rows=rows,
        requests=requests,
        bit_equal=equal,
        largest_difference=largest if math.isfinite(largest) else None,
        output=output,
    )


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
