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
    return (wish.stage, wish.smart_stage, wish.fused_embeddings, wish.batch_size)


def refused_by(variant: Variant, error: Exception) -> Refused:
    """A refusal of ours holds for every setting with the same graph, a failure for itself alone."""
    graph = None if isinstance(error, RunError) else graph_of(variant.optimizations)
    return Refused(
        label=variant.label,
        reason=str(error),
        holds_for=lambda other: graph_of(other) == graph,
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
