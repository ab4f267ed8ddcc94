"""Cuts that a page knows without a kernel: the places of the line, SmartStage's, the plan's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import UNSTAGED, Candidate
from workbench.core.options import SmartStageOptions
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.core.prediction.predict import predict
from workbench.core.prediction.prediction import Prediction
from workbench.viz.boundary.drawing.flow_schema import EditView, FlowBox, KnownCut, Leaf
from workbench.viz.boundary.drawing.leaves import Leaves
from workbench.viz.style import format

# Differences of which each is predicted by itself.
MOST_EDITS = 12


def closed(leaves: Sequence[Leaf], wanted: Iterable[int]) -> frozenset[int]:
    """These leaves and all that they need."""
    found, waiting = set(), list(wanted)
    while waiting:
        leaf = waiting.pop()
        if leaf not in found:
            found.add(leaf)
            waiting += leaves[leaf].needs
    return frozenset(found)


def without(leaves: Sequence[Leaf], ahead: Iterable[int], removed: Iterable[int]) -> frozenset[int]:
    """The leaves of `ahead` that need none of those that are removed."""
    gone = set(removed)
    return frozenset(
        leaf for leaf in ahead if leaf not in gone and not closed(leaves, [leaf]) & gone
    )


@dataclasses.dataclass(frozen=True, eq=False)
class CutTeller:
    """Tells of cuts of one boundary what they give.

    Attributes:
      boundary, costs, options: what they are predicted from; without costs nothing is predicted.
      leaves: the parts of a cut.
      boxes: of the drawing.
    """

    boundary: Boundary
    costs: Costs | None
    options: SmartStageOptions
    leaves: Leaves
    boxes: Sequence[FlowBox]

    def step_ms(self, ahead: Iterable[int]) -> float:
        """Predicted time of a step when these leaves run ahead."""
        assert self.costs is not None
        moved = self.leaves.moved(self.boundary, sorted(ahead))
        return predict_cut(self.boundary, self.costs, moved, self.options).step_ms

    def unstaged_ms(self) -> float:
        """Predicted time of a step that nothing runs ahead of."""
        assert self.costs is not None
        nothing = Candidate(label=UNSTAGED, stages=(), removes_own=True)
        return predict(self.boundary, self.costs, nothing).step_ms

    def known(self, label: str, ahead: Iterable[int], unstaged_ms: float, x: int = -1) -> KnownCut:
        """A cut with its prediction, where there are costs."""
        leaves = tuple(sorted(ahead))
        cut = KnownCut(label=label, leaves=leaves, x=x)
        if self.costs is None:
            return cut
        moved = self.leaves.moved(self.boundary, leaves)
        foreseen = predict_cut(self.boundary, self.costs, moved, self.options)
        return predicted(cut, foreseen, unstaged_ms)

    def edits(self, ahead: Sequence[int], smart: Sequence[int]) -> tuple[EditView, ...]:
        """How SmartStage's cut differs from one, box by box, each with its own gain.

        The gain is that of this edit alone, with what it needs; so gains need not add up.
        """
        current, wanted = frozenset(ahead), frozenset(smart)
        now = self.step_ms(current) if self.costs is not None and current != wanted else 0.0
        edits: list[EditView] = []
        for place, box in enumerate(self.boxes):
            inside = frozenset(box.leaves)
            more, less = inside & wanted - current, (inside & current) - wanted
            if not more and not less:
                continue
            gain = ""
            if self.costs is not None and len(edits) < MOST_EDITS:
                edited = (
                    current | closed(self.leaves.views, more)
                    if more
                    else without(self.leaves.views, current, less)
                )
                gain = signed(now - self.step_ms(edited))
            edits.append(EditView(box=place, adds=bool(more), gain=gain))
        return tuple(edits)


def predicted(cut: KnownCut, foreseen: Prediction, unstaged_ms: float) -> KnownCut:
    """A cut with what it is predicted to give, in words."""
    return dataclasses.replace(
        cut,
        step=format.duration(foreseen.step_ms * 1e6),
        gain=format.ratio(unstaged_ms / foreseen.step_ms) if unstaged_ms else "–",
        limited_by=foreseen.limited_by,
    )


def signed(saved_ms: float) -> str:
    """What a step gets shorter or longer by: "−0.40 ms", "+0.12 ms"."""
    return format.difference(-saved_ms * 1e6)


def line_cuts(
    teller: CutTeller,
    line_x: Callable[[int], int],
    label_of: Callable[[Sequence[int]], str],
    unstaged_ms: float,
) -> list[KnownCut]:
    """The cuts at which the line stands straight, from nothing to all that may run ahead."""
    movable = [(place, box) for place, box in enumerate(teller.boxes) if box.leaves]
    columns = sorted({box.column for _, box in movable})
    cuts = [teller.known("nothing moves", (), unstaged_ms, line_x(min(columns, default=0)))]
    for column in columns:
        inside = [leaf for _, box in movable if box.column <= column for leaf in box.leaves]
        ahead = closed(teller.leaves.views, inside)
        if tuple(sorted(ahead)) == cuts[-1].leaves:
            cuts.pop()
        here = [place for place, box in movable if box.column == column]
        label = f"after {label_of(here)}"
        if column == columns[-1]:
            label = "all that may run ahead"
        cuts.append(teller.known(label, ahead, unstaged_ms, line_x(column + 1)))
    return cuts
