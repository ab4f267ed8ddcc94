"""Memory of a step as plain text."""

from __future__ import annotations

from workbench.core.analysis.memory.memory import Memory
from workbench.viz.memory.view import memory_view
from workbench.viz.style.plain_text import aligned
from workbench.viz.style.table import table_lines


def memory_text(memory: Memory) -> str:
    """Sentence, what lives at the peak, peaks beside buffers and variables, notes."""
    view = memory_view(memory)
    lines = ["".join(view.sentence), "", f"{view.parts_caption}:"]
    lines += aligned([(part.name, part.bytes, part.share) for part in view.parts], left={0})
    for table in (view.facts, view.scopes, view.nodes):
        lines += ["", f"{table.caption}:", *table_lines(table)]
    return "\n".join([*lines, "", *view.notes])
