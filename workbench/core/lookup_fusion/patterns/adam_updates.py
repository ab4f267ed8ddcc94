"""Adam's updates of tables in a finished graph, which move every row of a table.

How TensorFlow builds one, from gradients summed by row and the rows:

    m ← m · beta1, then m[rows] += gradients · (1 - beta1)
    v ← v · beta2, then v[rows] += gradients² · (1 - beta2)
    table -= rate · m / (√v + epsilon)

Each ← and += is an op of its own, and each goes through whole tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable
from typing import Any

from workbench.core.lookup_fusion.patterns.definition import Definition
from workbench.core.lookup_fusion.patterns.lookup import StockLookup
from workbench.core.lookup_fusion.patterns.updates import (
    StandIn,
    TableUpdate,
    fits,
    variable_of,
    waits_of,
)

_DECAYS = ("Assign", "AssignVariableOp")
_ADDS = ("ScatterAdd", "ResourceScatterAdd")
_MOVES = ("AssignSub", "AssignSubVariableOp")
_READ = "ReadVariableOp"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Moment:
    """A moment that decays and takes something in; tensors are named "node:output".

    Attributes:
      slot: the variable, or its handle.
      decay, add: the nodes that change it.
      reads: those that read it behind one of them, of a handle.
      products: those that compute what it decays to, and what it takes in.
      beta, share: its numbers.
      taken: what it takes in, times its share.
      value: what it is in the end.
    """

    slot: str
    decay: Any
    add: Any
    reads: tuple[Any, ...]
    products: tuple[Any, ...]
    beta: str
    share: str
    taken: str
    value: str


def adam_of(graph: Definition, lookup: StockLookup, summed: Any, unique: Any) -> TableUpdate | None:
    """Adam's update, where it alone reads a gradient."""
    gradients, rows = _out(summed), _out(unique)
    moments = [_moment(graph, add, rows) for add in graph.readers(rows, *_ADDS)]
    if len(moments) != 2:
        return None
    for m, v in (moments, moments[::-1]):
        if m is not None and v is not None and m.taken == gradients:
            return _update(graph, lookup, m, v, rows)
    return None


def _moment(graph: Definition, add: Any, rows: str) -> _Moment | None:
    """The moment of which a node is the last to change the slot."""
    slot, at, taken_in = graph.inputs(add)
    slot = graph.same(slot)
    taken = _scaled(graph, taken_in)
    befores = [graph.nodes[name] for name in waits_of(add)]
    decays = [node for node in befores if node.op in _DECAYS and _changes(graph, node, slot)]
    if graph.same(at) != rows or taken is None or len(decays) != 1:
        return None
    (decay,) = decays
    decayed = _scaled(graph, graph.inputs(decay)[1])
    if decayed is None or variable_of(graph, decayed[1]) != slot:
        return None
    behind = {node.name: node for by in (decay, add) for node in graph.waiting(by.name)}
    reads = [node for node in behind.values() if node.op == _READ and _changes(graph, node, slot)]
    last = [node for node in reads if add.name in waits_of(node)]
    if add.op == "ResourceScatterAdd" and len(last) != 1:
        return None
    return _Moment(
        slot=slot,
        decay=decay,
        add=add,
        reads=tuple(reads),
        products=(decayed[0], taken[0]),
        beta=decayed[2],
        share=taken[2],
        taken=graph.same(taken[1]),
        value=_out(last[0] if last else add),
    )


def _update(
    graph: Definition, lookup: StockLookup, m: _Moment, v: _Moment, rows: str
) -> TableUpdate | None:
    """The update that has these moments."""
    square = graph.made_by(v.taken, "Mul")
    moved = _moved(graph, m, v)
    if square is None or moved is None or not fits(graph, lookup, moved[-1]):
        return None
    if {graph.same(each) for each in graph.inputs(square)} != {m.taken}:
        return None
    step, root, below, _, apply = moved
    rate, epsilon = _other(graph, step, m.value), _other(graph, below, _out(root))
    scalars = (rate, m.beta, v.beta, epsilon, m.share, v.share)
    own = {node.name: node for node in (square, *moved)}
    changes = (m.decay, m.add, v.decay, v.add)
    for moment in (m, v):
        inner = (moment.decay, moment.add, *moment.reads, *moment.products)
        own |= {node.name: node for node in inner}
    if any(graph.shape(each) != () for each in scalars) or not _alone(
        graph, own, apply, [m.taken, rows]
    ):
        return None
    return TableUpdate(
        node=apply.name,
        rule="decaying_adam",
        table=graph.inputs(apply)[0],
        slots=(m.slot, v.slot),
        scalars=scalars,
        is_resource=apply.op == "AssignSubVariableOp",
        use_locking=any("use_locking" in n.attr and n.attr["use_locking"].b for n in changes),
        device=apply.device,
        after=_after(graph, (*changes, apply), own, (m.slot, v.slot)),
        others=tuple(
            StandIn(node=node.name, variable=moment.slot if node.op == "ScatterAdd" else "")
            for moment in (m, v)
            for node in (moment.decay, moment.add)
        ),
        reads=tuple(node.name for moment in (m, v) for node in moment.reads),
    )


