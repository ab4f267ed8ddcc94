"""An embedding lens as HTML that needs no script."""

from __future__ import annotations

from typing import Any

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.viz.embedding_lens.view import lens_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def lens_html(lens: EmbeddingLens) -> str:
    """Sentence, table and notes of a lens, with their own style."""
    return alone(lens_fragment(lens), "critical_path", "embedding_lens")


def lens_fragment(lens: EmbeddingLens) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    module: Any = assets.templates().get_template("embedding_lens/embedding_lens.html.j2").module
    return fragment(module.lens(lens_view(lens)))
