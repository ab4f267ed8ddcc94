"""Before and after as HTML: for a report's page, and for a pane that mounts its timelines."""

from __future__ import annotations

import dataclasses
from typing import Any

import markupsafe

from workbench.viz.before_after.view import BeforeAfterView
from workbench.viz.style import assets
from workbench.viz.timeline.html import timeline_html


def before_after_html(view: BeforeAfterView, element_id: str) -> str:
    """Both timelines with their data, linked by the page's script, and the bars below them.

    Args:
      view: what to draw.
      element_id: unique in the page; letters, digits, "-" and "_".
    """
    places = [
        markupsafe.Markup(timeline_html(timeline, f"{element_id}-{side}"))
        for timeline, side in zip(view.timelines, ("before", "after"), strict=True)
    ]
    alignment = dataclasses.replace(view.alignment, place=element_id)
    return str(_template().before_after(dataclasses.replace(view, alignment=alignment), places))


def nodes_html(view: BeforeAfterView) -> str:
    """What became of the nodes, and when and where both runs were traced."""
    return str(_template().rest(view))


def before_after_pane(view: BeforeAfterView) -> str:
    """Everything but the timelines, for a page that mounts them itself."""
    return str(_template().whole(view, ("", "")))


def _template() -> Any:
    return assets.templates().get_template("before_after/before_after.html.j2").module