def _after(
    graph: Definition, changes: Iterable[Any], own: Container[str], slots: Container[str]
) -> tuple[str, ...]:
    """What the nodes of an update wait for that is no part of it, nor reads a slot for it."""
    found = dict.fromkeys(name for node in changes for name in waits_of(node) if name not in own)
    return tuple(name for name in found if not _reads(graph, graph.nodes[name], slots))


def _moved(graph: Definition, m: _Moment, v: _Moment) -> tuple[Any, ...] | None:
    """The nodes that move the table: rate · m, √v, that + epsilon, the quotient, the last one."""
    step = _only(graph, m.value, "Mul")
    root = _only(graph, v.value, "Sqrt")
    below = _only(graph, _out(root), "AddV2", "Add") if root else None
    quotient = _only(graph, _out(below), "RealDiv") if below else None
    apply = _only(graph, _out(quotient), *_MOVES) if quotient else None
    if step is None or below is None or quotient is None or apply is None:
        return None
    parts = [graph.same(each) for each in graph.inputs(quotient)]
    return (step, root, below, quotient, apply) if parts == [_out(step), _out(below)] else None


def _alone(graph: Definition, own: dict[str, Any], apply: Any, taken: Iterable[str]) -> bool:
    """Whether what the update computes and takes is only read by itself.

    What waits for some of its nodes waits for the last one too, and so is behind all of them.
    """
    for node in own.values():
        if node is apply:
            continue
        readers = [each for each in graph.readers(_out(node)) if each.name not in own]
        waiting = [each for each in graph.waiting(node.name) if each.name not in own]
        if readers or not all(_is_behind(graph, each, apply) for each in waiting):
            return False
    outside = {each.op for t in taken for each in graph.readers(t) if each.name not in own}
    return outside <= {"Shape"}


def _is_behind(graph: Definition, node: Any, apply: Any) -> bool:
    """Whether a node, or else all that it lets go on, waits for the last node of an update."""
    if _waits_for(graph, node, apply):
        return True
    after = graph.waiting(node.name)
    return node.op == "NoOp" and all(_is_behind(graph, each, apply) for each in after)


def _waits_for(graph: Definition, node: Any, apply: Any) -> bool:
    """Whether a node waits for another one, directly or with what groups such."""
    before = waits_of(node)
    groups = (graph.nodes[name] for name in before if graph.nodes[name].op == "NoOp")
    return apply.name in before or any(_waits_for(graph, each, apply) for each in groups)


def _scaled(graph: Definition, tensor: str) -> tuple[Any, str, str] | None:
    """Of a tensor that is another one times a number: the node, the other one, the number."""
    node = graph.made_by(tensor, "Mul")
    for values, number in (graph.inputs(node), graph.inputs(node)[::-1]) if node else ():
        if graph.shape(number) == () and graph.shape(values) != ():
            return node, values, number
    return None


def _changes(graph: Definition, node: Any, variable: str) -> bool:
    """Whether the first input of a node is that variable."""
    return graph.same(graph.inputs(node)[0]) == variable


def _reads(graph: Definition, node: Any, variables: Container[str]) -> bool:
    return node.op == _READ and graph.same(graph.inputs(node)[0]) in variables


def _only(graph: Definition, tensor: str, *ops: str) -> Any | None:
    """The one node that reads a tensor, where it is of one of these types."""
    readers = graph.readers(tensor)
    return readers[0] if len(readers) == 1 and readers[0].op in ops else None


def _other(graph: Definition, node: Any, one: str) -> str:
    """The input of a node of two that is not this one."""
    first, second = graph.inputs(node)
    return first if graph.same(second) == graph.same(one) else second


def _out(node: Any) -> str:
    return f"{node.name}:0"
