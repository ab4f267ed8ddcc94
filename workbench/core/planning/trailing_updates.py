"""Trailing updates: those of distant tables that run with a later lookup's run, not in the step.

A step that ends on a parameter server asks it to run, and the server then asks for the gradients:
two requests after each other, which no lookup ahead of the step hides. Where lookups may be stale
anyway, the run that read a batch's rows waits for the gradients of that batch and applies them: its
requests are on their way long before the gradients are there, and the step stays on its worker.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView, Shape
from workbench.core.graph.tasks import task_of, tasks_of

# What an update needs on its task is copied with it, but for these, which it reads as they are.
_SHARED = op_types.VARIABLES | {"Const"}
# Read or describe a variable, and leave it as it is.
_READERS = op_types.LOOKUPS | op_types.READS_WHOLE | {"Shape", "VariableShape", "Size", "Rank"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrailingUpdates:
    """Updates that the run which put a batch does, once the step has returned the gradients of it.

    Attributes:
      updates: the nodes that write tables and their slots.
      moved: they and what they need on their task, each after those that it depends on.
      moved_ops: their op types.
      returned: the tensors that they need of the step, as "node:i".
      dtypes, shapes: of each of these, as in a PlannedStage.
      waits: nodes that they wait for besides.
      variables: what they write.
      tasks: where that is, such as "ps 0".
    """

    updates: tuple[str, ...]
    moved: tuple[str, ...]
    moved_ops: tuple[str, ...]
    returned: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: tuple[Shape, ...]
    waits: tuple[str, ...]
    variables: tuple[str, ...]
    tasks: tuple[str, ...]


def trailing_updates(boundary: Boundary, side: Side, moved: Bools) -> TrailingUpdates | None:
    """The updates of the tables that a stage of stale lookups reads on other tasks.

    A table's updates trail where (1) they depend on the batch, so that each step does them once;
    (2) they are on the table's task, with what they need there; (3) nothing reads what they give,
    nor the step the table behind them; (4) what they need besides can travel, and no branch leaves
    it out; (5) they read no other variable that a step writes.

    Args:
      boundary, side: what may run ahead.
      moved: what the stage moves.

    Returns:
      None where no table's do.
    """
    search = _Search(boundary, side, moved)
    found = [trail for table in search.far_tables() if (trail := search.updates_of(table))]
    return search.joined(found) if found else None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class _Trail:
    """Of one table.

    Attributes:
      updates, moved: as bools over the graph.
      written: variables.
    """

    updates: Bools
    moved: Bools
    written: frozenset[int]


class _Search:
    def __init__(self, boundary: Boundary, side: Side, moved: Bools) -> None:
        self._boundary, self._view = boundary, boundary.view
        self._moved = moved
        sides = [other.legal for other in boundary.sides if other is not side]
        self._moves_elsewhere = np.any([np.zeros(len(moved), bool), *sides], axis=0)
        self._tasks = tasks_of(self._view.devices)
        self._own = task_of(self._view.devices[side.start.nodes[0]])
        starts = self._view.mask(side.start.nodes)
        self._of_batch = self._view.reached(starts) & ~moved

    def far_tables(self) -> list[int]:
        """The variables on other tasks that stale lookups of the stage read."""
        view, reads = self._view, list(self._boundary.stale_reads)
        if not self._own or not reads:
            return []
        ends = view.data[reads]
        sources = view.mask(ends[self._moved[ends[:, 2]], 0])
        straight = _of(view, op_types.VARIABLES | op_types.READS_WHOLE)
        above = view.ancestors(sources, within=straight)
        # Two inputs that read one table would each do its updates.
        elsewhere = view.mask(ends[self._moves_elsewhere[ends[:, 2]], 0])
        above &= ~view.ancestors(elsewhere, within=straight)
        tables = np.flatnonzero(above & self._variables).tolist()
        return [table for table in tables if self._tasks[table] not in ("", self._own)]

    def updates_of(self, table: int) -> _Trail | None:
        """The updates of a table and what they need there; None unless all of them may trail."""
        updates = self._writers.get(table)
        if not updates:
            return None
        here = np.asarray(self._tasks == self._tasks[table], bool)
        chosen = self._view.mask(updates)
        moved = self._view.ancestors(chosen, within=here & ~self._shared)
        written = frozenset(
            variable for variable, nodes in self._writers.items() if set(updates) & set(nodes)
        )
        trail = _Trail(updates=chosen, moved=moved, written=written)
        return trail if self._may_trail(trail) else None

    def joined(self, trails: list[_Trail]) -> TrailingUpdates:
        """All of them together."""
        view = self._view
        moved = np.any([trail.moved for trail in trails], axis=0)
        updates = np.any([trail.updates for trail in trails], axis=0)
        order = view.ordered(moved)
        returned = dict.fromkeys(
            tensor for node in order for tensor in view.inputs(node) if self._travels(tensor, moved)
        )
        written = sorted(frozenset().union(*(trail.written for trail in trails)))
        return TrailingUpdates(
            updates=tuple(view.names[node] for node in order if updates[node]),
            moved=tuple(view.names[node] for node in order),
            moved_ops=tuple(view.ops[node] for node in order),
            returned=tuple(view.tensor(*tensor) for tensor in returned),
            dtypes=tuple(view.outputs[node][output] for node, output in returned),
            shapes=tuple(view.output_shapes(node)[output] for node, output in returned),
            waits=tuple(view.names[node] for node in self._waits(moved)),
            variables=tuple(view.names[node] for node in written),
            tasks=tuple(sorted({self._tasks[node] for node in written})),
        )

    def _may_trail(self, trail: _Trail) -> bool:
        view, updates, moved = self._view, trail.updates, trail.moved
        kinds = {view.ops[node] for node in np.flatnonzero(moved & ~updates)}
        pure = view.stateful_ops - op_types.READS_WHOLE - op_types.SAFE_STATEFUL
        others = [n for v in trail.written for n in self._writers[v] if not updates[n]]
        behind = view.reached(updates) & ~updates
        again = view.mask(n for v in trail.written for n in self._consumers(v)) & behind
        return (
            bool(self._of_batch[updates].all())
            and not kinds & (pure | op_types.SOURCES | op_types.CONTROL_FLOW)
            and not (moved & self._moved).any()
            and not others
            and not updates[view.data[:, 0]].any()
            and not again.any()
            and self._can_travel(moved)
            and not (self._read_by(moved) - trail.written) & self._writers.keys()
        )

    def _can_travel(self, moved: Bools) -> bool:
        view = self._view
        into = view.data[moved[view.data[:, 2]] & ~moved[view.data[:, 0]]]
        cut = [(int(n), int(output)) for n, output in into[:, :2] if not self._is_shared(n, moved)]
        return bool(cut) and not any(
            op_types.cannot_travel(view.outputs[node][output]) or self._left_out[node]
            for node, output in cut
        )

    def _travels(self, tensor: tuple[int, int], moved: Bools) -> bool:
        return not moved[tensor[0]] and not self._is_shared(tensor[0], moved)

    def _is_shared(self, node: int, moved: Bools) -> bool:
        """Whether the copies read it where it is: a variable or a constant of their task."""
        return bool(self._shared[node]) and self._tasks[node] in set(self._tasks[moved])

    def _waits(self, moved: Bools) -> list[int]:
        control = self._view.control
        before = control[moved[control[:, 1]] & ~moved[control[:, 0]], 0]
        return sorted({int(node) for node in before if not self._shared[node]})

    def _read_by(self, moved: Bools) -> set[int]:
        data = self._view.data
        return set(data[moved[data[:, 2]] & self._variables[data[:, 0]], 0].tolist())

    def _consumers(self, variable: int) -> list[int]:
        data = self._view.data
        found = data[(data[:, 0] == variable) & self._boundary.step[data[:, 2]], 2]
        return found.tolist()

    @functools.cached_property
    def _variables(self) -> Bools:
        return _of(self._view, op_types.VARIABLES)

    @functools.cached_property
    def _shared(self) -> Bools:
        return _of(self._view, _SHARED)

    @functools.cached_property
    def _writers(self) -> dict[int, list[int]]:
        """Of each variable that a step does not only read: the nodes that may write it."""
        readers = _of(self._view, _READERS)
        data, step = self._view.data, self._boundary.step
        chosen = self._variables[data[:, 0]] & step[data[:, 2]] & ~readers[data[:, 2]]
        writers: dict[int, list[int]] = {}
        for variable, _, node, _ in data[chosen].tolist():
            writers.setdefault(variable, []).append(node)
        return writers

    @functools.cached_property
    def _left_out(self) -> Bools:
        """What a v1 branch may leave out."""
        view = self._view
        merges = _of(view, frozenset({"Merge", "RefMerge"}))
        switches = _of(view, op_types.CONTROL_FLOW) & ~merges
        return view.reached(switches, within=~merges)


def _of(view: GraphView, ops: frozenset[str]) -> Bools:
    return view.mask(node for node, op in enumerate(view.ops) if op in ops)
