"""What of a FusionPlan tests ask for: names by kind, interactions, gradients of ReLUs."""

from __future__ import annotations

from typing import Any

import workbench as wb


def names_of(plan: wb.FusionPlan, kind: str) -> tuple[str, ...]:
    """The names of what is fused of a kind."""
    return tuple(each.name for each in plan.of(kind))


def interactions_of(plan: wb.FusionPlan) -> list[Any]:
    """What is fused of interactions, dots or of factorization machines."""
    return [each for each in plan.fused if each.kind.endswith("interaction")]


def relus_of(norm: Any) -> int:
    """How many gradients of ReLUs the gradient of a batch normalization makes, too."""
    if not norm.note:
        return 0
    numbers = [int(word) for word in norm.note.split() if word.isdigit()]
    return numbers[0] if numbers else 1
