"""RewrittenGraph: a graph before and after an edit, and what each replaced node stands for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.core.fusion.checks.feeds import Asking, asking_for_more
from workbench.core.fusion.checks.order import inputs_of
from workbench.core.fusion.pattern.definition import Definition, tensor_name
from workbench.core.fusion.rule import Edit, Part, Replaced
from workbench.core.graph.graph_view import node_name


@dataclasses.dataclass(frozen=True, kw_only=True)
class Region:
    """The nodes of a graph for which one replaced node, and the new nodes behind it, stand.

    Attributes:
      node: name of the replaced node.
      parts: that it is of.
      nodes: names of the nodes for which it stands, itself among them.
      new: names of new nodes that it depends on, before any node of the graph.
      reads: the tensors that it reads from outside.
    """

    node: str
    parts: tuple[Part, ...]
    nodes: frozenset[str]
    new: frozenset[str]
    reads: frozenset[str]

    @property
    def inside(self) -> frozenset[str]:
        """The nodes that are computed within an op."""
        return self.nodes - {self.node}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Entries:
    """What new nodes depend on: themselves, tensors of the graph, and nodes that they wait for."""

    new: frozenset[str]
    reads: frozenset[str]
    waits: frozenset[str]


class RewrittenGraph:
    """A graph, and what an edit makes of it."""

    def __init__(self, graph: Definition, edit: Edit) -> None:
        self.graph = graph
        self.edit = edit
        self._added = {node.name: node for node in edit.added}
        self._entries: dict[str, _Entries] = {}

    @functools.cached_property
    def after(self) -> dict[str, Any]:
        """The nodes of the graph after the edit, by name."""
        replaced = {each.node.name: each.node for each in self.edit.replaced}
        return {**self.graph.nodes, **self._added, **replaced}

    @functools.cached_property
    def inputs_before(self) -> dict[str, list[str]]:
        """What each node depends on before the edit."""
        return inputs_of(self.graph.nodes)

    @functools.cached_property
    def inputs_after(self) -> dict[str, list[str]]:
        """What each node depends on after the edit."""
        return inputs_of(self.after)

    @functools.cached_property
    def regions(self) -> tuple[Region, ...]:
        """Of each replaced node."""
        return tuple(map(self._region, self.edit.replaced))

    @functools.cached_property
    def standing_in(self) -> Mapping[str, tuple[Region, ...]]:
        """By the name of each node of the graph the regions that it is in."""
        found: dict[str, list[Region]] = {}
        for region in self.regions:
            for name in region.nodes:
                found.setdefault(name, []).append(region)
        return {name: tuple(regions) for name, regions in found.items()}

    @functools.cached_property
    def asking_for_more(self) -> tuple[Asking, ...]:
        """New nodes that need a feed, or have an effect, that a part of what they do does not."""
        return tuple(asking_for_more(self))

    def _region(self, replaced: Replaced) -> Region:
        entries = self._entries_of(replaced.node)
        reads = entries.reads if replaced.reads is None else replaced.reads
        nodes = {replaced.node.name}
        waiting = [replaced.node.name]
        while waiting:
            for text in self.graph.nodes[waiting.pop()].input:
                name = node_name(text)
                outside = name in entries.waits if text[0] == "^" else tensor_name(text) in reads
                if not outside and name not in nodes:
                    nodes.add(name)
                    waiting.append(name)
        return Region(
            node=replaced.node.name,
            parts=replaced.parts,
            nodes=frozenset(nodes),
            new=entries.new,
            reads=reads,
        )

    def _entries_of(self, node: Any) -> _Entries:
        known = self._entries.get(node.name)
        if known is None:
            known = self._entries[node.name] = self._entries_through(node.input)
        return known

    def _entries_through(self, inputs: Iterable[str]) -> _Entries:
        new: set[str] = set()
        reads: set[str] = set()
        waits: set[str] = set()
        for text in inputs:
            added = self._added.get(node_name(text))
            if added is not None:
                behind = self._entries_of(added)
                new |= {added.name, *behind.new}
                reads |= behind.reads
                waits |= behind.waits
            elif text.startswith("^"):
                waits.add(text[1:])
            else:
                reads.add(tensor_name(text))
        return _Entries(new=frozenset(new), reads=frozenset(reads), waits=frozenset(waits))
