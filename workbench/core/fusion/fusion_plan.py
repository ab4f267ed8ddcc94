"""FusionPlan: what is done to a graph so that few ops do what many did."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from tensorflow.core.framework import graph_pb2

from workbench import _native
from workbench.core.fusion.refusal import Refusal
from workbench.errors import PlanError
from workbench.number_words import counted

_TOLD = ("lookups", "norms", "interactions", "refusals")
_NAMED = ("matmuls", "hashed", "decoded", "adams", "bypassed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedLookup:
    """A stock lookup that a grouped op does instead.

    Attributes:
      name: the scope that it was built in.
      op: name of the grouped op.
      gradients: how many gradients of it grouped ops make; not those that an update makes itself.
      updates: whether the update of its table is done by a grouped op too.
      stock_update: type of the op of TensorFlow's that updates its table still; "" where none does.
    """

    name: str
    op: str
    gradients: int
    updates: bool
    stock_update: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedNorm:
    """A batch normalization that one op does instead.

    Attributes:
      name: the scope that it was built in.
      op: name of the op.
      gradients: how many of it are made by one op each.
      relus: of how many of these the op makes the gradient of the ReLU in front too.
    """

    name: str
    op: str
    gradients: int
    relus: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedInteraction:
    """An interaction of vectors that one op does instead.

    Attributes:
      name: the node that gave its result.
      op: name of the op.
      gradients: how many of it are made by one op each.
      kind: "dot", the products of pairs; "FM", twice their sum, as of a factorization machine.
    """

    name: str
    op: str
    gradients: int
    kind: str


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FusionPlan:
    """What is done to a graph so that few ops do its lookups, layers and columns of text.

    Attributes:
      lookups: those that are fused, in the graph's order.
      norms: batch normalizations that are, likewise.
      interactions: interactions of vectors that are, likewise.
      matmuls: names of products of matrices that a kernel of Workbench's does.
      hashed: names of the nodes that hashed columns of text into ids, which ops of many columns do.
      decoded: names of nodes that make columns of lines, which a kernel of Workbench's does.
      adams: names of Adam's updates of whole variables, likewise.
      refusals: of all these those that stay, and why.
      added: nodes that are added, a serialized GraphDef.
      replaced: nodes that come in the place of nodes of the same name, likewise.
      replaced_ops: the op types of those that they replace.
      bypassed: nodes that read tables, or compute, and which nothing needs any more.
    """

    lookups: tuple[FusedLookup, ...]
    norms: tuple[FusedNorm, ...]
    interactions: tuple[FusedInteraction, ...]
    matmuls: tuple[str, ...]
    hashed: tuple[str, ...]
    decoded: tuple[str, ...]
    adams: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    added: bytes
    replaced: bytes
    replaced_ops: tuple[str, ...]
    bypassed: tuple[str, ...]

    def __repr__(self) -> str:
        parts = [
            counted(len(self.lookups), "lookup"),
            *[counted(len(each), word) for each, word in self._others if each],
            *[counted(len(names), word) for names, word, _ in self._by_name if names],
            f"{len(self.refusals)} stay",
        ]
        return f"FusionPlan({', '.join(parts)})"

    @property
    def count(self) -> int:
        """How many lookups, layers, columns of text and updates are done in another way."""
        named = (names for names, *_ in self._by_name)
        return sum(map(len, (self.lookups, self.norms, self.interactions, *named)))

    @property
    def _by_name(self) -> list[tuple[tuple[str, ...], str, str]]:
        """Nodes of which the names are told: what one is called, and what is said of them."""
        products, columns = len(self.matmuls), len(self.hashed)
        updates = counted(len(self.adams), "variable")
        return [
            (
                self.matmuls,
                "matrix product",
                f"{counted(products, 'matrix product')} by Workbench's kernel",
            ),
            (self.hashed, "hashed column", f"{counted(columns, 'column')} of text hashed together"),
            (self.decoded, "line decoder", "lines decoded by Workbench's kernel"),
            (self.adams, "update", f"{updates} updated as by Adam by Workbench's kernel"),
        ]

    @property
    def _others(self) -> list[tuple[Sequence[FusedNorm | FusedInteraction], str]]:
        """What is no lookup, and what one is called."""
        kinds = sorted({each.kind for each in self.interactions})
        return [
            (self.norms, "batch normalization"),
            *(
                ([each for each in self.interactions if each.kind == kind], f"{kind} interaction")
                for kind in kinds
            ),
        ]

    def describe(self) -> str:
        """The plan in words: what is fused into which op, and why the rest is not."""
        lines = []
        for op in dict.fromkeys(each.op for each in self.lookups):
            own = [each for each in self.lookups if each.op == op]
            updated = sum(each.updates for each in own)
            parts = [f"{op}: {counted(len(own), 'lookup')} in one op"]
            parts += [f"{counted(updated, 'update')} of tables with their gradients"] * bool(
                updated
            )
            lines.append("; ".join(parts))
            lines += [f"  {each.name}" for each in own]
        for op in dict.fromkeys(each.stock_update for each in self.lookups if each.stock_update):
            own = [each for each in self.lookups if each.stock_update == op]
            lines.append(
                f"{op} updates {counted(len(own), 'table')} as before, because the update is not "
                "one that a grouped op is known to do alike; workbench.ops.fused_update(optimizer) "
                "changes rows natively"
            )
            lines += [f"  {each.name}" for each in own]
        for found, word in self._others:
            each = " each" if len(found) > 1 else ""
            lines += [f"{counted(len(found), word)} in one op{each}"] * bool(found)
            lines += [f"  {each.name}{_with_relu(each)}" for each in found]
        for names, _, said in self._by_name:
            lines += [said, *(f"  {name}" for name in names)] * bool(names)
        lines += [f"{each.name} stays: {each.reason}" for each in self.refusals]
        return "\n".join(lines) or (
            "the graph has no stock lookup, batch normalization or interaction of vectors"
        )

    def described(self) -> str:
        """Its lookups and refusals as JSON, for `of`."""
        own = {name: [dataclasses.asdict(each) for each in getattr(self, name)] for name in _TOLD}
        return json.dumps({**own, **{name: getattr(self, name) for name in _NAMED}})

    @classmethod
    def of(
        cls, described: str, *, added: bytes, replaced: bytes, replaced_ops: tuple[str, ...]
    ) -> FusionPlan:
        """The plan of which `described` told the rest."""
        own = json.loads(described)
        return cls(
            lookups=tuple(FusedLookup(**each) for each in own["lookups"]),
            norms=tuple(FusedNorm(**each) for each in own["norms"]),
            interactions=tuple(FusedInteraction(**each) for each in own["interactions"]),
            refusals=tuple(Refusal(**each) for each in own["refusals"]),
            added=added,
            replaced=replaced,
            replaced_ops=replaced_ops,
            **{name: tuple(own[name]) for name in _NAMED},
        )


def _with_relu(fused: FusedNorm | FusedInteraction) -> str:
    relus = isinstance(fused, FusedNorm) and fused.relus
    return ", with the gradient of the ReLU in front of it" if relus else ""


def fused_definition(definition: graph_pb2.GraphDef, plan: FusionPlan) -> graph_pb2.GraphDef:
    """A GraphDef as a plan makes it, for the graph that the plan was made for.

    Raises:
      PlanError: it was made for another one.
    """
    # The new nodes' ops are the library's.
    _native.library()
    replaced = {node.name: node for node in graph_pb2.GraphDef.FromString(plan.replaced).node}
    ops = dict(zip(replaced, plan.replaced_ops, strict=True))
    fused = graph_pb2.GraphDef(versions=definition.versions, library=definition.library)
    for node in definition.node:
        if node.name in replaced and node.op != (op := ops.pop(node.name)):
            raise PlanError(
                f"node {node.name!r} is a {node.op}, where the plan was made for a {op}; make a "
                "plan for this graph"
            )
        fused.node.append(replaced.get(node.name, node))
    if ops:
        raise PlanError(
            f"the graph has no node {next(iter(ops))!r}, which the plan replaces; make a plan for "
            "this graph"
        )
    fused.node.extend(graph_pb2.GraphDef.FromString(plan.added).node)
    return fused
