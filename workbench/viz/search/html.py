"""A search as HTML that needs no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.experiments.search.best import Best
from workbench.viz.search.view import search_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def search_html(found: Best) -> str:
    """Answer, settings on one axis, what was not measured, and the code, with their own style."""
    return alone(search_fragment(found), "predictions", "search")


def search_fragment(found: Best) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    module: Any = assets.templates().get_template("search/search.html.j2").module
    return fragment(module.search(search_view(found)), "wbq wbs")
