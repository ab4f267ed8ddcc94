"""Nodes as boxes: by name scope, what is alike folded into one, a side never more than a handful.

Names that differ in numbers only are alike: "tower_0/MatMul_1" and "tower_1/MatMul". A box opens
into the boxes of its own scope, so that at any moment one level is shown.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence

import numpy as np

MORE = "more"
_NUMBER = re.compile(r"\d+")
_COPY = re.compile(r"_\d+$")


@dataclasses.dataclass(frozen=True, eq=False)
class Box:
    """One group of nodes.

    Attributes:
      label: its name within the box that it is opened from.
      title: its name in full.
      nodes: numbers of its nodes, rising.
      boxes: places, in the list of all boxes, of what it opens into; none for what is alike, and
        where there are too many boxes to keep.
    """

    label: str
    title: str
    nodes: np.ndarray
    boxes: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How many boxes: on the first level, on one that is opened, and in all; what is deeper than
    these cannot be opened."""

    first: int
    most: int
    kept: int


class _Scope:
    """A name scope, or several that are alike; `nodes` are those named like the scope itself."""

    def __init__(self) -> None:
        self.parts: set[str] = set()
        self.children: dict[str, _Scope] = {}
        self.nodes: list[int] = []
        self.count = 0
        # From the root to itself, and how much of that those inside it have in common.
        self.path: tuple[_Scope, ...] = ()
        self.depth = 0

    def add(self, node: int, parts: Sequence[str]) -> None:
        scope = self
        scope.count += 1
        for part in parts:
            child = scope.children.get(folded(part))
            if child is None:
                child = scope.children[folded(part)] = _Scope()
                child.path = (*scope.path, child)
                child.depth = len(child.path)
            child.parts.add(part)
            child.count += 1
            scope = child
        scope.nodes.append(node)

    def all_nodes(self) -> np.ndarray:
        found, waiting = [], [self]
        while waiting:
            scope = waiting.pop()
            found += scope.nodes
            waiting += scope.children.values()
        return np.sort(np.asarray(found, np.int64))

    def inside(self) -> list[_Scope]:
        """What it opens into; a node named like its scope is one of them."""
        found = [child.narrowed() for child in self.children.values()]
        if found and self.nodes:
            own = _Scope()
            own.parts, own.nodes, own.count = self.parts, self.nodes, len(self.nodes)
            own.path = (*self.path[:-1], own) if self.path else ()
            found.append(own)
        return found

    def narrowed(self) -> _Scope:
        """Past scopes that hold one thing only."""
        scope = self
        while len(scope.children) == 1 and not scope.nodes:
            (scope,) = scope.children.values()
        return scope


@functools.lru_cache(maxsize=100_000)
def folded(part: str) -> str:
    """What a part of a name shares with those that are alike."""
    return _NUMBER.sub("#", _COPY.sub("", part))


def folded_name(name: str) -> str:
    """What a whole name shares with those that are alike."""
    return "/".join(map(folded, name.split("/")))


def label_of(names: Iterable[str]) -> str:
    """One name for names that are alike: "tower_0…tower_3/MatMul"."""
    split = [name.split("/") for name in names]
    return "/".join(map(_part_label, zip(*split, strict=True)))


def boxes_of(
    names: Sequence[str],
    ops: Sequence[str],
    nodes: Iterable[int],
    limits: Limits,
) -> tuple[list[Box], tuple[int, ...]]:
    """Folds nodes into boxes.

    Args:
      names, ops: name and op type of every node of the graph.
      nodes: numbers of those to show.
      limits: how many boxes.

    Returns:
      All boxes, and the places of those on the first level.
    """
    root = _Scope()
    for node in nodes:
        root.add(int(node), names[node].split("/"))
    boxes: list[Box] = []
    top = _add_level(boxes, root, limits.first, ops)
    # By breadth: where the room ends, every side has lost the same depth.
    waiting = collections.deque((place, scope) for place, scope in top)
    while waiting:
        place, scope = waiting.popleft()
        if len(scope.inside()) and len(boxes) < limits.kept:
            level = _add_level(boxes, scope, limits.most, ops)
            waiting += level
            boxes[place] = dataclasses.replace(boxes[place], boxes=_places(level, boxes))
    return boxes, _places(top, boxes)


