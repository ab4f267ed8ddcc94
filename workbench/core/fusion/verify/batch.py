"""Takes one batch, and random numbers, in a private session, and has both sides run on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.checks.rewritten import RewrittenGraph
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.verify.inputs import Inputs, first_line
from workbench.core.fusion.verify.outside import (
    FILLS_TABLE,
    ITERATORS,
    MAKES_ITERATOR,
    RANDOM,
    outside,
)
from workbench.core.fusion.verify.replaced import ReplacedNode
from workbench.core.fusion.verify.sides import Side

_NEEDS_NO_MAKING = ("OneShotIterator",)


def prepare(
    sides: Sequence[Side],
    rewritten: RewrittenGraph,
    replaced: Sequence[ReplacedNode],
    inputs: Inputs,
) -> None:
    """Fills tables, and adds a batch and random numbers to the feeds, and reasons to the refused.

    Args:
      sides: those that run; the first one takes the batch.
      rewritten: the graph.
      replaced: the nodes that will run.
      inputs: changed in place.
    """
    graph, names = rewritten.graph, [each.name for each in replaced]

    def needed() -> list[str]:
        found = needed_by(names, graph.nodes, inputs.feeds)
        return [
            *found,
            *(n for n in needed_by(names, rewritten.after, inputs.feeds) if n not in found),
        ]

    for name in needed():
        if name in graph.nodes and name not in inputs.handles and name not in inputs.refused:
            node = graph.nodes[name]
            is_batch = node.op in ITERATORS and name not in graph.conditional
            reason = _take(sides, graph, node, inputs) if is_batch else ""
            if reason:
                inputs.refused[name] = reason
    for name in needed():
        if name in graph.nodes and name not in inputs.handles and name not in inputs.refused:
            inputs.refused[name] = outside(graph, name)
    _fill_tables(sides, graph, set(needed()), inputs)
    _draw(sides[0], graph, needed(), inputs)


def _take(sides: Sequence[Side], graph: Definition, node: Any, inputs: Inputs) -> str:
    """Feeds the next batch of an iterator of its own; or says why not, a clause."""
    handle = graph.source(graph.same(graph.inputs(node)[0]))
    begin = []
    if handle.op not in _NEEDS_NO_MAKING:
        begin = [
            each.name
            for each in graph.nodes.values()
            if each.op == MAKES_ITERATOR
            and graph.source(graph.same(graph.inputs(each)[1])) is handle
        ][:1]
        if not begin:
            return f"no node makes the iterator {handle.name!r} of the batch; feed its tensors"
    reason = _refused(graph, [*begin, handle.name], inputs)
    if reason:
        return f"the batch of {node.name!r}: {reason}"
    try:
        # What waits for the batch takes one of its own on either side.
        for side in sides:
            side.run([], begin)
        inputs.feeds.update(sides[0].run(sides[0].outputs(node.name)))
    except tf.errors.OpError as error:
        return f"the batch of {node.name!r} cannot be taken: {first_line(error)}"
    return ""


def _fill_tables(
    sides: Sequence[Side], graph: Definition, needed: set[str], inputs: Inputs
) -> None:
    for node in list(graph.nodes.values()):
        if not FILLS_TABLE.match(node.op):
            continue
        handle = graph.source(graph.same(graph.inputs(node)[0])).name
        if handle not in needed or inputs.refused.get(handle):
            continue
        reason = _refused(graph, [node.name], inputs)
        try:
            for side in sides if not reason else ():
                side.run([], [node.name])
        except tf.errors.OpError as error:
            reason = first_line(error)
        if reason:
            inputs.refused[handle] = f"table {handle!r} cannot be filled: {reason}"


def _draw(side: Side, graph: Definition, needed: Iterable[str], inputs: Inputs) -> None:
    """Draws random numbers once, for both sides."""
    drawn = [
        name
        for name in needed
        if name in graph.nodes
        and RANDOM.match(graph.nodes[name].op)
        and name not in graph.conditional
        and not _refused(graph, [name], inputs)
    ]
    tensors = [tensor for name in drawn for tensor in side.outputs(name)]
    if tensors:
        # What cannot be drawn alone is drawn by either side, and varies.
        with contextlib.suppress(tf.errors.OpError):
            inputs.feeds.update(side.run(tensors))
        side.load()


def _refused(graph: Definition, names: Iterable[str], inputs: Inputs) -> str:
    """Why nodes cannot run, a clause; "" where they can."""
    for name in needed_by(names, graph.nodes, inputs.feeds):
        if name in inputs.handles:
            continue
        reason = inputs.refused.get(name) or outside(graph, name)
        if reason:
            return reason
    return ""
