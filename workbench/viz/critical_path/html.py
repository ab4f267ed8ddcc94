"""A critical path as HTML that needs no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.core.analysis.critical_path import CriticalPath
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def critical_path_html(path: CriticalPath, step: int | None = None) -> str:
    """Sentence, waterfall of a step, shares, slack and tables, with their own style.

    Args:
      path: what `workbench.critical_path` returned.
      step: number of the step that the waterfall shows; by default the one nearest to the median.

    Raises:
      OptionError: the trace holds no such step.
    """
    return alone(critical_path_fragment(path, step), "critical_path")


def critical_path_fragment(path: CriticalPath, step: int | None = None) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    template = assets.templates().get_template("critical_path/critical_path.html.j2")
    module: Any = template.module
    return fragment(module.critical_path(critical_path_view(path, step)))
