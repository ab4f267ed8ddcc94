"""The shape of a step before anything has run: what it is made of, and what may run ahead of it."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph import op_families
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.viz.panel.words import sentence
from workbench.viz.style import assets, format
from workbench.viz.style.colors import FAMILIES
from workbench.viz.style.plain_text import plain

# How many kinds of ops a part names, and how many reasons are told.
_MOST_OPS, _MOST_REASONS = 2, 3
Pieces = tuple[tuple[str, bool], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """The nodes of one op family on one side of the boundary.

    Attributes:
      family: its place in the palette.
      title: its name.
      nodes: how many they are, in words.
      ops: the most frequent of them, in words.
    """

    family: int
    title: str
    nodes: str
    ops: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShapeView:
    """A step's graph, known without running it.

    Attributes:
      sentence: how much of it may run ahead, as (text, strong) pieces.
      ahead, stays: the parts on both sides of the boundary, in the order of the data.
      travels: what crosses the boundary, in words; "" where nothing does.
      reasons: why the rest stays, a sentence; "" where nothing does.
    """

    sentence: Pieces
    ahead: tuple[Part, ...]
    stays: tuple[Part, ...]
    travels: str
    reasons: str


def shape_view(boundary: Boundary, problem: str = "") -> ShapeView:
    """The shape of a step.

    Args:
      boundary: the graph, and what may run ahead in it.
      problem: why nothing may, a sentence; "" where something may.
    """
    view = boundary.view
    ahead = np.zeros(len(view), bool)
    for side in boundary.sides:
        ahead |= side.widest
    ahead &= boundary.step
    families = op_families.families_of(view.ops, view.names)
    crossing = sum(len(boundary.carried(side, side.widest)) for side in boundary.sides)
    return ShapeView(
        sentence=_sentence(int(ahead.sum()), int(boundary.step.sum())),
        ahead=_parts(view, families, ahead),
        stays=_parts(view, families, boundary.step & ~ahead),
        travels=_counted(crossing, "tensor") if ahead.any() else "",
        reasons=_reasons(boundary, problem),
    )


def shape_html(view: ShapeView) -> str:
    """The shape as markup, for a page that has the panel's style."""
    module: Any = assets.templates().get_template("panel/shape.html.j2").module
    return str(module.shape(view))


def _sentence(ahead: int, nodes: int) -> Pieces:
    of = f" of {format.integer(nodes)} nodes"
    if not ahead:
        return (
            ("Nothing may run ahead of this step", True),
            (f", {_counted(nodes, 'node')}.", False),
        )
    return (
        (format.integer(ahead), True),
        (f"{of} may run ahead of the step. What that gives, a run measures.", False),
    )


def _parts(view: GraphView, families: np.ndarray, side: Bools) -> tuple[Part, ...]:
    parts = []
    for number, family in enumerate(FAMILIES):
        nodes = np.flatnonzero(side & (families == number)).tolist()
        if not nodes:
            continue
        kinds = collections.Counter(view.ops[node] for node in nodes).most_common(_MOST_OPS)
        ops = [f"{format.integer(count)}{format.NBSP}{plain(op)}" for op, count in kinds]
        parts.append(
            Part(
                family=number,
                title=family.name,
                nodes=_counted(len(nodes), "node"),
                ops=", ".join(ops),
            )
        )
    return tuple(parts)


def _reasons(boundary: Boundary, problem: str) -> str:
    if problem:
        return sentence(plain(problem))
    counts = collections.Counter(refusal.reason.value for refusal in boundary.refusals())
    most = [f"{_counted(n, 'node')} ({why})" for why, n in counts.most_common(_MOST_REASONS)]
    return f"Why the rest stays: {'; '.join(most)}." if most else ""


def _counted(count: int, what: str) -> str:
    return f"{format.integer(count)} {what}" + "s" * (count != 1)
