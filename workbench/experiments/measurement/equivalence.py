"""Is it the same training? Equal losses from one seed, and every batch exactly once.

Pure functions on what the runs have given; nothing here runs a step.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from workbench.experiments.measurement.auc import Auc
from workbench.number_words import counted, steps_stale

Kind = Literal[
    "bit-equal losses", "equal losses", "exact losses", "same batches", "verified fused parts"
]
# How far apart, relative to the baseline, losses may be where sums have another order, and in how
# many first steps. Training amplifies what is rounded otherwise: Adam makes a step of full size out
# of a gradient that is nothing but rounding. Later losses have to be those of a like training.
TOLERANCE = 1e-6
ROUNDED_STEPS = 50
LATER_TOLERANCE = 0.1
# Losses that are farther apart may be this many times as far as the baseline is from itself after
# its weights were moved by so many numbers of their type, which is less than a sum of some hundred
# terms is off. One of them may miss the ReLU that another turns off, from which losses part.
AMPLIFIED = 10.0
ROUNDINGS = (1, 2, 4, 8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Equivalence:
    """One check of one variant against the baseline.

    Attributes:
      label: the variant.
      kind: what was compared.
      passed: whether it held.
      steps: steps compared.
      detail: one sentence on how it was done, or on the first difference.
      stale_lookups: how many steps stale the lookups of one of the two are, as was asked: then it
        is another training, however near its losses are, and never passes.
      toggles: which toggles make it another training, as was asked, such as "dim 32 beside dim 16";
        it never passes either.
      losses, baseline_losses: of the steps, of such a check; else empty.
      auc, baseline_auc: of such a check of a program that gives labels and scores; else None.
    """

    label: str
    kind: Kind
    passed: bool
    steps: int
    detail: str
    stale_lookups: int = 0
    losses: tuple[float, ...] = ()
    baseline_losses: tuple[float, ...] = ()
    toggles: str = ""
    auc: Auc | None = None
    baseline_auc: Auc | None = None

    @property
    def asked_otherwise(self) -> str:
        """What was asked for that makes it another training, in words; "" where nothing was.

        They say from which step on it has no finite loss.
        """
        asked = steps_stale(self.stale_lookups) if self.stale_lookups else self.toggles
        broken = _first_broken(self.losses)
        return f"{asked}, no finite loss from step {broken} on" if asked and broken else asked


def asked_otherwise(checks: Iterable[Equivalence]) -> Equivalence | None:
    """The check of a variant that was asked to train another way; None where none was."""
    return next((check for check in checks if check.asked_otherwise), None)


def bit_equal_losses(label: str, baseline: np.ndarray, losses: np.ndarray) -> Equivalence:
    """Compares the losses of the same number of first steps, bit by bit.

    Args:
      label: the variant.
      baseline, losses: float [steps], of one dtype.
    """
    steps = min(len(baseline), len(losses))
    if len(baseline) != len(losses):
        passed = False
        detail = f"{len(losses)} steps until the data ended, the baseline has {len(baseline)}"
    elif not steps:
        passed, detail = False, "no step was run before the data ended"
    elif baseline.dtype != losses.dtype:
        passed = False
        detail = f"are numbers of type {losses.dtype.name}, the baseline's {baseline.dtype.name}"
    elif baseline.tobytes() == losses.tobytes():
        passed, detail = True, "from the same seed, one prefetch thread"
    else:
        # A NaN is no difference to itself, and 0.0 is one to -0.0.
        pairs = zip(baseline, losses, strict=True)
        at = next(at for at, (a, b) in enumerate(pairs) if a.tobytes() != b.tobytes())
        passed = False
        detail = f"differ from step {at + 1} on: {losses[at]!s}, the baseline has {baseline[at]!s}"
    return Equivalence(
        label=label, kind="bit-equal losses", passed=passed, steps=steps, detail=detail
    )


def equal_losses(
    label: str, baseline: np.ndarray, losses: np.ndarray, rounded: Sequence[np.ndarray] = ()
) -> Equivalence:
    """Compares losses where sums may have another order: bit by bit, else within TOLERANCE.

    From ROUNDED_STEPS on within LATER_TOLERANCE; how far apart they are is said.

    Args:
      label: the variant.
      baseline, losses: float [steps], of one dtype.
      rounded: the baseline's losses where its weights begin so many of ROUNDINGS away, one after
        another. As far apart as the farthest, and AMPLIFIED times as far, is what rounding makes
        of this training.
    """
    exact = bit_equal_losses(label, baseline, losses)
    if exact.passed or len(baseline) != len(losses) or not len(losses):
        return exact
    apart = _apart(losses, baseline)
    # Not "above": a loss that is no number is no equal one.
    allowed = np.where(np.arange(len(apart)) < ROUNDED_STEPS, TOLERANCE, LATER_TOLERANCE)
    by_itself = [_apart(own, baseline) for own in rounded if len(own) == len(apart)]
    if by_itself:
        reached = np.fmax.accumulate(np.fmax.reduce(by_itself))
        allowed = np.clip(AMPLIFIED * reached, allowed, LATER_TOLERANCE)
    beyond = np.flatnonzero(~(apart <= allowed))
    detail = f"at most {np.max(apart[:ROUNDED_STEPS]):.1e} apart"
    if len(apart) > ROUNDED_STEPS and np.max(apart) > TOLERANCE:
        detail += f" in the first {ROUNDED_STEPS}, {np.max(apart):.1e} later"
    if np.max(apart) > TOLERANCE:
        detail += ", as training amplifies what is rounded otherwise"
    detail += ", from the same seed, one prefetch thread"
    if by_itself:
        away = counted(ROUNDINGS[len(by_itself) - 1], "rounding")
        detail += f"; from weights {away} away the baseline is {reached[-1]:.1e} from itself"
    if len(beyond):
        at = int(beyond[0])
        detail = (
            f"more than {allowed[at]:.0e} apart from step {at + 1} on: {losses[at]!s}, the "
            f"baseline has {baseline[at]!s}"
        )
    return dataclasses.replace(exact, kind="equal losses", passed=not len(beyond), detail=detail)


def other_losses(
    label: str,
    baseline: np.ndarray,
    losses: np.ndarray,
    stale_lookups: int = 0,
    toggles: str = "",
) -> Equivalence:
    """Keeps the losses of another training beside the baseline's; it claims nothing.

    Args:
      label: the variant.
      baseline, losses: float [steps].
      stale_lookups: how many steps stale the lookups of one of the two are.
      toggles: which toggles make it another training, in words.
    """
    steps = min(len(baseline), len(losses))
    what = f"its lookups are {steps_stale(stale_lookups)}" if stale_lookups else toggles
    detail = f"{what}, as was asked: this is another training"
    if steps:
        detail += f", whose loss {_course(losses[:steps])}, the baseline's"
        detail += f" {_course(baseline[:steps]).removeprefix('goes ')}"
        if np.isfinite([losses[:steps], baseline[:steps]]).all():
            apart = np.max(_apart(losses[:steps], baseline[:steps]))
            detail += f"; at most {apart:.1e} apart"
    return Equivalence(
        label=label,
        kind="exact losses",
        passed=False,
        steps=steps,
        detail=detail,
        stale_lookups=stale_lookups,
        toggles=toggles,
        losses=tuple(map(float, losses[:steps])),
        baseline_losses=tuple(map(float, baseline[:steps])),
    )


def _course(losses: np.ndarray) -> str:
    """Where a curve goes, or from which step on it has no number."""
    if broken := _first_broken(losses):
        return f"is no finite number from step {broken} on ({losses[broken - 1]})"
    return f"goes from {losses[0]:.6g} to {losses[-1]:.6g}"


def _first_broken(losses: Sequence[float] | np.ndarray) -> int:
    """The first step whose loss is no finite number; 0 where all are."""
    broken = np.flatnonzero(~np.isfinite(losses))
    return int(broken[0]) + 1 if len(broken) else 0


def _apart(losses: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """How far apart losses are, relative to the baseline's."""
    if losses.dtype.kind != "f":  # integers, and types such as bfloat16, which NumPy lacks
        losses = losses.astype(np.float64)
    least = np.finfo(losses.dtype).tiny
    apart: np.ndarray = np.abs(losses - baseline) / np.maximum(np.abs(baseline), least)
    return apart


