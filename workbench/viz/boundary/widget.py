"""The boundary alive in a notebook. It holds no number of its own."""

from __future__ import annotations

import anywidget
import traitlets

from workbench.core.boundary.boundary import Boundary
from workbench.core.planning.stage_plan import StagePlan
from workbench.viz.boundary.html import boundary_static_html, packed
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import BoundaryView, boundary_view
from workbench.viz.style import assets, still


class BoundaryWidget(anywidget.AnyWidget):
    """What runs ahead and what stays, to open, search and pick from.

    Shows as a widget, and as a still picture for when its kernel is gone.

    Attributes:
      view: the finished view that is drawn.
      selected: name of the picked box, or of the first node of the picked refusal; "" for none.
        May be set from Python to the name of any refused node.
    """

    packed = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)

    def __init__(self, source: StagePlan | Boundary | BoundaryView) -> None:
        """Makes the widget.

        Args:
          source: a plan, a boundary, or a view made by `boundary_view`.
        """
        self.view = source if isinstance(source, BoundaryView) else boundary_view(source)
        self._esm, self._css = assets.boundary_script(), assets.boundary_style()
        super().__init__(packed=packed(self.view), still=still.new_name())

    def _ipython_display_(self) -> None:
        still.show(self, boundary_static_html(self.view), boundary_text(self.view))
