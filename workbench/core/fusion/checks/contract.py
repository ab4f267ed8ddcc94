"""The contract of every rewrite of a graph: what an edit must keep.

requires: each part that is fused was found in the graph as it is; natively, the graph of the
  session has every node of the plan's regions as it was (`FusionPlan.region`).
ensures:
  1. a node of the graph is replaced once, and what a part takes is taken by no other part;
  2. no node waits for itself, neither in the graph as the edit makes it nor where a run needs a
     part of the old one;
  3. what a node waited for by data or control, and matters beside its tensors, it still waits for:
     updates, checks, batches, random numbers, placeholders;
  4. a node without effects waits for no effect that it did not wait for;
  5. an op asks for no placeholder that none of the nodes needs for which it stands;
  6. two uses of a variable of which one may change it keep the order that the graph states.
What a run feeds or fetches within a region is known when it runs: then it gets the graph's own
nodes. `FusionPlan` says where that may be.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator, Mapping

from workbench.core.fusion.checks.effects import has_effect, variables_used
from workbench.core.fusion.checks.order import Order, cyclic
from workbench.core.fusion.checks.rewritten import Region, RewrittenGraph
from workbench.core.fusion.rule import Part
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_types import FED_ALWAYS, PLACEHOLDERS

_ITSELF = "an op of Workbench's in its place would wait for itself"


def violations(rewritten: RewrittenGraph, ends: Iterable[str] | None = None) -> dict[Part, str]:
    """The parts that cannot be fused together with the others, each with the reason, a clause.

    Args:
      rewritten: the graph before and after.
      ends: names of the nodes that each run needs; None where runs differ, of a session's graph.
    """
    reasons: dict[Part, str] = {}
    for check in (_once, _cycles):
        for part, reason in check(rewritten):
            reasons.setdefault(part, reason)
    if reasons:
        # The others ask for an order, which the graph has only without these.
        return reasons
    before, after = rewritten.inputs_before, rewritten.inputs_after
    uses = _uses(rewritten)
    marked = [
        name
        for name, node in rewritten.graph.nodes.items()
        if has_effect(node.op) or node.op in PLACEHOLDERS
    ]
    used = {name for names in uses.before.values() for name, _ in names}
    used |= {name for names in uses.after.values() for name, _ in names}
    stock = Order(before, [*marked, *(name for name in used if name in before)])
    now = Order(after, [*marked, *used])
    gained: Iterable[tuple[Part, str]] = ()
    if ends is None:
        gained = _gained(rewritten)
    for part, reason in itertools.chain(
        _lost(rewritten, stock, now, frozenset(marked)),
        gained,
        _order_of_uses(rewritten, stock, now, uses, needed(rewritten, ends)),
    ):
        reasons.setdefault(part, reason)
    return reasons


def needed(rewritten: RewrittenGraph, ends: Iterable[str] | None) -> frozenset[str]:
    """The nodes whose values runs may need after the edit, whatever they fetch within regions.

    Of what something only waits for, no value is needed: a function waits for all its reads.

    Args:
      rewritten: the graph before and after.
      ends: as of `violations`; without them what has an effect, and groups of such.
    """
    nodes, inputs = rewritten.after, rewritten.inputs_after
    if ends is None:
        read = {source for sources in inputs.values() for source in sources}
        ends = [name for name, node in nodes.items() if node.op == "NoOp" and name not in read]
    effects = [name for name, node in nodes.items() if has_effect(node.op)]
    reached = {*ends, *effects} & nodes.keys()
    waiting = list(reached)
    while waiting:
        for text in nodes[waiting.pop()].input:
            source = node_name(text)
            if not text.startswith("^") and source not in reached:
                reached.add(source)
                waiting.append(source)
    return frozenset(reached)


def _once(rewritten: RewrittenGraph) -> Iterator[tuple[Part, str]]:
    """Parts that take what another one takes, or replace the same node by another edit."""
    edit = rewritten.edit
    takers: dict[str, list[Part]] = collections.defaultdict(list)
    for name, part in edit.credits:
        takers[name].append(part)
    for name, parts in takers.items():
        for part in parts[1:]:
            yield part, f"the gradient {name!r} belongs to another lookup, too"
    seen: set[str] = set()
    for each in edit.replaced:
        if each.node.name in seen:
            for part in each.parts:
                yield part, f"something else that is fused has node {each.node.name!r}, too"
        seen.add(each.node.name)


def _cycles(rewritten: RewrittenGraph) -> Iterator[tuple[Part, str]]:
    after, before = rewritten.inputs_after, rewritten.inputs_before
    union = {name: [*sources, *before.get(name, ())] for name, sources in after.items()}
    on_cycle = cyclic(union)
    for region in rewritten.regions if on_cycle else ():
        if region.node in on_cycle and not on_cycle.isdisjoint(region.new or {region.node}):
            for part in region.parts:
                yield part, _ITSELF


def _lost(
    rewritten: RewrittenGraph, stock: Order, now: Order, marked: frozenset[str]
) -> Iterator[tuple[Part, str]]:
    """Parts whose nodes do not wait any more for what they waited for, nor do it themselves."""
    doing = {region.node: region.new for region in rewritten.regions}
    for region in rewritten.regions:
        lost = [
            name
            for name in stock.lost(region.node, now)
            if name in marked and region.new.isdisjoint(doing.get(name, ()))
        ]
        for part in region.parts if lost else ():
            before = f"{rewritten.graph.nodes[lost[0]].op} {lost[0]!r}"
            yield part, f"{region.node!r} waits for {before}, and an op in its place would not"


def _gained(rewritten: RewrittenGraph) -> Iterator[tuple[Part, str]]:
    """Parts of which a run has an effect, or takes a batch or a feed, that it did not before."""
    for asking in rewritten.asking_for_more:
        for name in asking.unknown[:1]:
            op = rewritten.graph.nodes[name].op
            would = f"ask for {name!r} to be fed" if op in FED_ALWAYS else f"run {op} {name!r}"
            for part in dict.fromkeys(part for region in asking.regions for part in region.parts):
                yield part, f"an op in its place would {would}"


class _Uses:
    """Uses of variables: by variable the names of nodes, each with whether it may change it."""

    def __init__(self) -> None:
        self.before: dict[object, list[tuple[str, bool]]] = collections.defaultdict(list)
        self.after: dict[object, list[tuple[str, bool]]] = collections.defaultdict(list)


def _uses(rewritten: RewrittenGraph) -> _Uses:
    """The uses of the variables that regions or new nodes use, before and after the edit."""
    uses = _Uses()
    graph, after = rewritten.graph.nodes, rewritten.after
    for nodes, found in ((graph, uses.before), (after, uses.after)):
        for name, node in nodes.items():
            for variable, changes in variables_used(nodes, node):
                found[variable].append((name, changes))
    inside = rewritten.standing_in
    for variable in list(uses.before):
        concerned = any(name in inside for name, _ in uses.before[variable])
        if not concerned or not any(changes for _, changes in uses.before[variable]):
            del uses.before[variable]
            uses.after.pop(variable, None)
    return uses


def _order_of_uses(
    rewritten: RewrittenGraph, stock: Order, now: Order, uses: _Uses, live: frozenset[str]
) -> Iterator[tuple[Part, str]]:
    """Parts after whose fusion two uses of a variable come in another order."""
    regions = rewritten.standing_in
    for variable, names in uses.before.items():
        using = dict(uses.after[variable])
        counterparts = {
            name: _counterparts(name, changes, regions, using, live) for name, changes in names
        }
        for (one, first), (other, second) in itertools.permutations(names, 2):
            if not (first or second) or not stock.is_before(one, other):
                continue
            if not (one in regions or other in regions):
                continue
            pairs = itertools.product(counterparts[one], counterparts[other])
            if all(a == b or now.is_before(a, b) for a, b in pairs):
                continue
            for region in (*regions.get(one, ()), *regions.get(other, ())):
                for part in region.parts:
                    yield (
                        part,
                        (
                            f"{one!r} uses a variable before {other!r} does, and an op in its "
                            "place would not"
                        ),
                    )


def _counterparts(
    name: str,
    changes: bool,
    regions: Mapping[str, tuple[Region, ...]],
    using: Mapping[str, bool],
    live: frozenset[str],
) -> frozenset[str]:
    """The nodes that use a variable after an edit where a node did so before.

    An update reads what a lookup read before only for its shape; what reads in an update's place is
    that update itself where nothing else does.
    """
    # A node that only waits for others now still uses the variable itself.
    within = [r for r in regions.get(name, ()) if r.node != name or name not in using]
    own = {new for region in within for new in region.new if new in using}
    found = {new for new in own if using[new] is changes} or own
    if name in using and (name in live or not within):
        found.add(name)
    return frozenset(found)
