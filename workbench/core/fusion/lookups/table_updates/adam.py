"""Adam's updates of tables in a finished graph, which move every row of a table.

How TensorFlow builds one, from gradients summed by row and the rows:

    m ← m · beta1, then m[rows] += gradients · (1 - beta1)
    v ← v · beta2, then v[rows] += gradients² · (1 - beta2)
    table -= rate · m / (√v + epsilon)

Each ← and += is an op of its own, and each goes through whole tables.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.parts import (
    READ,
    alone,
    is_of,
    only,
    other,
    out,
    scaled,
    waits_outside,
)
from workbench.core.fusion.lookups.table_updates.update import (
    StandIn,
    TableUpdate,
    fits,
    variable_of,
    waits_of,
)
from workbench.core.fusion.pattern.definition import Definition

_DECAYS = ("Assign", "AssignVariableOp")
_ADDS = ("ScatterAdd", "ResourceScatterAdd")
_MOVES = ("AssignSub", "AssignSubVariableOp")


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
    gradients, rows = out(summed), out(unique)
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
    taken = scaled(graph, taken_in)
    befores = [graph.nodes[name] for name in waits_of(add)]
    decays = [node for node in befores if node.op in _DECAYS and is_of(graph, node, slot)]
    if graph.same(at) != rows or taken is None or len(decays) != 1:
        return None
    (decay,) = decays
    decayed = scaled(graph, graph.inputs(decay)[1])
    if decayed is None or variable_of(graph, decayed[1]) != slot:
        return None
    behind = {node.name: node for by in (decay, add) for node in graph.waiting(by.name)}
    reads = [node for node in behind.values() if node.op == READ and is_of(graph, node, slot)]
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
        value=out(last[0] if last else add),
    )


def _update(
    graph: Definition, lookup: StockLookup, m: _Moment, v: _Moment, rows: str
) -> TableUpdate | None:
    """The update that has these moments."""
    square = graph.made_by(v.taken, "Mul")
    moved = moves_of(graph, m.value, v.value)
    if square is None or moved is None or not fits(graph, lookup, moved[-1]):
        return None
    if {graph.same(tensor) for tensor in graph.inputs(square)} != {m.taken}:
        return None
    step, root, below, _, apply = moved
    rate, epsilon = other(graph, step, m.value), other(graph, below, out(root))
    scalars = (rate, m.beta, v.beta, epsilon, m.share, v.share)
    nodes = {node.name: node for node in (square, *moved)}
    changes = (m.decay, m.add, v.decay, v.add)
    for moment in (m, v):
        inner = (moment.decay, moment.add, *moment.reads, *moment.products)
        nodes |= {node.name: node for node in inner}
    if any(graph.shape(tensor) != () for tensor in scalars) or not alone(
        graph, nodes, apply, [m.taken, rows]
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
        after=waits_outside(graph, (*changes, apply), nodes, (m.slot, v.slot)),
        others=tuple(
            StandIn(node=node.name, variable=moment.slot if node.op == "ScatterAdd" else "")
            for moment in (m, v)
            for node in (moment.decay, moment.add)
        ),
        reads=tuple(node.name for moment in (m, v) for node in moment.reads),
    )


def moves_of(graph: Definition, m: str, v: str) -> tuple[Any, ...] | None:
    """The nodes that move the table: rate · m, √v, that + epsilon, the quotient, the last one."""
    step = only(graph, m, "Mul")
    root = only(graph, v, "Sqrt")
    below = only(graph, out(root), "AddV2", "Add") if root else None
    quotient = only(graph, out(below), "RealDiv") if below else None
    apply = only(graph, out(quotient), *_MOVES) if quotient else None
    if step is None or below is None or quotient is None or apply is None:
        return None
    parts = [graph.same(each) for each in graph.inputs(quotient)]
    return (step, root, below, quotient, apply) if parts == [out(step), out(below)] else None
