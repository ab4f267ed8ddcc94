"""Refusals as rows: nodes that are alike in name, reason and blocker are told once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.blockers import Reason
from workbench.core.boundary import Boundary, Refusal
from workbench.core.graph import Bools, Ints
from workbench.viz import format
from workbench.viz.boundary_groups import folded_name, label_of
from workbench.viz.boundary_parts import ReasonView, RefusalView

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
      rows: what is told, next to the boundary first.
      reason_of, row_of: for each node the place of its reason and of its row, -1 for none.
      more: how many rows are left out.
    """

    reasons: tuple[ReasonView, ...]
    rows: tuple[RefusalView, ...]
    reason_of: Ints
    row_of: Ints
    more: int


def refusals_of(boundary: Boundary, near: Bools) -> Refusals:
    """Tells why nodes stay.

    Args:
      boundary: what was found.
      near: the nodes that read what travels, as bools.
    """
    view = boundary.view
    reason_of = np.full(len(view), -1, np.int32)
    row_of = np.full(len(view), -1, np.int32)
    alike: dict[tuple[str, Reason, str, bool], list[Refusal]] = {}
    for refusal in boundary.refusals():
        close = bool(near[view.number(refusal.node)])
        blocker = folded_name(refusal.blocker.node)
        key = (folded_name(refusal.node), refusal.reason, blocker, close)
        alike.setdefault(key, []).append(refusal)
    groups = sorted(alike.items(), key=lambda item: not item[0][3])
    reasons = _reasons(groups)
    place = {reason: i for i, (reason, _) in enumerate(reasons)}
    full = max(_FEWEST_FULL, _LOOKS // max(1, len(view)))
    rows = []
    for number, ((_, reason, _, close), members) in enumerate(groups):
        nodes = [view.number(refusal.node) for refusal in members]
        reason_of[nodes] = place[reason]
        if number < MOST_ROWS:
            row_of[nodes] = number
            rows.append(_row(members, place[reason], close, number < full))
    shown = (*(said for _, said in reasons), LEFT)
    return Refusals(shown, tuple(rows), reason_of, row_of, max(0, len(groups) - len(rows)))


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


def _row(members: Sequence[Refusal], reason: int, near: bool, full: bool) -> RefusalView:
    first = members[0]
    blocker = first.blocker
    what = "It" if first.node == blocker.node else repr(blocker.node)
    names = tuple(refusal.node for refusal in members)
    return RefusalView(
        title=label_of(names),
        op=first.op,
        nodes=format.integer(len(members)),
        reason=reason,
        near=near,
        blocker=label_of(refusal.blocker.node for refusal in members),
        detail=f"{what} {blocker.detail}.",
        change=_sentence(first.change if full else blocker.change()),
        path=_shortened(first.path),
        names=names[:_MOST_NAMES],
    )


def _shortened(path: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) <= _MOST_STEPS:
        return path
    half = _MOST_STEPS // 2
    return (*path[:half], "…", *path[-half:])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
