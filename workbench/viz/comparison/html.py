"""A comparison as HTML for a notebook's output."""

from __future__ import annotations

from typing import Any

from workbench.viz.comparison.view import CompareView
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def summary_html(view: CompareView) -> str:
    """Sentence, table, receipt and blocks of one comparison, with their own style."""
    return alone(summary_fragment(view))


def summary_fragment(view: CompareView) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    module: Any = assets.templates().get_template("comparison/compare.html.j2").module
    return fragment(module.summary(view))
