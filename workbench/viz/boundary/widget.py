"""The boundary alive in a notebook, with a line to move. It draws no number of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import anywidget
import traitlets

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.chosen_cut import why_not_cut
from workbench.core.planning.planner import cut_plan
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import PlanError
from workbench.viz.boundary.drawing.flow_schema import KnownCut
from workbench.viz.boundary.drawing.known_cuts import CutTeller
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
        self._teller: CutTeller | None = None
        self._source: StagePlan | None = source if isinstance(source, StagePlan) else None
        if isinstance(source, BoundaryView):
            self.view = source
        else:
            self.view, self._teller = boundary_view_and_teller(source, trace)
        self._esm, self._css = assets.boundary_script(), assets.boundary_style()
        flow = self.view.flow
        super().__init__(
            packed=packed(self.view),
            still=still.new_name(),
            ahead=list(flow.cuts[flow.shown].leaves) if flow else [],
        )
        self._answers: dict[tuple[int, ...], KnownCut] = {}
        self._unstaged_ms: float | None = None
        self.on_msg(self._asked)

    @property
    def plan(self) -> StagePlan:
        """The plan of the cut that is drawn now, for `wb.apply`.

        Raises:
          PlanError: the widget was made from a view, or from a plan that holds no graph.
        """
        if self._teller is None:
            raise PlanError(
                "this widget has no graph to plan for; make it with wb.widget(plan) of a plan that "
                "was made in this process, or wb.widget(boundary)"
            )
        flow = self.view.flow
        assert flow is not None
        if self._source is not None and tuple(self.ahead) == flow.cuts[flow.shown].leaves:
            return self._source
        teller = self._teller
        moved = teller.leaves.moved(teller.boundary, self.ahead)
        why = why_not_cut(teller.boundary, moved)
        if why:
            raise PlanError(f"the cut is not legal: {why}")
        stages = self._source.stages if self._source else ()
        on_gpu = any("GPU" in stage.buffer_device for stage in stages)
        return cut_plan(
            teller.boundary,
            moved,
            teller.options,
            costs=teller.costs,
            compute_device="/device:GPU:0" if on_gpu else "",
        )

    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Answers what a cut is predicted to give: first its step time, then SmartStage's edits."""
        teller, flow = self._teller, self.view.flow
        leaves = tuple(content.get("ask", ()))
        if teller is None or teller.costs is None or flow is None:
            self.send({"final": True})
            return
        known = self._answers.get(leaves)
        if known is None:
            if self._unstaged_ms is None:
                self._unstaged_ms = teller.unstaged_ms()
            known = teller.known("", leaves, self._unstaged_ms)
            self.send({"told": dataclasses.asdict(known)})
            if flow.smart >= 0:
                edits = teller.edits(leaves, flow.cuts[flow.smart].leaves)
                known = dataclasses.replace(known, edits=edits)
            self._answers[leaves] = known
        self.send({"told": dataclasses.asdict(known), "final": True})

    def _ipython_display_(self) -> None:
        still.show(self, boundary_static_html(self.view), boundary_text(self.view))
