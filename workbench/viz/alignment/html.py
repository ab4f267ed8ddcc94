"""An alignment as HTML for a notebook's output."""

from __future__ import annotations

from typing import Any

from workbench.viz.alignment.view import AlignmentView
from workbench.viz.style import assets


def alignment_html(view: AlignmentView) -> str:
    """Answer, waterfall and tables of an alignment, with their own style."""
    module: Any = assets.templates().get_template("alignment/alignment.html.j2").module
    own = (assets.STATIC / "alignment/alignment.css").read_text("utf-8")
    style = f"<style>{assets.page_style()}{own}</style>"
    return f'{style}<div class="wb">{module.alignment(view)}</div>'
