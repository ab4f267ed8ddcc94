"""Memory of a step as HTML that needs no script."""

from __future__ import annotations

from typing import Any

from workbench.core.analysis.memory.memory import Memory
from workbench.viz.memory.view import memory_view
from workbench.viz.style import assets


def memory_html(memory: Memory) -> str:
    """Sentence, curve and tables of a trace's memory, with their own style."""
    module: Any = assets.templates().get_template("memory/memory.html.j2").module
    own = (assets.STATIC / "memory/memory.css").read_text("utf-8")
    style = f"<style>{assets.critical_path_style()}{own}</style>"
    return f'{style}<div class="wb">{module.memory(memory_view(memory))}</div>'
