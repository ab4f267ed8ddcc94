"""A cut that somebody chose by name: which nodes run ahead, or why that cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, Ints
from workbench.errors import PlanError


def chosen_cut(
    boundary: Boundary, include: Iterable[str] | None = None, exclude: Iterable[str] = ()
) -> tuple[Bools, ...]:
    """The nodes that run ahead, one set for each side.

    Args:
      boundary: what may run ahead.
      include: names of nodes that run ahead, each with all of the batch's nodes that it depends
        on; none of them lets the input alone run ahead, None everything that may.
      exclude: names of nodes that stay, each with all that depends on it; the input's own name
        leaves its side as it is.

    Raises:
      PlanError: a name that may not run ahead, with the reason; or a cut through a tensor that
        cannot travel.
    """
    view = boundary.view
    wanted = None if include is None else view.mask(_movable(boundary, include))
    out = view.reached(view.mask(_movable(boundary, exclude)))
    cut = []
    for side in boundary.sides:
        moved = side.widest.copy()
        if wanted is not None:
            begin = view.mask(side.start.nodes)
            moved &= view.ancestors(wanted & side.legal | begin, within=side.legal)
        moved &= ~out
        _require_travel(boundary, side, moved)
        cut.append(moved)
    return tuple(cut)


def names_of_cut(
    boundary: Boundary, moved: Sequence[Bools]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The `include` and `exclude` of `chosen_cut` that give a cut, whichever are fewer names.

    Args:
      boundary: what may run ahead.
      moved: a cut, one set of nodes for each side.

    Raises:
      PlanError: it is not legal.
    """
    why = why_not_cut(boundary, moved)
    if why:
        raise PlanError(f"the cut is not legal: {why}")
    view = boundary.view
    edges = np.concatenate([view.data[:, [0, 2]], view.control])
    last, first = np.zeros(len(view), bool), np.zeros(len(view), bool)
    begun = True
    for side, nodes in zip(boundary.sides, moved, strict=True):
        stays = side.widest & ~nodes
        begun &= bool(nodes[list(side.start.nodes)].all())
        last |= nodes & ~_ends(edges, nodes, 0) & ~view.mask(side.start.nodes)
        first |= stays & ~_ends(edges, stays, 1)
    include, exclude = (
        tuple(view.names[node] for node in np.flatnonzero(ends).tolist()) for ends in (last, first)
    )
    # `include` has every input run ahead; and with none of the two the plan would choose.
    shorter = not exclude or len(include) < len(exclude)
    return (include, ()) if begun and shorter else (None, exclude)


def _ends(edges: Ints, nodes: Bools, end: int) -> Bools:
    """Which of these nodes are at this end of an edge inside of them."""
    found = np.zeros(len(nodes), bool)
    found[edges[nodes[edges].all(axis=1), end]] = True
    return found


def why_not_cut(boundary: Boundary, moved: Sequence[Bools]) -> str:
    """Why sets of nodes, one for each side, are no legal cut, in a sentence; "" where they are."""
    view = boundary.view
    for side, nodes in zip(boundary.sides, moved, strict=True):
        strays = np.flatnonzero(nodes & ~side.widest)
        if len(strays):
            return boundary.explain(view.names[int(strays[0])])
        lacks = view.ancestors(nodes, within=side.legal) & ~nodes
        if lacks.any():
            first = int(np.flatnonzero(lacks)[0])
            return f"{view.names[first]!r} has to run ahead as well: what was chosen depends on it."
        stuck = _stuck(boundary, side, nodes)
        if stuck:
            return _cannot_travel(boundary, stuck[0])
    return ""


def _movable(boundary: Boundary, names: Iterable[str]) -> list[int]:
    found = []
    for name in names:
        node = boundary.view.number(name)
        if not any(side.widest[node] for side in boundary.sides):
            raise PlanError(f"the cut names a node that cannot move: {boundary.explain(name)}")
        found.append(node)
    return found


def _require_travel(boundary: Boundary, side: Side, moved: Bools) -> None:
    stuck = _stuck(boundary, side, moved)
    if stuck:
        raise PlanError(f"the cut is not legal: {_cannot_travel(boundary, stuck[0])}")


def _stuck(boundary: Boundary, side: Side, moved: Bools) -> list[int]:
    """Nodes whose outputs would have to travel and cannot."""
    ends = np.unique(boundary.cut_edges(side, moved)[:, 0]).tolist()
    outputs = boundary.view.outputs
    return [node for node in ends if any(map(op_types.cannot_travel, outputs[node]))]


def _cannot_travel(boundary: Boundary, node: int) -> str:
    kinds = "/".join(sorted(set(boundary.view.outputs[node])))
    return (
        f"{boundary.view.names[node]!r} would give the compute side {kinds}, which cannot go "
        "through a buffer; let what reads it run ahead as well, or leave both."
    )
