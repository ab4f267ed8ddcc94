"""The markup of a view, to stand alone in a cell or beside others in a page that has the style."""

from __future__ import annotations

from typing import Any

from workbench.viz.style import assets


def fragment(shown: Any, kind: str = "") -> str:
    """What a template made, in a frame whose width is the view's; the page has its style.

    Args:
      shown: the markup, escaped.
      kind: class of the frame, by which a view's own rules find it.
    """
    return f'<div class="{f"wb-view {kind}".rstrip()}">{shown}</div>'


def alone(shown: str, *views: str) -> str:
    """A fragment with its style, for a notebook's output.

    Args:
      shown: what `fragment` made.
      *views: the views whose rules it needs.
    """
    return f'<style>{assets.view_style(*views)}</style><div class="wb">{shown}</div>'
