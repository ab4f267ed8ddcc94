"""Variants of a comparison that fail while the others go on: those with a choice of a toggle may.

A failure of the baseline, or of Workbench's own optimizations alone, ends the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import WorkbenchError
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.tolerance import Tolerance

Pairs = list[tuple[Variant, Worker]]


def tolerance_of(
    variants: Sequence[Variant], answer_limit_s: float | None, budget_s: float
) -> Tolerance:
    """What the workers of variants may do.

    Args:
      variants: the baseline first.
      answer_limit_s, budget_s: as of `compare`.
    """
    may_fail = [each for each in variants[1:] if each.optimizations.switched]
    return Tolerance(
        may_fail=[each.label for each in may_fail],
        may_hang=[each.label for each in may_fail if each.has_own_choice],
        limit_s=answer_limit_s,
        budget_s=budget_s,
    )


def running(pairs: Pairs) -> Pairs:
    """The variants whose workers have not failed, with these.

    Raises:
      WorkbenchError: others have failed, and the baseline is the only one left.
    """
    left = [(variant, worker) for variant, worker in pairs if worker.failure is None]
    errors = failures(pairs)
    if errors and len(left) < 2:
        label, error = next(iter(errors.items()))
        error.args = (failure_words(label, error),)
        raise error
    return left


def failures(pairs: Pairs) -> dict[str, WorkbenchError]:
    """Why variants have failed, by label."""
    return {variant.label: worker.failure for variant, worker in pairs if worker.failure}


def failure_words(label: str, error: WorkbenchError) -> str:
    """A sentence that names the variant, without its full stop."""
    words = str(error).rstrip(".")
    return words if repr(label) in words else f"{label[:1].upper()}{label[1:]}: {words}"


def split(pairs: Pairs) -> tuple[list[Variant], list[Worker]]:
    """The variants, and their workers."""
    return [variant for variant, _ in pairs], [worker for _, worker in pairs]


def of_running(checks: Sequence[Equivalence], pairs: Pairs) -> list[Equivalence]:
    """The checks of variants whose workers have not failed."""
    failed = failures(pairs)
    return [check for check in checks if check.label not in failed]
