"""Memory of a step as HTML that needs no script."""

from __future__ import annotations

from typing import Any

from workbench.core.analysis.memory.memory import Memory
from workbench.viz.memory.view import memory_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def memory_html(memory: Memory) -> str:
    """Sentence, curve and tables of a trace's memory, with their own style."""
    return alone(memory_fragment(memory), "critical_path", "memory")


def memory_fragment(memory: Memory) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    module: Any = assets.templates().get_template("memory/memory.html.j2").module
    return fragment(module.memory(memory_view(memory)))
