"""CutAnswers: what a moved cut is predicted to give, and its plan; keeps what it has worked out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.chosen_cut import names_of_cut, why_not_cut
from workbench.core.planning.buffer_placement import ON_CPU
from workbench.core.planning.planner import cut_plan
from workbench.core.planning.stage_plan import StagePlan
from workbench.errors import PlanError
from workbench.viz.boundary.drawing.flow_schema import FlowView, KnownCut
from workbench.viz.boundary.drawing.known_cuts import CutTeller


class CutAnswers:
    """Answers for the cuts of one view."""

    def __init__(
        self, source: StagePlan | Boundary | None, flow: FlowView | None, teller: CutTeller | None
    ) -> None:
        """Knows nothing yet.

        Args:
          source: what the view was made from; None where only the view is there.
          flow: what is drawn; None where there is no graph.
          teller: made with it.
        """
        self._planned = source if isinstance(source, StagePlan) else None
        self._flow, self._teller = flow, teller
        self._known: dict[tuple[int, ...], KnownCut] = {}
        self._unstaged_ms: float | None = None

    def ask(self, leaves: Sequence[int]) -> Iterator[tuple[dict[str, Any] | None, bool]]:
        """What a cut is predicted to give: first its step time, then SmartStage's edits.

        Yields:
          (what is known, or None where nothing can be; whether that is all).
        """
        teller, flow, cut = self._teller, self._flow, tuple(leaves)
        if teller is None or teller.costs is None or flow is None:
            yield None, True
            return
        known = self._known.get(cut)
        if known is None:
            if self._unstaged_ms is None:
                self._unstaged_ms = teller.unstaged_ms()
            known = teller.known("", cut, self._unstaged_ms)
            yield dataclasses.asdict(known), False
            if flow.smart >= 0:
                edits = teller.edits(cut, flow.cuts[flow.smart].leaves)
                known = dataclasses.replace(known, edits=edits)
            self._known[cut] = known
        yield dataclasses.asdict(known), True

    def plan(self, leaves: Sequence[int]) -> StagePlan:
        """The plan of a cut, for `wb.apply`.

        Raises:
          PlanError: the cut is not legal, or the view was made from what holds no graph.
        """
        flow, teller = self._flow, self._of_graph()
        assert flow is not None
        if self._planned is not None and tuple(leaves) == flow.cuts[flow.shown].leaves:
            return self._planned
        moved = teller.leaves.moved(teller.boundary, list(leaves))
        why = why_not_cut(teller.boundary, moved)
        if why:
            raise PlanError(f"the cut is not legal: {why}")
        return cut_plan(
            teller.boundary,
            moved,
            teller.options,
            costs=teller.costs,
            compute_device=self._planned.compute_device if self._planned else ON_CPU,
        )

    def names(self, leaves: Sequence[int]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """The `include` and `exclude` of `SmartStageOptions` that give a cut.

        Raises:
          PlanError: as `plan`.
        """
        teller = self._of_graph()
        return names_of_cut(teller.boundary, teller.leaves.moved(teller.boundary, list(leaves)))

    def _of_graph(self) -> CutTeller:
        if self._teller is None:
            raise PlanError(
                "this widget has no graph to plan for; make it with wb.widget(plan) of a plan that "
                "was made in this process, or wb.widget(boundary)"
            )
        return self._teller
