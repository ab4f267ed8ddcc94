"""Start nodes: where staging begins, named by the user or found in the graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.errors import NoInputError, PlanError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """The nodes that deliver one batch.

    Attributes:
      nodes: their numbers: one, or the arguments of a function that make up a batch.
      puts: where the batch is the user's own stage: the nodes that put into it.
    """

    nodes: tuple[int, ...]
    puts: tuple[int, ...] = ()

    @property
    def is_stage(self) -> bool:
        """Whether the batch comes out of the user's own stage."""
        return bool(self.puts)


def find_starts(
    view: GraphView, *, step: Bools, bounded: bool, named: Sequence[str] = ()
) -> tuple[Start, ...]:
    """Where staging begins.

    Args:
      view: the graph.
      step: the nodes that a step may run.
      bounded: whether the user said what a step runs.
      named: names that the user gave; the arguments of a function together are one start.

    Raises:
      NoInputError: no input and no stage.
      PlanError: several inputs, an input that the step does not read, or
        two takes from one stage.
    """
    puts = _puts_by_stage(view)
    if named:
        return _named_starts(view, step, named, puts)
    takes = [n for n in _of_type(view, {op_types.STAGE_TAKE}) if step[n]]
    staged = [_stage_start(view, take, puts) for take in takes if view.shared_names[take] in puts]
    if staged:
        _require_one_take_each(view, staged)
        return tuple(staged)
    inputs = [n for n in _of_type(view, op_types.INPUTS) if step[n]]
    if not bounded:
        inputs = _read_by_a_step(view, inputs)
    inputs = _first(view, inputs)
    if not inputs:
        raise NoInputError(
            "no stage and no input was found: the step reads no tf.data iterator, queue or reader; "
            "mark what to run ahead with tf.staged, or name where to start"
        )
    if len(inputs) > 1:
        names = ", ".join(f"{view.names[node]!r} ({view.ops[node]})" for node in inputs)
        raise PlanError(
            f"the step has {len(inputs)} inputs, and which one to stage is not clear: {names}; "
            "name one or several of them as starts"
        )
    return (Start(nodes=(inputs[0],)),)


def _named_starts(
    view: GraphView, step: Bools, named: Sequence[str], puts: dict[str, tuple[int, ...]]
) -> tuple[Start, ...]:
    nodes = list(dict.fromkeys(view.number(name) for name in named))
    for node in nodes:
        if not step[node]:
            raise PlanError(
                f"{view.names[node]!r} was named as a start, but no target depends on it"
            )
    arguments = [node for node in nodes if view.ops[node] in op_types.PLACEHOLDERS]
    starts = [Start(nodes=tuple(arguments))] if arguments else []
    for node in nodes:
        if node in arguments:
            continue
        if view.ops[node] == op_types.STAGE_TAKE and view.shared_names[node] in puts:
            starts.append(_stage_start(view, node, puts))
        else:
            starts.append(Start(nodes=(node,)))
    _require_one_take_each(view, starts)
    return tuple(starts)


def _puts_by_stage(view: GraphView) -> dict[str, tuple[int, ...]]:
    puts: dict[str, tuple[int, ...]] = {}
    for node in _of_type(view, {op_types.STAGE_PUT}):
        name = view.shared_names[node]
        puts[name] = (*puts.get(name, ()), node)
    return puts


def _stage_start(view: GraphView, take: int, puts: dict[str, tuple[int, ...]]) -> Start:
    return Start(nodes=(take,), puts=puts[view.shared_names[take]])


def _require_one_take_each(view: GraphView, starts: Sequence[Start]) -> None:
    seen: dict[str, int] = {}
    for start in starts:
        if not start.is_stage:
            continue
        name, take = view.shared_names[start.nodes[0]], start.nodes[0]
        if name in seen:
            raise PlanError(
                f"the stage {name!r} is taken from in two places, {view.names[seen[name]]!r} and "
                f"{view.names[take]!r}; expected one take, from which every step gets its batch"
            )
        seen[name] = take


def _of_type(view: GraphView, types: set[str] | frozenset[str]) -> list[int]:
    return [node for node, op in enumerate(view.ops) if op in types]


def _read_by_a_step(view: GraphView, sources: list[int]) -> list[int]:
    """Without the sources that only fill a queue, as queue runners do."""
    if len(sources) < 2:
        return sources
    leads_on = np.ones(len(view), bool)
    leads_on[_of_type(view, op_types.FEEDS_A_QUEUE)] = False
    # What no one consumes and what fills no queue is what somebody may run as a step.
    ends = leads_on & (np.diff(view.consumers.begin) == 0)
    step = view.ancestors(ends)
    return [node for node in sources if step[node]]


def _first(view: GraphView, inputs: list[int]) -> list[int]:
    """Without those that wait for another one: no step begins with the token that a synchronous
    optimizer takes once its gradients are on their way."""
    if len(inputs) < 2:
        return inputs
    first = []
    for node in inputs:
        only = np.zeros(len(view), bool)
        only[node] = True
        before = view.ancestors(only)
        if not any(before[other] for other in inputs if other != node):
            first.append(node)
    return first or inputs
