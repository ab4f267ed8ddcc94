"""FusionPlan: what is done to a graph so that few ops do what many did."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from tensorflow.core.framework import graph_pb2

from workbench import _native
from workbench.core.fusion.checks.fits import require_fit
from workbench.core.fusion.rule import Fused, Refusal
from workbench.number_words import counted

if TYPE_CHECKING:
    from workbench.core.fusion.verify.verification import Verification

# What a config carries as JSON.
_LISTS = ("lines", "bypassed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Nodes of a graph that have effects, for which one node of a plan stands.

    Attributes:
      op: name of that node.
      members: names of the nodes.
    """

    op: str
    members: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FusionPlan:
    """What is done to a graph so that few ops do its lookups, layers and columns of text.

    It belongs to the graph that it was made for: another one is an error.

    Attributes:
      fused: what is fused, by kind, each kind in the graph's order.
      refusals: what could be, and stays, with the reasons.
      lines: what is fused, in words.
      added: nodes that are added, a serialized GraphDef.
      replaced: nodes that come in the place of nodes of the same name, likewise.
      region: the nodes of the graph for which they stand, as they are in the graph, likewise; with
        the functions of the calls among them.
      sources: what these read from outside, of which op and attributes count, likewise.
      choices: names of replaced nodes in whose place a run of a session may need the graph's own.
      inside: names of nodes that are computed within a new one.
      reads: of these the ones that read variables, and that runs need to fetch them alone.
      writers: names of the nodes of the graph that may change the variables of the regions.
      groups: new nodes with the nodes that each stands for, which runs need all or none of.
      bypassed: nodes that read tables, or compute, and which nothing needs any more.
    """

    fused: tuple[Fused, ...]
    refusals: tuple[Refusal, ...]
    lines: tuple[str, ...]
    added: bytes
    replaced: bytes
    region: bytes
    sources: bytes
    choices: tuple[str, ...]
    inside: tuple[str, ...]
    reads: tuple[str, ...]
    writers: tuple[str, ...]
    groups: tuple[Group, ...]
    bypassed: tuple[str, ...]

    def __repr__(self) -> str:
        kinds = dict.fromkeys(each.kind for each in self.fused)
        parts = [counted(len(self.of(kind)), kind) for kind in kinds] or ["nothing fused"]
        return f"FusionPlan({', '.join(parts)}, {len(self.refusals)} stay)"

    @property
    def count(self) -> int:
        """How many lookups, layers, columns of text and updates are done in another way."""
        return len(self.fused)

    def of(self, kind: str) -> tuple[Fused, ...]:
        """What is fused of a kind, such as "lookup" or "batch normalization"."""
        return tuple(each for each in self.fused if each.kind == kind)

    def describe(self) -> str:
        """The plan in words: what is fused into which op, and why the rest is not."""
        stays = [f"{each.name} stays: {each.reason}" for each in self.refusals]
        return "\n".join([*self.lines, *stays]) or (
            "the graph has no stock lookup, batch normalization or interaction of vectors"
        )

    def verify(self, subject: Any, batch: Any = None) -> Verification:
        """Runs the graph's own nodes and those of the plan on one batch, and compares them.

        Both run in private sessions, on copies of the variables that they use. Variables, slots,
        iterators and random numbers of the user's session or function stay as they are. What cannot
        be run so is "not verified", with the reason. That what a node waits for, and the order in
        which variables are used, are kept is checked in the graph alone.

        Args:
          subject: a `tf.compat.v1` session, or one of `tf.compat.v1.train`, whose graph the plan
            was made for. Or that graph, whose variables are then as their initializers make them.
            Or a concrete function.
          batch: for a session or graph feeds, as of `session.run`; what is not fed comes from
            iterators of the private sessions' own. For a function its arguments, in any structure.

        Returns:
          A `Verification`: `require()` raises where something differs, `describe()` says it all.

        Raises:
          PlanError: the plan was made for another graph.
          OptionError: `subject` is none of these, or the batch does not fit it.
        """
        from workbench.core.fusion.verify.verifier import verify

        return verify(self, subject, batch)

    def to_json(self) -> str:
        """What only Python needs of it, for `from_json`."""
        own = {name: getattr(self, name) for name in _LISTS}
        for name in ("fused", "refusals"):
            own[name] = [dataclasses.asdict(each) for each in getattr(self, name)]
        return json.dumps(own)

    @classmethod
    def from_json(cls, text: str, **others: Any) -> FusionPlan:
        """The plan of which `to_json` gave this text; `others` are its other attributes."""
        own = json.loads(text)
        others |= {name: tuple(own[name]) for name in _LISTS}
        return cls(
            fused=tuple(Fused(**each) for each in own["fused"]),
            refusals=tuple(Refusal(**each) for each in own["refusals"]),
            **others,
        )


def fused_definition(definition: graph_pb2.GraphDef, plan: FusionPlan) -> graph_pb2.GraphDef:
    """A GraphDef as a plan makes it, for the graph that the plan was made for.

    Raises:
      PlanError: it was made for another one.
    """
    # The new nodes' ops are the library's.
    _native.library()
    region = graph_pb2.GraphDef.FromString(plan.region)
    require_fit(
        definition,
        region=region.node,
        sources=graph_pb2.GraphDef.FromString(plan.sources).node,
        writers=plan.writers,
        functions=region.library.function,
    )
    replaced = {node.name: node for node in graph_pb2.GraphDef.FromString(plan.replaced).node}
    fused = graph_pb2.GraphDef(versions=definition.versions, library=definition.library)
    fused.node.extend(replaced.get(node.name, node) for node in definition.node)
    fused.node.extend(graph_pb2.GraphDef.FromString(plan.added).node)
    return fused
