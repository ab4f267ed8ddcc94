"""A search as HTML that needs no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.experiments.search.best import Best
from workbench.viz.search.view import search_view
from workbench.viz.style import assets

_SHEETS = ("predictions/predictions.css", "search/search.css")


def search_html(found: Best) -> str:
    """Answer, settings on one axis, what was not measured, and the code, with their own style."""
    module: Any = assets.templates().get_template("search/search.html.j2").module
    own = "".join((assets.STATIC / sheet).read_text("utf-8") for sheet in _SHEETS)
    shown = module.search(search_view(found))
    return f'<style>{assets.page_style()}{own}</style><div class="wb wbq wbs">{shown}</div>'
