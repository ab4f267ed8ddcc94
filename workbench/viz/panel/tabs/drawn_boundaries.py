"""The boundaries that a panel has drawn, and where the user moved their lines to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.core.planning.stage_plan import StagePlan
from workbench.errors import OptionError, PlanError
from workbench.experiments.session.run import Run
from workbench.viz.boundary.drawing.answers import CutAnswers
from workbench.viz.panel.settings.setting import cut_text
from workbench.viz.panel.tabs.contents import Content
from workbench.viz.panel.words import sentence

_OWN_STAGE = (
    "Moved: the line of a run with your own stage widens that stage; move that of a run without it."
)


class DrawnBoundaries:
    """One boundary for each run whose tab was shown."""

    def __init__(self) -> None:
        """None is drawn yet."""
        self._answers: dict[int, CutAnswers] = {}
        self._cuts: dict[int, tuple[int, ...]] = {}

    def draw(self, number: int, content: Content) -> None:
        """A run's boundary is shown, with the line where its plan has it."""
        assert content.boundary is not None
        flow = content.boundary.flow
        self._answers[number] = CutAnswers(content.source, flow, content.teller)
        self._cuts[number] = flow.cuts[flow.shown].leaves if flow else ()

    def ask(
        self, number: int, leaves: Sequence[int]
    ) -> Iterator[tuple[dict[str, Any] | None, bool]]:
        """What a cut is predicted to give; see `CutAnswers.ask`."""
        return self._answers[number].ask(leaves)

    def move(self, run: Run, leaves: Sequence[int]) -> tuple[str, str]:
        """Moves the line of a run's boundary.

        Returns:
          (the cut as of `PanelSetting`, why it cannot be run), one of them "".
        """
        self._cuts[run.number] = tuple(leaves)
        if run.optimizations.stage is not None:
            return "", _OWN_STAGE
        try:
            return cut_text(*self._answers[run.number].names(leaves)), ""
        except PlanError as error:
            return "", f"Moved: {sentence(str(error))}"

    def plan(self, number: int) -> StagePlan:
        """The plan of a run's boundary as it is drawn.

        Raises:
          OptionError: it was not shown yet.
          PlanError: the cut is not legal, or the run has no graph.
        """
        if number not in self._answers:
            raise OptionError("the boundary of this run was not shown yet; open its tab")
        return self._answers[number].plan(self._cuts[number])
