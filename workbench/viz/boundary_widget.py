"""The boundary alive in a notebook. It holds no number of its own."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from workbench.core.boundary import Boundary
from workbench.core.plan import StagePlan
from workbench.viz import assets
from workbench.viz.boundary import BoundaryView, boundary_view
from workbench.viz.boundary_html import boundary_static_html, packed
from workbench.viz.text import boundary_text


class BoundaryWidget(anywidget.AnyWidget):
    """What runs ahead and what stays, to open, search and pick from.

    Shows as a widget, as a still picture with tables (text/html) and as text.

    Attributes:
      view: the finished view that is drawn.
      selected: name of the picked box, or of the first node of the picked refusal; "" for none.
        May be set from Python to the name of any refused node.
    """

    packed = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def __init__(self, source: StagePlan | Boundary | BoundaryView) -> None:
        """Makes the widget.

        Args:
          source: a plan, a boundary, or a view made by `boundary_view`.
        """
        self.view = source if isinstance(source, BoundaryView) else boundary_view(source)
        self._esm, self._css = assets.boundary_script(), assets.boundary_style()
        super().__init__(packed=packed(self.view))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, with its twins for where no widget can be drawn."""
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        twins = {
            "text/plain": boundary_text(self.view),
            "text/html": boundary_static_html(self.view),
        }
        return {**data, **twins}, metadata