def _places(level: Sequence[tuple[int, _Scope]], made: Sequence[Box]) -> tuple[int, ...]:
    places = [place for place, _ in level]
    return tuple(sorted(places, key=lambda place: int(made[place].nodes[0])))


def _add_level(
    made: list[Box], scope: _Scope, most: int, ops: Sequence[str]
) -> list[tuple[int, _Scope]]:
    level = []
    for inner in _front(scope, most, ops):
        title = _label(inner.path)
        label = _label(inner.path[scope.depth :])
        level.append((len(made), inner))
        made.append(Box(label=label, title=title, nodes=inner.all_nodes()))
    return level


def _front(scope: _Scope, most: int, ops: Sequence[str]) -> list[_Scope]:
    """What stands for a scope: its parts, the largest of them opened while there is room."""
    front = scope.inside()
    if len(front) > most:
        return _with_more(front, most, ops)
    while True:
        for candidate in sorted(front, key=lambda inner: -inner.count):
            parts = candidate.inside()
            if parts and len(front) - 1 + len(parts) <= most:
                front.remove(candidate)
                front += parts
                break
        else:
            return front


def _with_more(front: list[_Scope], most: int, ops: Sequence[str]) -> list[_Scope]:
    """The largest, and one box for all others; single nodes are folded by their op type first."""
    shown = _by_type(front, ops)
    if len(shown) == 1:
        # One type of op alone tells nothing.
        shown = list(front)
    if len(shown) <= most:
        return shown
    shown.sort(key=lambda inner: -inner.count)
    rest = shown[most - 1 :]
    return [*shown[: most - 1], _together(rest, f"{len(rest)} {MORE}")]


def _by_type(front: list[_Scope], ops: Sequence[str]) -> list[_Scope]:
    kinds: dict[str, list[_Scope]] = collections.defaultdict(list)
    for inner in front:
        if not inner.children:
            kinds[ops[inner.nodes[0]]].append(inner)
    folded_in = [
        alike[0] if len(alike) == 1 else _of_one_type(alike, op) for op, alike in kinds.items()
    ]
    return [*(inner for inner in front if inner.children), *folded_in]


def _of_one_type(scopes: Sequence[_Scope], op: str) -> _Scope:
    """Single nodes of one op type under its name; nothing tells them apart, so it is not opened."""
    made = _together(scopes, f"{sum(scope.count for scope in scopes)} × {op}")
    made.nodes = [node for scope in scopes for node in scope.nodes]
    made.children = {}
    return made


def _together(scopes: Sequence[_Scope], name: str) -> _Scope:
    """Scopes that are not alike, under a name of their own."""
    made = _Scope()
    made.parts = {name}
    made.children = {str(i): inner for i, inner in enumerate(scopes)}
    made.count = sum(inner.count for inner in scopes)
    made.path = (*scopes[0].path[:-1], made)
    made.depth = len(made.path) - 1
    return made


def _label(path: Iterable[_Scope]) -> str:
    return "/".join(_part_label(tuple(scope.parts)) for scope in path)


def _part_label(parts: Iterable[str]) -> str:
    different = sorted(set(parts), key=_natural)
    return different[0] if len(different) == 1 else f"{different[0]}…{different[-1]}"


def _natural(part: str) -> list[tuple[int, str]]:
    """Numbers in their order, however long: names come from anybody."""
    return [_natural_piece(text) for text in re.split(r"(\d+)", part)]


def _natural_piece(text: str) -> tuple[int, str]:
    digits = text.lstrip("0") if text.isdigit() else ""
    return (len(digits), digits) if text.isdigit() else (-1, text)