def verified_parts(label: str, right: bool, detail: str) -> Equivalence:
    """What a verification of a variant's fused parts says, on one batch.

    Args:
      label: the variant.
      right: whether no part differs.
      detail: its parts in words.
    """
    return Equivalence(
        label=label, kind="verified fused parts", passed=right, steps=1, detail=detail
    )


def same_batches(
    label: str,
    baseline: np.ndarray,
    batches: np.ndarray,
    *,
    threads: int,
    epoch: bool,
    ahead: int,
) -> Equivalence:
    """Compares batches by their fingerprints, in any order: each exactly once.

    Args:
      label: the variant.
      baseline: int64 fingerprints in the order of the data. Without an epoch, `ahead` more of
        them than of the variant, because threads that run ahead may overtake each other.
      batches: int64 fingerprints of the variant; without an epoch, of `ahead` more steps than
        are compared.
      threads: producers of the variant; 0 without a stage.
      epoch: both ran until their data ended.
      ahead: most items that are on their way at any time.
    """
    # Without an end, the variant may still hold up to `ahead` of the batches it has begun.
    steps = len(batches) if epoch else max(0, len(batches) - ahead)
    expected = collections.Counter(baseline.tolist())
    found = collections.Counter(batches.tolist())
    extra = found - expected
    missing = (expected if epoch else collections.Counter(baseline[:steps].tolist())) - found
    where = "a whole epoch" if epoch else f"the first {counted(steps, 'step')}"
    if len(batches) == 0:
        detail = "no step was run before the data ended"
    elif steps == 0:
        tell = "1 step tells" if len(batches) == 1 else f"{len(batches)} steps tell"
        detail = f"{tell} nothing where {ahead} batches may be late"
    elif extra or missing:
        detail = (
            f"{sum(missing.values())} batches missing and {sum(extra.values())} too many or "
            f"unknown in {where}"
        )
    else:
        detail = f"each exactly once over {where}"
        detail += f", {counted(threads, 'prefetch thread')}" if threads else ""
        if np.array_equal(baseline[: len(batches)], batches):
            detail += ", in the same order"
    return Equivalence(
        label=label,
        kind="same batches",
        passed=bool(steps) and not (extra or missing),
        steps=steps,
        detail=detail,
    )
