"""An alignment as HTML for a notebook's output."""

from __future__ import annotations

import zlib
from typing import Any

from workbench.viz.alignment.view import AlignmentView
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def alignment_html(view: AlignmentView) -> str:
    """Answer, waterfall and tables of an alignment, with their own style."""
    return alone(alignment_fragment(view), "alignment")


def alignment_fragment(view: AlignmentView) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    module: Any = assets.templates().get_template("alignment/alignment.html.j2").module
    # a hatch that stands in a hidden view fills nothing in another one
    hatch = f"wba-hatch-{zlib.crc32(repr((view.labels, view.sentence, view.bars)).encode()):08x}"
    return fragment(module.alignment(view, hatch))
