"""Refused: a setting that cannot run, and for which others the reason holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError, PlanError, RunError, UnsupportedError
from workbench.experiments.program.variant import Variant

REFUSALS = (OptionError, PlanError, UnsupportedError, RunError)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refused:
    """A setting that cannot run.

    Attributes:
      label: its name.
      reason: why, a clause.
      holds_for: whether the reason holds for another setting too.
      error: what was raised; None where it was opened and has no effect.
    """

    label: str
    reason: str
    holds_for: Callable[[Optimizations], bool]
    error: Exception | None = None


def graph_of(wish: Optimizations) -> object:
    """What decides which graph is built, and which plan is made for it."""
    return (wish.stage, wish.smart_stage, wish.fused_embeddings, wish.batch_size, wish.chosen)


def has_choices_of(wish: Optimizations) -> Callable[[Optimizations], bool]:
    """Whether another setting has every choice that this one switches; false where it has none."""
    switched = set(wish.switched)
    return lambda other: bool(switched) and switched <= set(other.switched)


def refused_by(variant: Variant, error: Exception) -> Refused:
    """A refusal of ours holds for every setting with the same graph, a failure for its choices."""
    graph = graph_of(variant.optimizations)
    failed = isinstance(error, RunError)
    return Refused(
        label=variant.label,
        reason=str(error),
        holds_for=has_choices_of(variant.optimizations)
        if failed
        else lambda other: graph_of(other) == graph,
        error=error,
    )


def moves_nothing(variant: Variant) -> Refused:
    """A smart stage whose plan leaves everything where it is."""
    reasons = [edit.reason for edit in variant.plan.edits] if variant.plan else []
    why = f" ({reasons[0]})" if reasons else ""
    graph = graph_of(variant.optimizations)
    return Refused(
        label=variant.label,
        reason=f"its plan moves nothing ahead of the step{why}, so it runs what it runs without it",
        holds_for=lambda other: graph_of(other) == graph,
    )


def far_too_slow(variant: Variant, ratio: float, base: str) -> Refused:
    """A setting whose first steps are so slow that a block of it would take the time of others."""
    return Refused(
        label=variant.label,
        reason=f"its first steps ran {ratio:.2g}× as fast as those of {base}, so it did not race",
        holds_for=has_choices_of(variant.optimizations),
    )
