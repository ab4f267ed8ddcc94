"""Graph → FusableNodes: which of its nodes the rules of fusion would do without."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.core.fusion.plan import Answers, ask_rules, needed_outside
from workbench.core.fusion.rule import Part
from workbench.core.graph.op_families import stock_op


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusableNode:
    """A node that would not run as it is once its part is fused.

    Attributes:
      kind: of what it is part of, such as "batch normalization" or "dot interaction".
      part: what users call that, as of `Fused.name`.
      op: its type, where a node of the same name comes in its place; "" where none does.
    """

    kind: str
    part: str
    op: str = ""

    def ran_as(self, op: str) -> bool:
        """Whether a node of its name that ran as this op did work of its part.

        TensorFlow folds some into constants, which run beside what is fused as well.
        """
        return op != "Const" and self.op in ("", stock_op(op))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class FusableNodes:
    """What the rules would fuse of a graph, and what they refuse.

    Attributes:
      nodes: those that would not run as they are, by name.
      refusals: what stays, by the name that users call it; the reason, a clause.
    """

    nodes: Mapping[str, FusableNode]
    refusals: Mapping[str, str]


def fusable_nodes(graph: Any) -> FusableNodes:
    """Asks the rules once, as `plan_fusion` does.

    Args:
      graph: as of `plan_fusion`.

    Raises:
      PlanError: it is no graph.
    """
    answers = ask_rules(graph)
    rewritten, kinds = answers.rewritten, _kinds(answers)
    stock = rewritten.graph.nodes
    still_needed = needed_outside(rewritten)
    nodes: dict[str, FusableNode] = {}

    def add(name: str, part: Part, op: str = "") -> None:
        if part in kinds:
            nodes.setdefault(name, FusableNode(kind=kinds[part], part=part.name, op=op))

    for name, parts in rewritten.edit.bypassed_by.items():
        for part in parts[:1]:
            add(name, part)
    for replaced in rewritten.edit.replaced:
        old = stock.get(replaced.node.name)
        # A sum of fewer terms is still a sum.
        if replaced.parts and old is not None and old.op != replaced.node.op:
            add(old.name, replaced.parts[0], old.op)
    # What is waited for is in a region, too: the smallest one that has a node tells its part.
    for region in sorted(rewritten.regions, key=lambda each: len(each.nodes)):
        for part in region.parts[:1]:
            for name in region.inside - still_needed:
                add(name, part)
    return FusableNodes(nodes=nodes, refusals={each.name: each.reason for each in answers.refusals})


def _kinds(answers: Answers) -> dict[Part, str]:
    """The kind of each part that is fused."""
    fused = answers.rewritten.edit.fused
    kinds: dict[Part, str] = {}
    for rule, parts in answers.parts.items():
        by_name = {each.name: each.kind for each in fused if each.kind.endswith(rule.kind)}
        kinds |= {part: by_name[part.name] for part in parts if part.name in by_name}
    return kinds
