"""What a setting is expected to give, from predictions and from what has been measured so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from workbench.core.options import FUSIONS, ExecutorPolicy, Optimizations

# What each of `_toggles` usually gives, as a logarithm: medians of the six models on 2 cores. It
# orders settings of which nothing is predicted, and says nothing of any of them.
_USUAL = np.array([0.03, 0.04, 0.08, 0.13, 0.13, 0.13, -0.25, 0.005])
# How much a toggle's effect is drawn towards 0: to fill gaps of the predictions, and to correct
# them by what was measured, which is one sum of effects seen through noise.
_FILL, _CORRECT = 1e-3, 0.5


def expectations(
    settings: Mapping[str, Optimizations],
    baseline: Optimizations,
    predicted: Mapping[str, float],
    measured: Mapping[str, float],
) -> dict[str, float]:
    """The logarithm of the ratio to expect of each setting.

    The effects of toggles are taken to add up, as logarithms. A setting of which nothing is
    predicted is expected to give what the predicted ones add up to, or what toggles usually give
    where none is. All are then corrected by how far the measured ones were from what was expected
    of them, toggle by toggle: where fused lookups give less than predicted, they will so together
    with others.

    Args:
      settings: by label.
      baseline: what the ratios are to.
      predicted: logarithms of ratios to the baseline, of some.
      measured: the same, of some.
    """
    labels = list(settings)
    rows = [_toggles(baseline), *(_toggles(setting) for setting in settings.values())]
    on = np.array(rows, np.float64)[1:] - rows[0]
    expected = _fitted(on, labels, predicted, _FILL) if predicted else on @ _USUAL
    for number, label in enumerate(labels):
        expected[number] = predicted.get(label, expected[number])
    missed = {
        label: measured[label] - expected[number]
        for number, label in enumerate(labels)
        if label in measured
    }
    corrected = expected + _fitted(on, labels, missed, _CORRECT)
    return dict(zip(labels, corrected.tolist(), strict=True))


def toggle_count(setting: Optimizations) -> int:
    """How many toggles a setting switches on."""
    return int(sum(_toggles(setting)))


def _fitted(
    on: np.ndarray, labels: list[str], known: Mapping[str, float], ridge: float
) -> np.ndarray:
    """What effects of toggles that fit the known ones add up to, for all."""
    rows = [number for number, label in enumerate(labels) if label in known]
    if not rows:
        return np.zeros(len(labels))
    seen = on[rows]
    values = np.array([known[labels[number]] for number in rows])
    effects = np.linalg.solve(seen.T @ seen + ridge * np.eye(on.shape[1]), seen.T @ values)
    return on @ effects


def _toggles(setting: Optimizations) -> list[bool]:
    return [
        setting.stage is not None,
        setting.smart_stage is not None,
        *(setting.fused_embeddings == version for version in FUSIONS),
        setting.executor == ExecutorPolicy.INLINE,
        setting.executor == ExecutorPolicy.COST_MODEL,
    ]
