"""Rules of which a node of another op takes the place of a node, and of those it joins with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rule import Edit, Fused, Part, Refusal, Rule, Surroundings, listed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Swap:
    """A node with another kernel.

    Attributes:
      node: comes in the place of the node of its name.
      instead_of: names of the nodes whose work it does.
    """

    node: node_def_pb2.NodeDef
    instead_of: Sequence[str]


def other_kernel_rule(
    kind: str,
    swaps: Callable[[Definition, Placement], Iterable[Swap]],
    sentence: Callable[[int], str],
) -> Rule:
    """The rule of a kind, which refuses nothing: what stays is as fast.

    Args:
      kind: one of it, in words.
      swaps: those of a graph.
      sentence: what is said of so many.
    """

    def find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
        return [Part(name=swap.node.name, match=swap) for swap in swaps(graph, placement)], []

    def edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
        edit = Edit()
        for part in parts:
            swap: Swap = part.match
            if surroundings.taken.isdisjoint(swap.instead_of):
                edit.replace(swap.node, part)
                edit.fused.append(Fused(kind=kind, name=part.name, op=part.name))
        return edit

    def describe(fused: Sequence[Fused]) -> list[str]:
        return listed(sentence(len(fused)), fused)

    return Rule(kind=kind, find=find, edit=edit, describe=describe)
