"""Rule: one kind of fusion; what it finds, what it does to a graph, what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorflow.core.framework import node_def_pb2

    from workbench.core.fusion.pattern.definition import Definition
    from workbench.core.fusion.pattern.placement import Placement


class RefusedError(Exception):
    """Something stays; the text is the reason."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """A lookup, layer or column that stays as it is.

    Attributes:
      name: what users call it: the scope that it was built in; of dense ids and dots the node
        itself.
      reason: why, a clause.
    """

    name: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fused:
    """Something of a graph that few ops, or another kernel, do instead.

    Attributes:
      kind: of the rule that found it, such as "lookup" or "batch normalization".
      name: what users call it, as of a refusal.
      op: name of the node that does it.
      gradients: how many gradients of it nodes of the plan make; not those that an update makes.
      updates: whether the plan does the update of its table, too.
      note: what else there is to say, a clause; "" for nothing.
    """

    kind: str
    name: str
    op: str
    gradients: int = 0
    updates: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """What a rule found in one place, all of which is fused or nothing.

    Attributes:
      name: what users call it.
      match: what the rule needs for its edit.
    """

    name: str
    match: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replaced:
    """A node that comes in the place of the node of the same name.

    Attributes:
      node: its definition.
      parts: the parts that it is of.
      reads: the tensors of the graph that what it gives is computed from, "node:output"; None for
        all that the plan's nodes behind it read, where these do several parts' work.
    """

    node: node_def_pb2.NodeDef
    parts: tuple[Part, ...]
    reads: frozenset[str] | None = None


@dataclasses.dataclass(kw_only=True)
class Edit:
    """What a rule does to a graph, while it is made.

    Attributes:
      added: new nodes.
      replaced: nodes that come in the place of others.
      bypassed: by the name of each node that nothing needs any more, the node for which others wait
        instead; "" where they need not wait.
      bypassed_by: of these nodes the parts that do not need them.
      groups: by the name of each new node that does several updates, the nodes of the graph that it
        stands for.
      credits: what a part takes for itself alone, such as a gradient of rows, and the parts.
      fused: what is fused, in the graph's order.
    """

    added: list[node_def_pb2.NodeDef] = dataclasses.field(default_factory=list)
    replaced: list[Replaced] = dataclasses.field(default_factory=list)
    bypassed: dict[str, str] = dataclasses.field(default_factory=dict)
    bypassed_by: dict[str, list[Part]] = dataclasses.field(default_factory=dict)
    groups: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    credits: list[tuple[str, Part]] = dataclasses.field(default_factory=list)
    fused: list[Fused] = dataclasses.field(default_factory=list)

    def replace(
        self, node: node_def_pb2.NodeDef, *parts: Part, reads: frozenset[str] | None = None
    ) -> None:
        """Puts a node in the place of the one of the same name."""
        self.replaced.append(Replaced(node=node, parts=parts, reads=reads))

    def extend(self, other: Edit) -> None:
        """Does what another edit does, too."""
        self.added += other.added
        self.replaced += other.replaced
        self.bypassed |= other.bypassed
        self.bypassed_by |= other.bypassed_by
        self.groups |= other.groups
        self.credits += other.credits
        self.fused += other.fused

    def bypass(self, name: str, by: str, *parts: Part) -> None:
        """Has what waits for a node wait for another one, or for none."""
        self.bypassed[name] = by
        self.bypassed_by.setdefault(name, []).extend(parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a rule's edit may ask of a graph beside the parts.

    Attributes:
      graph: the graph.
      runs: by the name of each node what tells in which runs it is, as `run_together` says; empty
        of a function, which runs as a whole.
      effects: by the name of each node the effects that it waits for, a set as bits; likewise
        empty.
      taken: names of the nodes that the rules before replace, or that nothing needs any more.
    """

    graph: Definition
    runs: Mapping[str, tuple[int, ...]]
    effects: Mapping[str, int] = dataclasses.field(default_factory=dict)
    taken: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """One kind of fusion.

    Attributes:
      kind: one of it, in words; what it fuses has a kind that ends with this.
      find: the parts of a graph that can be fused, in its order, and those that cannot.
      edit: what is done to the graph for some parts.
      describe: what is said of what is fused, lines.
      is_dense: whether its ops are those of native/dense, which a build may leave out.
    """

    kind: str
    find: Callable[[Definition, Placement], tuple[list[Part], list[Refusal]]]
    edit: Callable[[Surroundings, Sequence[Part]], Edit]
    describe: Callable[[Sequence[Fused]], list[str]]
    is_dense: bool = True


def listed(sentence: str, fused: Sequence[Fused]) -> list[str]:
    """A sentence, and below it the names and notes of what is fused."""
    return [sentence, *(f"  {each.name}{f', {each.note}' if each.note else ''}" for each in fused)]


def scope_of(name: str) -> str:
    """The scope of a node; its own name at the top."""
    return name.rpartition("/")[0] or name
