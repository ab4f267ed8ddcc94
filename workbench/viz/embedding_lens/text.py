"""An embedding lens as plain text."""

from __future__ import annotations

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.viz.embedding_lens.view import Row, lens_view
from workbench.viz.style.plain_text import aligned


def lens_text(lens: EmbeddingLens) -> str:
    """Sentence, a line for each table, notes."""
    view = lens_view(lens)
    lines = ["".join(view.sentence)]
    if view.rows:
        fused = ("", *["fused"] * (lens.fused is not None))
        times = (f"{head} {which}".strip() for head in view.time_heads for which in fused)
        heads = ("Table", *view.size_heads, *view.id_heads, *times)
        rows = [*view.rows, *view.rest, *([view.total] if view.total else [])]
        lines += ["", *aligned([heads, *(_cells(row) for row in rows)], left={0}), ""]
    return "\n".join([*lines, *view.notes])


def _cells(row: Row) -> tuple[str, ...]:
    return (row.name, *row.size, *row.ids, *(cell for cells in row.times for cell in cells))
