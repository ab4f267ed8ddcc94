"""The boundary alive in a notebook, with a line to move. It draws no number of its own."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from workbench.core.boundary.boundary import Boundary
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.viz.boundary.drawing.answers import CutAnswers
from workbench.viz.boundary.html import boundary_static_html, packed
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import BoundaryView, boundary_view_and_teller
from workbench.viz.style import assets, still


class BoundaryWidget(anywidget.AnyWidget):
    """What runs ahead and what stays, to open, search, pick from, and move.

    Shows as a widget, and as a still picture for when its kernel is gone.

    Attributes:
      view: the finished view that is drawn.
      selected: name of the picked box, or of the first node of the picked refusal; "" for none.
        May be set from Python to the name of any refused node.
      ahead: numbers of the leaves of `view.flow` that run ahead now.
    """

    packed = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)
    ahead = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self, source: StagePlan | Boundary | BoundaryView, trace: Trace | None = None
    ) -> None:
        """Makes the widget.

        Args:
          source: a plan, a boundary, or a view made by `boundary_view`, whose line predicts nothing
            beyond what the view knows.
          trace: of warm steps, for times and predictions of what was planned without one.
        """
        if isinstance(source, BoundaryView):
            self.view = source
            self._answers = CutAnswers(None, source.flow, None)
        else:
            self.view, teller = boundary_view_and_teller(source, trace)
            self._answers = CutAnswers(source, self.view.flow, teller)
        self._esm, self._css = assets.boundary_script(), assets.boundary_style()
        flow = self.view.flow
        super().__init__(
            packed=packed(self.view),
            still=still.new_name(),
            ahead=list(flow.cuts[flow.shown].leaves) if flow else [],
        )
        self.on_msg(self._on_message)

    @property
    def plan(self) -> StagePlan:
        """The plan of the cut that is drawn now, for `wb.apply`.

        Raises:
          PlanError: the widget was made from a view, or from a plan that holds no graph.
        """
        return self._answers.plan(self.ahead)

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Answers what a cut is predicted to give."""
        for known, final in self._answers.ask(content.get("ask", ())):
            told = {"told": known} if known else {}
            self.send({**told, "final": final} if final else told)

    def _ipython_display_(self) -> None:
        still.show(self, boundary_static_html(self.view), boundary_text(self.view))
