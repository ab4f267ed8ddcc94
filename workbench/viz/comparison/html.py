"""A comparison as HTML for a notebook's output."""

from __future__ import annotations

from typing import Any

from workbench.viz.comparison.view import CompareView
from workbench.viz.style import assets


def summary_html(view: CompareView) -> str:
    """Sentence, table, receipt and blocks of one comparison, with their own style."""
    module: Any = assets.templates().get_template("comparison/compare.html.j2").module
    return f'<style>{assets.page_style()}</style><div class="wb">{module.summary(view)}</div>'
