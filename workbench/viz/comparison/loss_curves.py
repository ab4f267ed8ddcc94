"""Two loss curves beside each other: of a variant that trains another way, and the baseline."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from workbench.experiments.measurement.auc import Auc
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.number_words import counted
from workbench.viz.comparison.chart import shown_label
from workbench.viz.style import format

# Of a table, and points of a line.
_ROWS = 5
_MOST_POINTS = 100
_BASELINE = "Baseline"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossLine:
    """One curve: its label, and points as fractions of the axes, from the left and from below."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossCurves:
    """The losses of the first steps, of both.

    Attributes:
      title: what is compared.
      lines: the baseline's first.
      low, high: the ends of the axis of losses, in words.
      steps: the last step, in words.
      rows: (step, the baseline's loss, the other loss) of a few steps, in words.
      auc: of both, a sentence; "" where the program gives no labels and scores.
    """

    title: str
    lines: tuple[LossLine, LossLine]
    low: str
    high: str
    steps: str
    rows: tuple[tuple[str, str, str], ...]
    auc: str = ""


def loss_curves(check: Equivalence) -> LossCurves | None:
    """The curves of a check that kept losses; None of another, or of less than two steps."""
    baseline, losses = check.baseline_losses, check.losses
    steps = min(len(baseline), len(losses))
    known = [loss for loss in (*baseline[:steps], *losses[:steps]) if math.isfinite(loss)]
    if steps < 2 or not known:
        return None
    low, high = min(known), max(known)
    names = (_BASELINE, shown_label(check.label))
    return LossCurves(
        title=f"Losses of the first {steps} steps, {names[1]} beside the baseline's",
        lines=(
            LossLine(label=names[0], points=_points(baseline[:steps], low, high)),
            LossLine(label=names[1], points=_points(losses[:steps], low, high)),
        ),
        low=f"{low:.4g}",
        high=f"{high:.4g}",
        steps=f"{steps}",
        rows=tuple(
            (f"{at + 1}", f"{baseline[at]:.6g}", f"{losses[at]:.6g}") for at in _places(steps)
        ),
        auc=_auc_words(check),
    )


def _auc_words(check: Equivalence) -> str:
    """The areas of both, and over which rows they are: a sentence, or nothing."""
    if check.auc is None or check.baseline_auc is None:
        return ""
    other, baseline = (_area(each) for each in (check.auc, check.baseline_auc))
    steps = counted(check.auc.steps, "step")
    return f"AUC of the last {steps}: {shown_label(check.label)} {other}; {_BASELINE} {baseline}."


def _area(auc: Auc) -> str:
    value = f"undefined: {auc.undefined}" if auc.value is None else f"{auc.value:.4f}"
    return f"{value} over {format.integer(auc.rows)} {'row' if auc.rows == 1 else 'rows'}"


def _places(steps: int) -> list[int]:
    """The first step, the last, and some between."""
    return sorted({round(part * (steps - 1) / (_ROWS - 1)) for part in range(_ROWS)})


def _points(losses: Sequence[float], low: float, high: float) -> tuple[tuple[float, float], ...]:
    """Means of equally many steps each, which no loss that is not finite is among."""
    width = math.ceil(len(losses) / _MOST_POINTS)
    found = []
    for begin in range(0, len(losses), width):
        part = [loss for loss in losses[begin : begin + width] if math.isfinite(loss)]
        if part:
            middle = begin + (min(width, len(losses) - begin) - 1) / 2
            height = (sum(part) / len(part) - low) / ((high - low) or 1.0)
            found.append((middle / (len(losses) - 1), height))
    return tuple(found)
