"""What a setting is expected to give, from predictions and from what has been measured so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from workbench.core.optimizations import FUSIONS, Optimizations
from workbench.core.options import ExecutorPolicy

# What each of `_toggles` usually gives, as a logarithm: medians of the six models on 2 cores. It
# orders settings of which nothing is predicted, and says nothing of any of them.
_USUAL = np.array([0.03, 0.04, 0.08, 0.13, 0.13, 0.13, -0.25, 0.005])
# How much a toggle's effect is drawn towards 0 to fill gaps of the predictions.
_FILL = 1e-3
# Standard deviations, as logarithms: of a toggle's effect from what is predicted, and from what is
# usual; of a setting from what the effects of its toggles add up to.
_PREDICTED_EFFECT, _USUAL_EFFECT, _OWN = 0.05, 0.12, 0.02
# That of a block's ratio to the baseline's where nothing is known yet, and how many rounds that
# belief is worth.
_SCATTER, _SCATTER_ROUNDS = 0.02, 2
# Draws of which each setting's share of firsts is its chance; the same ones at every look.
_DRAWS = 500


@dataclasses.dataclass(frozen=True, eq=False)
class Expectations:
    """What is expected of settings: normal, of the logarithms of their ratios to the baseline.

    Attributes:
      labels: the settings.
      means: [settings].
      covariance: [settings, settings]. Settings that share toggles are right or wrong together.
    """

    labels: Sequence[str]
    means: np.ndarray
    covariance: np.ndarray

    def of(self) -> dict[str, float]:
        """The means by label."""
        return dict(zip(self.labels, self.means.tolist(), strict=True))

    def chances(self, among: Collection[str]) -> dict[str, float]:
        """How likely each of these settings is the fastest of them."""
        rows = [number for number, label in enumerate(self.labels) if label in among]
        spread = self.covariance[np.ix_(rows, rows)] + 1e-12 * np.eye(len(rows))
        normal = np.random.default_rng(0).normal(size=(len(rows), _DRAWS))
        drawn = self.means[rows, None] + np.linalg.cholesky(spread) @ normal
        firsts = np.bincount(drawn.argmax(axis=0), minlength=len(rows)) if rows else np.zeros(0)
        return {self.labels[row]: n / _DRAWS for row, n in zip(rows, firsts.tolist(), strict=True)}

    def beside(self, label: str, other: str) -> tuple[float, float]:
        """How far a setting is above another one: mean and standard deviation.

        Args:
          label: the setting.
          other: one of the settings too, or else the baseline.
        """
        weights = np.array([(each == label) - (each == other) for each in self.labels], np.float64)
        return float(weights @ self.means), float(np.sqrt(weights @ self.covariance @ weights))


def expectations(
    settings: Mapping[str, Optimizations],
    baseline: Optimizations,
    predicted: Mapping[str, float],
    measured: Mapping[str, Sequence[float]],
) -> Expectations:
    """What to expect of each setting.

    The effects of toggles are taken to add up, as logarithms, and a setting to be a little off
    their sum. One of which nothing is predicted is expected to give what the predicted ones add up
    to, or what toggles usually give where none is. What was measured then corrects all (the
    posterior of a normal prior), toggle by toggle and as far as blocks scatter: where fused lookups
    give less than predicted, they will so together with others. A toggle with choices has an effect
    for each of them, about what it usually gives.

    Args:
      settings: by label, without the baseline.
      baseline: what the ratios are to.
      predicted: logarithms of ratios to the baseline, of some.
      measured: the same of blocks, of some.
    """
    labels = list(settings)
    means, covariance = _prior(settings, baseline, predicted)
    seen = [number for number, label in enumerate(labels) if len(measured.get(label, ()))]
    if not seen:
        return Expectations(labels, means, covariance)
    blocks = [np.asarray(measured[labels[number]], np.float64) for number in seen]
    found = np.array([each.mean() for each in blocks])
    noise = _scatter(blocks) / np.array([len(each) for each in blocks])
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)] + np.diag(noise), covariance[seen]).T
    return Expectations(
        labels, means + gain @ (found - means[seen]), covariance - gain @ covariance[seen]
    )


def toggle_count(setting: Optimizations) -> int:
    """How many toggles a setting switches on."""
    return int(sum(_toggles(setting))) + len(setting.switched)


def _prior(
    settings: Mapping[str, Optimizations],
    baseline: Optimizations,
    predicted: Mapping[str, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariance before anything is measured."""
    labels, wishes = list(settings), list(settings.values())
    on = _differences(_toggles, baseline, wishes)
    means = _filled(on, labels, predicted) if predicted else on @ _USUAL
    for number, label in enumerate(labels):
        means[number] = predicted.get(label, means[number])
    effect = _PREDICTED_EFFECT if predicted else _USUAL_EFFECT
    choices = list(dict.fromkeys(each for wish in (baseline, *wishes) for each in wish.switched))
    chosen = _differences(lambda wish: [c in wish.switched for c in choices], baseline, wishes)
    gains = np.array([each.toggle.usual_gain(each.value) for each in choices]).reshape(-1, 2)
    # A setting is as far off as the one that it is without these choices, and a little by itself.
    twins = [_without_choices(wish, baseline) for wish in wishes]
    number_of = {wish: number for number, wish in enumerate(wishes)}
    for number, twin in enumerate(twins):
        if wishes[number] != twin:
            means[number] = means[number_of[twin]] if twin in number_of else means[number]
            means[number] += chosen[number] @ gains[:, 0]
    numbers = {baseline: 0}
    groups = np.array([numbers.setdefault(twin, len(numbers)) for twin in twins])
    same = ((groups[:, None] == groups) & (groups > 0)).astype(np.float64)
    own = np.maximum(same, np.eye(len(wishes))) + same * np.diag(chosen.any(axis=1))
    covariance = effect**2 * on @ on.T + (chosen * gains[:, 1] ** 2) @ chosen.T + _OWN**2 * own
    return means, covariance


def _differences(
    switches: Callable[[Optimizations], Sequence[bool]],
    baseline: Optimizations,
    settings: Sequence[Optimizations],
) -> np.ndarray:
    """[settings, switches]: what is switched on or off beside the baseline."""
    rows = np.array([switches(baseline), *map(switches, settings)], np.float64)
    return rows[1:] - rows[0]


def _without_choices(setting: Optimizations, baseline: Optimizations) -> Optimizations:
    if setting.chosen == baseline.chosen:
        return setting
    return dataclasses.replace(setting, chosen=baseline.chosen)


def _scatter(blocks: Sequence[np.ndarray]) -> float:
    """Variance of a block, pooled over settings."""
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in blocks)
    free = sum(len(each) - 1 for each in blocks)
    return (_SCATTER_ROUNDS * _SCATTER**2 + squares) / (_SCATTER_ROUNDS + free)


def _filled(on: np.ndarray, labels: list[str], known: Mapping[str, float]) -> np.ndarray:
    """What effects of toggles that fit the known ones add up to, for all."""
    rows = [number for number, label in enumerate(labels) if label in known]
    seen = on[rows]
    values = np.array([known[labels[number]] for number in rows])
    effects = np.linalg.solve(seen.T @ seen + _FILL * np.eye(on.shape[1]), seen.T @ values)
    return on @ effects


def _toggles(setting: Optimizations) -> list[bool]:
    return [
        setting.stage is not None,
        setting.smart_stage is not None,
        *(setting.fused_embeddings == version for version in FUSIONS),
        setting.executor == ExecutorPolicy.INLINE,
        setting.executor == ExecutorPolicy.COST_MODEL,
    ]
