"""Groups of nodes as finished boxes: words, marks, what travels out and what is read."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.core.graph import op_families
from workbench.core.graph.flow_order import GroupOrder
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.number_words import steps_stale
from workbench.viz.boundary.areas import Area, Tensor, dtype_words
from workbench.viz.boundary.refusals import Refusals
from workbench.viz.boundary.schema import BoxView
from workbench.viz.boundary.scopes import Box, Limits, boxes_of, folded_name, label_of
from workbench.viz.style import colors, format

_MOST_ROWS = 8
_NO_EDGES, _NO_NODES = np.zeros((0, 4), np.int32), np.zeros(0, np.int64)


class BoxMaker:
    """Makes the boxes of one view; all of them stand in one list.

    Args:
      view: the graph.
      refusals: why its nodes stay.
      left: nodes that may run ahead and that the plan leaves on the compute side.
      limits: how many boxes a region has.
      op_ns: time of each node in a step, where there are costs.

    Attributes:
      boxes, nodes: what was made, and the nodes of each.
    """

    def __init__(
        self,
        view: GraphView,
        refusals: Refusals,
        left: Bools,
        limits: Limits,
        op_ns: np.ndarray | None = None,
    ) -> None:
        self.boxes: list[BoxView] = []
        self.nodes: list[Ints] = []
        self._op_ns = op_ns
        self._view = view
        self._refusals = refusals
        self._left = left
        self._limits = limits
        self._order = GroupOrder(view)
        self._family_of = op_families.families_of(view.ops, view.names)
        known = {op: i for i, op in enumerate(dict.fromkeys(view.ops))}
        self._op_of = np.asarray([known[op] for op in view.ops], np.int32)

    def staged(self, area: Area, unread: Mapping[Tensor, str], most: int = 0) -> tuple[int, ...]:
        """Boxes of what runs ahead; places of the first level.

        Args:
          area: where they stand.
          unread: what travels although nothing behind the buffer reads it, with the reason.
          most: boxes of the first level; 0 takes the view's limit.
        """
        tensors_of: dict[int, list[Tensor]] = collections.defaultdict(list)
        for tensor in area.tensors:
            tensors_of[tensor.node].append(tensor)

        def finish(box: Box) -> BoxView:
            out = [t for node in box.nodes.tolist() for t in tensors_of.get(node, ())]
            why = dict.fromkeys(unread[tensor] for tensor in out if tensor in unread)
            explanation = " ".join([_ahead(area), *([travel_words(out)] if out else []), *why])
            travels = format.integer(len(out)) if out else ""
            return dataclasses.replace(self._plain(box), travels=travels, explanation=explanation)

        return self._add(area.nodes, finish, most)

    def computed(self, nodes: Ints, edges: Ints = _NO_EDGES, most: int = 0) -> tuple[int, ...]:
        """Boxes of what stays; places of the first level.

        Args:
          nodes: their numbers.
          edges: those by which they read what travels, as rows of the graph's data edges.
          most: boxes of the first level; 0 takes the view's limit.
        """
        read = collections.defaultdict(set)
        for source, output, target, _ in edges.tolist():
            read[target].add((source, output))

        def finish(box: Box) -> BoxView:
            seen = set().union(*(read.get(node, ()) for node in box.nodes.tolist()))
            reads = f"Reads {_tensors(len(seen))} out of the buffer. " if seen else ""
            rows = np.unique(self._refusals.row_of[box.nodes])
            rows = rows[rows >= 0].tolist()
            more = len(rows) - _MOST_ROWS
            return dataclasses.replace(
                self._plain(box),
                reads=format.integer(len(seen)) if seen else "",
                marks=self._marks(box.nodes),
                held_by=self._held_by(box.nodes),
                explanation=reads + self._stays(box.nodes),
                rows=tuple(rows[:_MOST_ROWS]),
                more_rows=format.integer(more) if more > 0 else "",
            )

        return self._add(nodes, finish, most)

    def aside(self, nodes: Ints, label: str) -> tuple[int, ...]:
        """One box that holds all of these nodes, to be opened; nothing where there are none."""
        if not len(nodes):
            return ()
        inner = self.computed(nodes)
        about = f"{format.integer(len(nodes))} nodes"
        plain = self._plain(Box(label=label, title=label, nodes=nodes))
        whole = dataclasses.replace(
            plain,
            about=about,
            explanation=self._stays(nodes),
            boxes=inner,
            family=op_families.CONTROL,
        )
        self.boxes.append(whole)
        self.nodes.append(nodes)
        return (len(self.boxes) - 1,)

    def name_nodes(self, most: int) -> None:
        """Names the nodes of each box that are in none inside it, where all are few enough."""
        own = [self._own_nodes(place) for place in range(len(self.boxes))]
        if sum(map(len, own)) > most:
            return
        for place, nodes in enumerate(own):
            names = tuple(self._view.names[node] for node in nodes)
            self.boxes[place] = dataclasses.replace(self.boxes[place], nodes=names)

    def _own_nodes(self, place: int) -> list[int]:
        inside = [self.nodes[inner] for inner in self.boxes[place].boxes]
        kept = np.isin(self.nodes[place], np.concatenate([_NO_NODES, *inside]), invert=True)
        return [int(node) for node in self.nodes[place][kept]]

    def _add(self, nodes: Ints, finish: Callable[[Box], BoxView], most: int) -> tuple[int, ...]:
        view, base = self._view, len(self.boxes)
        limits = dataclasses.replace(self._limits, first=most) if most else self._limits
        made, first = boxes_of(view.names, view.ops, nodes.tolist(), limits)
        self.boxes += map(finish, made)
        self.nodes += [box.nodes for box in made]
        for place, box in enumerate(made):
            inner = self._level(made, box.boxes, base)
            self.boxes[base + place] = dataclasses.replace(self.boxes[base + place], boxes=inner)
        return self._level(made, first, base)

    def _level(self, made: Sequence[Box], level: Sequence[int], base: int) -> tuple[int, ...]:
        """Boxes that stand beside each other, in their order; they learn whether they feed."""
        ordered = self._order.of([made[place].nodes for place in level])
        places = tuple(base + level[at] for at in ordered.places)
        for place, feeds in zip(places, ordered.feeds, strict=True):
            self.boxes[place] = dataclasses.replace(self.boxes[place], feeds=feeds)
        return places

    def _plain(self, box: Box) -> BoxView:
        count = len(box.nodes)
        ops = self._op_of[box.nodes]
        if (ops == ops[0]).all():
            op = self._view.ops[box.nodes[0]]
            about = op if count == 1 else f"{format.integer(count)} × {op}"
        else:
            about = f"{format.integer(count)} nodes"
        families = np.bincount(self._family_of[box.nodes], minlength=len(colors.FAMILIES))
        # What counts and shapes is in every group; it names only what is nothing else.
        families[op_families.CONTROL] = families[op_families.CONTROL] == count
        return BoxView(
            label=box.label,
            title=box.title,
            about=about,
            family=int(families.argmax()),
            time=self._time(box.nodes),
        )

    def _time(self, nodes: Ints) -> str:
        return "" if self._op_ns is None else format.duration(float(self._op_ns[nodes].sum()))

    def _marks(self, nodes: Ints) -> tuple[int, ...]:
        """The reasons that occur, then whether something is left that may run ahead."""
        reasons = self._refusals.reason_of[nodes]
        counts = np.bincount(reasons[reasons >= 0], minlength=1)
        marks = [int(place) for place in np.argsort(-counts, kind="stable") if counts[place]]
        if self._left[nodes].any():
            marks.append(len(self._refusals.reasons) - 1)
        return tuple(marks)

    def _held_by(self, nodes: Ints) -> str:
        """The nearest blockers of most of them, and how many others there are."""
        alike: dict[str, collections.Counter[str]] = {}
        for blocker in self._refusals.blocker_of[nodes].tolist():
            if blocker >= 0:
                name = self._view.names[blocker]
                alike.setdefault(folded_name(name), collections.Counter())[name] += 1
        if not alike:
            return ""
        most = max(alike.values(), key=lambda names: names.total())
        more = sum(map(len, alike.values())) - len(most)
        return f"{label_of(most)}, {format.integer(more)} more" if more else label_of(most)

    def _stays(self, nodes: Ints) -> str:
        """How many nodes stay, are left, or have nothing to do with the input."""
        refused = int((self._refusals.reason_of[nodes] >= 0).sum())
        left = int(self._left[nodes].sum())
        others = len(nodes) - refused - left
        if refused == len(nodes):
            return "Stays on the compute side."
        if left == len(nodes):
            return "May run ahead; the plan leaves it on the compute side."
        if others == len(nodes):
            return "Does not depend on the input, so there is nothing to run ahead."
        parts = (
            (refused, "must stay"),
            (left, "may run ahead and are left"),
            (others, "do not depend on the input"),
        )
        counted = [f"{format.integer(count)} {words}" for count, words in parts if count]
        return f"Of {format.integer(len(nodes))} nodes {', '.join(counted)}."


def travel_words(tensors: Sequence[Tensor]) -> str:
    """What travels, in a sentence: "52 tensors travel: 26 int64, 26 float32."."""
    words = dtype_words([tensor.dtype for tensor in tensors])
    return f"{_tensors(len(tensors))} {'travels' if len(tensors) == 1 else 'travel'}: {words}."


def _tensors(count: int) -> str:
    return f"{format.integer(count)} {'tensor' if count == 1 else 'tensors'}"


def _ahead(area: Area) -> str:
    if area.kind == "may" and not area.stale_lookups:
        return "May run ahead: depends on the input, on no state."
    if area.stale_lookups:
        may = "May run" if area.kind == "may" else "Runs"
        return f"{may} {steps_stale(area.stale_lookups)}: stale_lookups={area.stale_lookups}."
    where = "your stage" if area.kind == "own" else "stage"
    return f"Runs ahead of the step in {where} “{area.name}”."
