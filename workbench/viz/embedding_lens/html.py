"""An embedding lens as HTML that needs no script."""

from __future__ import annotations

from typing import Any

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.viz.embedding_lens.view import lens_view
from workbench.viz.style import assets


def lens_html(lens: EmbeddingLens) -> str:
    """Sentence, table and notes of a lens, with their own style."""
    module: Any = assets.templates().get_template("embedding_lens/embedding_lens.html.j2").module
    own = (assets.STATIC / "embedding_lens/embedding_lens.css").read_text("utf-8")
    style = f"<style>{assets.critical_path_style()}{own}</style>"
    return f'{style}<div class="wb">{module.lens(lens_view(lens))}</div>'
