"""Refusals as rows: nodes that are alike in name, reason and blocker share a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary import Boundary, Refusal
from workbench.core.graph.graph_view import Bools, Ints
from workbench.viz.boundary.causes import Gain, causes_of, sentence
from workbench.viz.boundary.schema import CauseView, ReasonView, RefusalView
from workbench.viz.boundary.scopes import folded_name, label_of
from workbench.viz.style import format

CODES = {
    Reason.VARIABLE: "VA",
    Reason.PLACEHOLDER: "FD",
    Reason.CONTROL_FLOW: "CF",
    Reason.TARGET: "TG",
    Reason.STATEFUL: "ST",
    Reason.SHARED: "SH",
    Reason.FUNCTION: "FN",
    Reason.SECOND_INPUT: "IN",
    Reason.OUTPUT: "OU",
    Reason.SERVER: "PS",
    Reason.KEPT: "KP",
}
# Has no refusal: the plan leaves it where it is.
LEFT = ReasonView(code="AH", word="may run ahead, left", nodes="", rows=0, refused=False)
MOST_ROWS = 600
_MOST_NAMES = 40
_MOST_STEPS = 12
# All blockers of a node are looked for as long as that takes no more looks than this.
_LOOKS = 800_000
_FEWEST_FULL = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Refusals:
    """All refusals of a boundary.

    Attributes:
      reasons: the reasons that occur, that of most nodes first; the last is `LEFT`.
      rows: the refusals, next to the boundary first, then those of most nodes.
      reason_of, row_of: for each node the place of its reason and of its row, -1 for none.
      causes: what holds the nodes back, that with most of them behind it first.
      cause_of, blocker_of: for each node the place of its nearest cause, and the number of the
        nearest blocker; -1 for none.
      more, more_causes: how many rows and causes are left out.
    """

    reasons: tuple[ReasonView, ...]
    rows: tuple[RefusalView, ...]
    reason_of: Ints
    row_of: Ints
    causes: tuple[CauseView, ...]
    cause_of: Ints
    blocker_of: Ints
    more: int = 0
    more_causes: int = 0


def refusals_of(boundary: Boundary, near: Bools, gain: Gain | None = None) -> Refusals:
    """Tells why nodes stay.

    Args:
      boundary: what was found.
      near: the nodes that read what travels, as bools.
      gain: predicts what freeing blockers would give; None without costs.
    """
    view = boundary.view
    reason_of = np.full(len(view), -1, np.int32)
    row_of = np.full(len(view), -1, np.int32)
    blocker_of = np.full(len(view), -1, np.int32)
    alike: dict[tuple[str, Reason, str, bool], list[Refusal]] = {}
    refusals = boundary.refusals()
    for refusal in refusals:
        node = refusal.number
        blocker_of[node] = boundary.nearest_blocker[node]
        close = bool(near[node])
        blocker = folded_name(refusal.blocker.node)
        key = (folded_name(refusal.node), refusal.reason, blocker, close)
        alike.setdefault(key, []).append(refusal)
    groups = sorted(alike.items(), key=lambda item: (not item[0][3], -len(item[1])))
    reasons = _reasons(groups)
    place = {reason: i for i, (reason, _) in enumerate(reasons)}
    causes = causes_of(boundary, refusals, place, gain)
    full = max(_FEWEST_FULL, _LOOKS // max(1, len(view)))
    rows = []
    for number, ((_, reason, _, close), members) in enumerate(groups):
        nodes = [refusal.number for refusal in members]
        reason_of[nodes] = place[reason]
        if number < MOST_ROWS:
            row_of[nodes] = number
            cause = int(causes.cause_of[nodes[0]])
            rows.append(_row(members, place[reason], cause, close, number < full))
    return Refusals(
        reasons=(*(shown for _, shown in reasons), LEFT),
        rows=tuple(rows),
        reason_of=reason_of,
        row_of=row_of,
        causes=causes.ranked,
        cause_of=causes.cause_of,
        blocker_of=blocker_of,
        more=len(groups) - len(rows),
        more_causes=causes.more,
    )


def _reasons(
    groups: Sequence[tuple[tuple[str, Reason, str, bool], list[Refusal]]],
) -> list[tuple[Reason, ReasonView]]:
    nodes: dict[Reason, int] = {}
    rows: dict[Reason, int] = {}
    for (_, reason, _, _), members in groups:
        nodes[reason] = nodes.get(reason, 0) + len(members)
        rows[reason] = rows.get(reason, 0) + 1
    ordered = sorted(nodes, key=lambda reason: -nodes[reason])
    return [
        (
            reason,
            ReasonView(
                code=CODES[reason],
                word=reason.value,
                nodes=format.integer(nodes[reason]),
                rows=rows[reason],
            ),
        )
        for reason in ordered
    ]


def _row(
    members: Sequence[Refusal], reason: int, cause: int, near: bool, full: bool
) -> RefusalView:
    first = members[0]
    blocker = first.blocker
    what = "It" if first.node == blocker.node else repr(blocker.node)
    names = tuple(refusal.node for refusal in members)
    return RefusalView(
        title=label_of(names),
        op=first.op,
        nodes=format.integer(len(members)),
        reason=reason,
        cause=cause,
        near=near,
        blocker=label_of(refusal.blocker.node for refusal in members),
        detail=f"{what} {blocker.detail}.",
        change=sentence(first.change if full else blocker.change()),
        path=_shortened(first.path),
        names=names[:_MOST_NAMES],
    )


def _shortened(path: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) <= _MOST_STEPS:
        return path
    half = _MOST_STEPS // 2
    return (*path[:half], "…", *path[-half:])
