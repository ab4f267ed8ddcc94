"""Causes of refusals, ranked: what holds back how much of the step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.core.boundary.blockers import Blocker, Reason
from workbench.core.boundary.boundary import Boundary, Refusal
from workbench.core.boundary.causes import held_back
from workbench.core.graph.graph_view import Ints
from workbench.viz.boundary.schema import CauseView
from workbench.viz.boundary.scopes import folded_name, label_of
from workbench.viz.style import format

# Further ones, which are nearest to the fewest nodes, have no row.
MOST_CAUSES = 60
# For this number of causes the gain of freeing them is predicted.
MOST_FREED = 8
# Blockers → how much shorter a step is without them, in ms.
Gain = Callable[[Sequence[int]], float]


@dataclasses.dataclass(frozen=True, eq=False)
class Causes:
    """What holds the refused nodes back.

    Attributes:
      ranked: blockers that are alike are one cause; that whose freeing would give most first,
        without predictions that with most nodes behind it.
      cause_of: for each node the place of its nearest cause, -1 for none.
      more: how many causes are left out.
    """

    ranked: tuple[CauseView, ...]
    cause_of: Ints
    more: int


def causes_of(
    boundary: Boundary,
    refusals: Sequence[Refusal],
    reason_place: Mapping[Reason, int],
    gain: Gain | None = None,
) -> Causes:
    """Ranks the causes of all refusals of a boundary.

    Args:
      boundary: what was found.
      refusals: its refusals.
      reason_place: where each reason stands in the view.
      gain: predicts what freeing blockers would give; None without costs.
    """
    view = boundary.view
    alike: dict[tuple[str, Reason], dict[int, Blocker]] = {}
    nearest: dict[tuple[str, Reason], list[int]] = {}
    for refusal in refusals:
        node = refusal.number
        key = (folded_name(refusal.blocker.node), refusal.reason)
        alike.setdefault(key, {})[int(boundary.nearest_blocker[node])] = refusal.blocker
        nearest.setdefault(key, []).append(node)
    shown = sorted(alike, key=lambda key: -len(nearest[key]))[:MOST_CAUSES]
    held = held_back(boundary, [list(alike[key]) for key in shown])
    ranked: list[CauseView] = []
    cause_of = np.full(len(view), -1, np.int32)
    order = np.lexsort((-held.alone, -held.behind)).tolist()
    # only what nothing else holds back would move
    freed = sorted(order, key=lambda at: -held.alone[at])[:MOST_FREED]
    gains = {at: gain(list(alike[shown[at]])) for at in freed} if gain else {}
    order.sort(key=lambda at: -gains.get(at, -np.inf))
    for at in order:
        key = shown[at]
        cause_of[nearest[key]] = len(ranked)
        blockers = list(alike[key].values())
        op = view.ops[next(iter(alike[key]))]
        behind, alone = int(held.behind[at]), int(held.alone[at])
        ranked.append(
            CauseView(
                title=label_of(blocker.node for blocker in blockers),
                about=op if len(blockers) == 1 else f"{format.integer(len(blockers))} × {op}",
                reason=reason_place[key[1]],
                behind=format.integer(behind),
                alone=format.integer(alone),
                share=behind / len(refusals),
                change=sentence(blockers[0].change()),
                gain=format.difference(-gains[at] * 1e6) if at in gains else "",
            )
        )
    return Causes(tuple(ranked), cause_of, len(alike) - len(shown))


def sentence(text: str) -> str:
    """With a capital at its beginning and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}."
