"""Virtual speed-ups: the nodes of a kind of work, or of some names, made faster or left out."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
from collections.abc import Iterator

import numpy as np

from workbench.core.analysis.embedding_lens.lookup_times import lookup_part
from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.graph.op_families import FAMILY_NAMES, IDS, INPUT, families_of
from workbench.core.prediction.costs.node_costs import CALL_NS, Costs
from workbench.errors import OptionError

# Kinds of work: delivering and decoding the input; making ids of it; embedding lookups with their
# gradients and updates; everything else.
INPUT_WORK, IDS_WORK, LOOKUP_WORK, DENSE_WORK = "input", "ids", "lookups", "dense"
KINDS = (INPUT_WORK, IDS_WORK, LOOKUP_WORK, DENSE_WORK)
# What the client does beside a step: hooks, and Python. It is no node of the graph.
CLIENT_WORK = "client"
# What the kernel does to hand out new pages to ops; nor is this.
PAGES_WORK = "new pages"
# More of the ops' time is never that of new pages.
_MOST_OF_PAGES = 0.9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faster:
    """Some work, made faster.

    Attributes:
      work: one of KINDS, CLIENT_WORK, PAGES_WORK, a family of ops such as "Dense matmul", or names
        of nodes with `*` for any text, such as "dlrm/top/*".
      times: how many times as fast; infinity leaves it out.
    """

    work: str
    times: float = math.inf

    def __post_init__(self) -> None:
        if not self.times > 0:
            raise OptionError(f"{self.work!r} is {self.times!r} times as fast; expected above 0")

    @property
    def label(self) -> str:
        """A short name, as tables show it."""
        return (
            f"no {self.work}" if math.isinf(self.times) else f"{self.work} {self.times:g}× as fast"
        )


def with_more_work(changes: tuple[Faster, ...]) -> Iterator[tuple[Faster, ...]]:
    """The changes, then those that leave a step at least as much work: without savings."""
    saving = [change for change in changes if change.times >= 1]
    for count in range(len(saving) + 1):
        for without in itertools.combinations(saving, count):
            yield tuple(change for change in changes if change not in without)


def faster_costs(costs: Costs, view: GraphView, changes: tuple[Faster, ...]) -> Costs:
    """What the nodes cost once some work is faster.

    Raises:
      OptionError: no node is of such work.
    """
    for change in changes:
        left = 1 / change.times
        if change.work == CLIENT_WORK:
            costs = _client_faster(costs, left)
        elif change.work == PAGES_WORK:
            costs = _pages_faster(costs, left)
        else:
            costs = _faster(costs, selected(view, change.work), left)
    return costs


def selected(view: GraphView, work: str) -> Bools:
    """The nodes of some work; of a kind of work there may be none.

    Args:
      view: the graph.
      work: as in `Faster`.

    Raises:
      OptionError: it is no kind of work, and the graph has none of it.
    """
    if work in KINDS:
        chosen: Bools = kinds_of_work(view) == KINDS.index(work)
        return chosen
    if work in FAMILY_NAMES:
        chosen = families_of(view.ops, view.names) == FAMILY_NAMES.index(work)
    else:
        chosen = view.mask(
            node for node, name in enumerate(view.names) if fnmatch.fnmatchcase(name, work)
        )
    if not chosen.any():
        kinds = ", ".join(map(repr, [*KINDS, CLIENT_WORK, PAGES_WORK, *FAMILY_NAMES]))
        raise OptionError(
            f"no node of the graph is {work!r}; expected one of {kinds}, or names of nodes with "
            "'*' for any text"
        )
    return chosen


def kinds_of_work(view: GraphView) -> np.ndarray:
    """The kind of work of each node, its place in KINDS, int64 [nodes]."""
    families = families_of(view.ops, view.names)
    kinds = np.full(len(view), KINDS.index(DENSE_WORK), np.int64)
    kinds[families == INPUT] = KINDS.index(INPUT_WORK)
    kinds[families == IDS] = KINDS.index(IDS_WORK)
    tables = find_tables(view)
    scopes = {scope: number for number, table in enumerate(tables) for scope in table.lookups}
    updates = tuple(f"update_{table.name}/" for table in tables)
    for node, name in enumerate(view.names):
        if lookup_part(name, scopes) or any(update in f"{name}/" for update in updates):
            kinds[node] = KINDS.index(LOOKUP_WORK)
    return kinds


def _client_faster(costs: Costs, left: float) -> Costs:
    """What a step costs whose client takes less time; that of a call stays."""
    call_ns = min(costs.client_ns, CALL_NS)
    return dataclasses.replace(costs, client_ns=max(call_ns, costs.client_ns * left))


def _pages_faster(costs: Costs, left: float) -> Costs:
    """What a step costs whose ops get fewer new pages, each its share of them."""
    # A page is cleared by whichever core asks for it: it is a share of the CPU time of ops.
    total_ns = float((costs.span_ns * costs.node_cores).sum())
    share = min(_MOST_OF_PAGES, costs.faults_ns / total_ns) if total_ns else 0.0
    kept = 1 - share * (1 - left)
    return dataclasses.replace(
        costs, span_ns=costs.span_ns * kept, faults_ns=costs.faults_ns * left
    )


def _faster(costs: Costs, chosen: Bools, left: float) -> Costs:
    span_ns = np.where(chosen, costs.span_ns * left, costs.span_ns)
    inputs = {
        node: each.scaled(left) if chosen[node] else each for node, each in costs.inputs.items()
    }
    added = tuple(each.longer(left) if chosen[each.reader] else each for each in costs.added)
    return dataclasses.replace(costs, span_ns=span_ns, inputs=inputs, added=added)
