"""Code that a reader of a report can paste: it measures the answer again."""

from __future__ import annotations

from workbench.core.optimizations import Optimizations
from workbench.errors import DataError
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.program.as_code import compare_code, model_code
from workbench.experiments.program.configuration import Configuration, configuration_from
from workbench.viz.comparison.answer import best_ratio, is_faster

AGAIN = "This cell measures it again, on your machine:"
_LONGER = "This cell measures four times as long:"
_SHELL = "workbench "


def next_cell(comparison: Comparison) -> tuple[str, str]:
    """A cell that measures the best variant beside the baseline, and what it does.

    A shell command stands in its place where a file of the user's own holds the program. Both are
    "" where only the user's notebook knows the program.
    """
    configuration = _configuration(comparison)
    if configuration is None or configuration.origin is None:
        return "", ""
    program = model_code(configuration.origin)
    if not program:
        shell = comparison.command if comparison.command.startswith(_SHELL) else ""
        return shell, "This command measures it again:" * bool(shell)
    setting = _best_setting(comparison, configuration)
    longer = not is_faster(comparison)
    cell = compare_code(
        [setting] if setting else [],
        configuration.settings[0],
        program,
        budget_s=configuration.budget_s * (4 if longer else 1),
        trace_steps=configuration.trace_steps,
    )
    return cell, _LONGER if longer else AGAIN


def _configuration(comparison: Comparison) -> Configuration | None:
    try:
        return configuration_from(comparison.settings.get("configuration"))
    except DataError:
        return None


def _best_setting(comparison: Comparison, configuration: Configuration) -> Optimizations | None:
    """The setting of the best variant; None where the baseline stands alone."""
    best = best_ratio(comparison)
    labels = [variant.label for variant in comparison.variants]
    if best is None or len(configuration.settings) != len(labels):
        return None
    return configuration.settings[labels.index(best.label)]
