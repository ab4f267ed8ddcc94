"""Boundary: where a step's graph can be cut so that one side runs ahead, and why the rest stays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from workbench.core.boundary.blockers import Blocker, Reason
from workbench.core.boundary.inputs import Start
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.display import Displayed
from workbench.number_words import steps_stale


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Refusal:
    """Why one node stays on the compute side; path and words are worked out when asked for.

    Attributes:
      node, op: name and op type.
      number: of the node in the graph.
      reason: the kind of reason, that of the nearest blocker.
      blocker: the nearest node that has a reason of its own.
    """

    node: str
    op: str
    number: int
    reason: Reason
    blocker: Blocker
    _boundary: Boundary = dataclasses.field(repr=False)

    @functools.cached_property
    def path(self) -> tuple[str, ...]:
        """Names from the node to the blocker, the shortest path against the edges."""
        boundary = self._boundary
        path = [self.number]
        while boundary.next_hop[path[-1]] != path[-1]:
            path.append(int(boundary.next_hop[path[-1]]))
        return tuple(boundary.view.names[node] for node in path)

    @property
    def detail(self) -> str:
        """The reason in a sentence."""
        if len(self.path) == 1:
            return f"it {self.blocker.detail}"
        names = self.path if len(self.path) <= 6 else (*self.path[:3], "…", *self.path[-2:])
        return f"{self.blocker.node!r} {self.blocker.detail}; the way there: {' ← '.join(names)}"

    @property
    def change(self) -> str:
        """The smallest change that would let the node run ahead."""
        blockers = self._boundary.blockers_above(self.number)
        others = [blocker.node for blocker in blockers if blocker != self.blocker]
        if not others:
            return self.blocker.change()
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        names = ", ".join(map(repr, others[:3]))
        return f"{self.blocker.change()}; {names}{more} would have to be freed as well"

    def __str__(self) -> str:
        return f"{self.node!r} ({self.op}) stays: {self.detail}. To free it: {self.change}."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """What may run ahead from one start.

    Attributes:
      number: of the side among those of the boundary.
      start: where it begins.
      legal: nodes that may move, as bools over the graph; the start's own are among them.
      widest: the legal nodes that the compute side waits for, directly or not: what a widest
        stage moves. Empty where nothing on the compute side needs the input.
      stale: the legal nodes that depend on a lookup that runs ahead of its table's updates.
    """

    number: int
    start: Start
    legal: Bools
    widest: Bools
    stale: Bools


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Boundary(Displayed):
    """All that can be known about cutting one graph.

    Attributes:
      view: the graph.
      targets: nodes that stay, by the user's word.
      sides: one for each start.
      step: nodes that a step may run: ancestors of the targets, or all.
      blockers: the nodes with a reason of their own to stay, by number.
      next_hop: for nodes that stay, the next node on the path to the nearest blocker, else -1.
      stale_lookups: how many steps stale lookups may be; 0: none runs ahead.
      stale_reads: the data edges by which lookups read their tables ahead of the step, as rows of
        the view's data.
    """

    view: GraphView
    targets: tuple[str, ...]
    sides: tuple[Side, ...]
    step: Bools
    blockers: Mapping[int, Blocker]
    next_hop: Ints
    stale_lookups: int = 0
    stale_reads: tuple[int, ...] = ()

    def __repr__(self) -> str:
        ahead = sum(int(side.widest.sum()) for side in self.sides)
        stay = int(self.refused.sum())
        return f"Boundary({ahead} of {len(self.view)} nodes may run ahead, {stay} stay)"

    def carried(self, side: Side, moved: Bools) -> list[int]:
        """The nodes whose outputs travel when `moved` runs ahead: the start, then cut edges' ends.

        Args:
          side: one of `sides`.
          moved: a part of `side.widest` that has the start and lacks no ancestor.
        """
        cut = self.cut_edges(side, moved)
        ends = self.view.mask(cut[:, 0]) & ~self.view.mask(side.start.nodes)
        return [*side.start.nodes, *(node for node in self.view.ordered(moved) if ends[node])]

    def cut_edges(self, side: Side, moved: Bools) -> Ints:
        """The data edges from `moved` to what a step computes, int32 [edges, 4].

        What could run ahead but only a fetch needs does not count: it is computed again then.
        """
        data = self.view.data
        reads = self.step & ~moved & (side.widest | ~side.legal)
        return data[moved[data[:, 0]] & reads[data[:, 2]]]

    def exact(self, side: Side) -> Side:
        """A side as it is where no lookup may be stale."""
        if not side.stale.any():
            return side
        return dataclasses.replace(
            side,
            legal=side.legal & ~side.stale,
            widest=self.exact_part(side, side.widest),
            stale=side.stale & False,
        )

    def exact_part(self, side: Side, moved: Bools) -> Bools:
        """`moved` without lookups that may be stale and what depends on them."""
        stale = moved & side.stale
        return self.fit_to_travel(side, moved & ~stale) if stale.any() else moved

    @functools.cached_property
    def held(self) -> GraphView:
        """The graph by whose edges a blocker holds others back: not by those of stale lookups."""
        return self.view.without_data(self.stale_reads)

    def fit_to_travel(self, side: Side, moved: Bools) -> Bools:
        """`moved` without what could only give the rest tensors that cannot travel."""
        while True:
            ends = np.unique(self.cut_edges(side, moved)[:, 0]).tolist()
            stuck = [n for n in ends if any(map(op_types.cannot_travel, self.view.outputs[n]))]
            if not stuck:
                return moved
            moved = moved & ~self.view.reached(self.view.mask(stuck))

    def refusal(self, name: str) -> Refusal | None:
        """Why a node stays; None when it may move, or does not depend on the input.

        Raises:
          PlanError: there is no such node.
        """
        node = self.view.number(name)
        return self._refusal(node) if self.refused[node] else None

    @functools.cached_property
    def refused(self) -> Bools:
        """The nodes that depend on the input and stay."""
        return (self.next_hop >= 0) & self._depends

    def refusals(self) -> tuple[Refusal, ...]:
        """Why each node stays that depends on the input; those next to the boundary first."""
        staying = self.refused
        legal = self._any_legal
        data = self.view.data
        next_to = self.view.mask(data[legal[data[:, 0]] & staying[data[:, 2]], 2])
        order = [*np.flatnonzero(next_to), *np.flatnonzero(staying & ~next_to)]
        return tuple(self._refusal(int(node)) for node in order)

    def blockers_of(self, name: str) -> list[Blocker]:
        """All blockers that a node depends on, its own reason among them.

        Raises:
          PlanError: there is no such node.
        """
        return self.blockers_above(self.view.number(name))

    def blockers_above(self, node: int) -> list[Blocker]:
        """As `blockers_of`, for the node of a number."""
        only = self._only_blocker[node]
        if only >= 0:
            return [self.blockers[only]]
        above = self.held.ancestors(self.view.mask([node]))
        return [blocker for node, blocker in self.blockers.items() if above[node]]

    def explain(self, name: str) -> str:
        """What happens to one node and why, in a sentence or two.

        Raises:
          PlanError: there is no such node.
        """
        node = self.view.number(name)
        node_name, op = self.view.names[node], self.view.ops[node]
        refusal = self.refusal(name)
        if refusal:
            return str(refusal)
        if self._any_legal[node]:
            if any(side.widest[node] and side.stale[node] for side in self.sides):
                return (
                    f"{node_name!r} ({op}) runs {steps_stale(self.stale_lookups)}: "
                    f"stale_lookups={self.stale_lookups}."
                )
            if any(side.widest[node] for side in self.sides):
                return f"{node_name!r} ({op}) may run ahead: it depends on the input, on no state."
            return (
                f"{node_name!r} ({op}) could run ahead, but nothing on the compute side needs it; "
                "when it is fetched it is computed from the step's own batch."
            )
        return (
            f"{node_name!r} ({op}) does not depend on the input, so there is nothing to run ahead."
        )

    @functools.cached_property
    def _any_legal(self) -> Bools:
        return np.any(
            [np.zeros(len(self.view), bool), *(side.legal for side in self.sides)], axis=0
        )

    @functools.cached_property
    def _depends(self) -> Bools:
        starts = self.view.mask(node for side in self.sides for node in side.start.nodes)
        return self.view.reached(starts)

    @functools.cached_property
    def _only_blocker(self) -> list[int]:
        """For each node the one blocker that it depends on; -1 for none, -2 for several."""
        begin, nodes = self.held.consumers.lists
        only = [-1] * len(self.view)
        waiting = list(self.blockers)
        for node in waiting:
            only[node] = node
        while waiting:
            node = waiting.pop()
            for consumer in nodes[begin[node] : begin[node + 1]]:
                known = only[consumer]
                joined = only[node] if known in (-1, only[node]) else -2
                if joined != known:
                    only[consumer] = joined
                    waiting.append(consumer)
        return only

    @functools.cached_property
    def nearest_blocker(self) -> Ints:
        """For each node that stays the number of its nearest blocker, for others their own."""
        root = np.where(self.next_hop < 0, np.arange(len(self.view)), self.next_hop)
        while True:
            further = root[root]
            if (further == root).all():
                return root
            root = further

    def _refusal(self, node: int) -> Refusal:
        blocker = self.blockers[int(self.nearest_blocker[node])]
        return Refusal(
            node=self.view.names[node],
            op=self.view.ops[node],
            number=node,
            reason=blocker.reason,
            blocker=blocker,
            _boundary=self,
        )
