"""Costs of nodes that the cost model has learned: read, save, load, and learn them again."""

from workbench.core.executor.learned_costs import (
    LearnedCosts,
    learned_costs,
    load_learned_costs,
    preload_costs,
    relearn_costs,
)

__all__ = [
    "LearnedCosts",
    "learned_costs",
    "load_learned_costs",
    "preload_costs",
    "relearn_costs",
]
