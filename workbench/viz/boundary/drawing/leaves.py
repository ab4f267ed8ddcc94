"""What the line moves: leaves, what each needs, and which outputs travel where it stands."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.viz.boundary.drawing.flow_schema import Leaf, Maker
from workbench.viz.boundary.drawing.tensors import size_of

# More names than this are not kept in a page.
MOST_NAMES = 4000
_AHEAD, _NOWHERE, _FIRST_STAYING = -1, -2, -3


@dataclasses.dataclass(frozen=True, eq=False)
class Leaves:
    """All leaves of a drawing.

    Attributes:
      views: as the outlets get them.
      makers: whose outputs may travel.
      nodes: the nodes of each leaf.
      named: whether the leaves have names.
    """

    views: tuple[Leaf, ...]
    makers: tuple[Maker, ...]
    nodes: tuple[Ints, ...]
    named: bool

    def moved(self, boundary: Boundary, leaves: Sequence[int]) -> list[Bools]:
        """The nodes that run ahead with these leaves, one set for each side."""
        chosen = boundary.view.mask(node for leaf in leaves for node in self.nodes[leaf].tolist())
        return [(chosen & side.widest) | _own_start(boundary, side) for side in boundary.sides]

    def of(self, moved: Bools) -> tuple[int, ...]:
        """The leaves all of whose nodes are among these."""
        return tuple(leaf for leaf, nodes in enumerate(self.nodes) if moved[nodes].all())


def leaves_of(
    boundary: Boundary, groups: Sequence[tuple[int, Ints]], ahead: Bools, staying: Sequence[Ints]
) -> Leaves:
    """The leaves of a drawing.

    Args:
      boundary: what may run ahead.
      groups: (place of its box, its nodes) of each leaf.
      ahead: nodes that run ahead whatever is chosen.
      staying: the nodes of each box that stays.
    """
    view = boundary.view
    where = np.full(len(view), _NOWHERE, np.int64)
    where[ahead] = _AHEAD
    for box, nodes in enumerate(staying):
        where[nodes] = _FIRST_STAYING - box
    for leaf, (_, nodes) in enumerate(groups):
        where[nodes] = leaf
    counted = np.any([s.widest | ~s.legal for s in boundary.sides], axis=0) & boundary.step
    where[(where <= _FIRST_STAYING) & ~counted] = _NOWHERE
    between, needs = _needs(view, where, len(groups))
    named = sum(len(nodes) for _, nodes in groups) <= MOST_NAMES
    return Leaves(
        views=tuple(
            Leaf(
                box=box,
                nodes=len(nodes),
                needs=tuple(sorted(needs[leaf])),
                begins=_ends(view, where, nodes, leaf, between[:, [1, 0]]) if named else (),
                ends=_ends(view, where, nodes, leaf, between) if named else (),
            )
            for leaf, (box, nodes) in enumerate(groups)
        ),
        makers=_makers(boundary, where),
        nodes=tuple(nodes for _, nodes in groups),
        named=named,
    )


def _own_start(boundary: Boundary, side: Side) -> Bools:
    """The take of the user's own stage, which is no box and always runs ahead of what moves."""
    start = side.start
    return boundary.view.mask(start.nodes if start.is_stage else ())


def _needs(view: GraphView, where: Ints, count: int) -> tuple[Ints, list[set[int]]]:
    """Edges between movable nodes, as pairs; and for each leaf the leaves that it needs."""
    pairs = np.concatenate([view.data[:, [0, 2]], view.control])
    pairs = pairs[(where[pairs] >= 0).all(axis=1)]
    needs: list[set[int]] = [set() for _ in range(count)]
    for source, target in np.unique(where[pairs], axis=0).tolist():
        if source != target:
            needs[target].add(source)
    # what cannot travel runs where it is read
    for source, output, target, _ in view.data[(where[view.data[:, [0, 2]]] >= 0).all(axis=1)]:
        stuck = op_types.cannot_travel(view.outputs[source][output])
        if stuck and where[source] != where[target]:
            needs[int(where[source])].add(int(where[target]))
    return pairs, needs


def _ends(
    view: GraphView, where: Ints, nodes: Ints, leaf: int, pairs: Ints
) -> tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]:
    """The nodes that nothing of their own leaf follows, by the leaves that follow them."""
    inside = pairs[where[pairs[:, 0]] == leaf]
    after: dict[int, set[int]] = collections.defaultdict(set)
    for node, other in zip(inside[:, 0].tolist(), where[inside[:, 1]].tolist(), strict=True):
        after[node].add(other)
    grouped: dict[tuple[int, ...], list[str]] = collections.defaultdict(list)
    for node in nodes.tolist():
        if leaf not in after[node]:
            grouped[tuple(sorted(after[node]))].append(view.names[node])
    return tuple((others, tuple(names)) for others, names in grouped.items())


def _makers(boundary: Boundary, where: Ints) -> tuple[Maker, ...]:
    view = boundary.view
    starts = {node for side in boundary.sides for node in side.start.nodes}
    readers: dict[tuple[int, int], set[int]] = collections.defaultdict(set)
    makers = set(starts)
    data = view.data
    kept = (where[data[:, 0]] >= 0) | np.isin(data[:, 0], list(starts))
    kept &= (where[data[:, 2]] >= 0) | (where[data[:, 2]] <= _FIRST_STAYING)
    for source, output, target, _ in data[kept & (where[data[:, 0]] != where[data[:, 2]])].tolist():
        code = int(where[target])
        readers[source, output].add(code if code >= 0 else code - _FIRST_STAYING - 1)
        makers.add(source)
    alike: collections.Counter[tuple[int, bool, tuple[tuple[tuple[int, ...], int], ...]]] = (
        collections.Counter()
    )
    for node in sorted(makers):
        shapes = view.output_shapes(node)
        outputs = tuple(
            (
                tuple(sorted(readers.get((node, output), ()))),
                size_of(dtype, shapes[output] if output < len(shapes) else None),
            )
            for output, dtype in enumerate(view.outputs[node])
        )
        alike[max(-1, int(where[node])), node in starts, outputs] += 1
    return tuple(
        Maker(leaf=leaf, count=count, always=always, outputs=outputs)
        for (leaf, always, outputs), count in alike.items()
    )
