"""Updates of tables by Keras 3's Adagrad and Adam in a finished graph.

How Keras builds them, from gradients of rows and the rows that they are of; a row may come often,
and the square of each of its gradients counts, not that of their sum. Adagrad:

    squares[rows] += gradients²
    table[rows] -= rate · gradients / √(squares + epsilon)[rows]

of which √ goes through the whole table; rows at which it is 0 or no number would be divided too.
Adam, which moves every row:

    m += (gradients summed by row - m) · share
    v += (gradients² summed by row - v) · share
    table -= rate · m / (√v + epsilon)
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.adam import moves_of
from workbench.core.fusion.lookups.table_updates.branches import branch_of
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
    waits_of,
)
from workbench.core.fusion.pattern.definition import Definition

# Rules by which the square of each gradient of a row counts.
OF_SQUARES = _ADAGRAD_OF_SQUARES, _ADAM_OF_SQUARES = "adagrad_of_squares", "keras_adam_of_squares"
_SUM = "UnsortedSegmentSum"
_IFS = ("StatelessIf", "If")


def keras_update_of(
    graph: Definition, lookup: StockLookup, values: str, rows: str, *, row_once: bool
) -> TableUpdate | None:
    """Keras's Adagrad's or Adam's update, where it alone reads a gradient.

    Args:
      graph: the graph.
      lookup: whose gradient it is.
      values, rows: its tensors.
      row_once: whether no row comes twice.
    """
    squares = graph.readers(values, "Square")
    if len(squares) != 1:
        return None
    (square,) = squares
    if only(graph, out(square), _SUM):
        return _adam_of(graph, lookup, values, rows, square, row_once)
    return _adagrad_of(graph, lookup, values, rows, square, row_once)


def values_of(graph: Definition, rows: str) -> list[str]:
    """The tensors that may be the gradients of these rows, which such an update reads."""
    found = []
    for node in graph.readers(rows, "ResourceScatterAdd", _SUM):
        taken = graph.inputs(node)[0 if node.op == _SUM else 2]
        square = graph.made_by(taken, "Square")
        if square is not None:
            found.append(graph.same(graph.inputs(square)[0]))
    return found


def _adagrad_of(
    graph: Definition, lookup: StockLookup, values: str, rows: str, square: Any, row_once: bool
) -> TableUpdate | None:
    add = only(graph, out(square), "ResourceScatterAdd")
    product = _reader(graph, values, "Mul")
    if add is None or product is None or graph.same(graph.inputs(add)[1]) != rows:
        return None
    slot, rate = graph.same(graph.inputs(add)[0]), other(graph, product, values)
    reads = [node for node in graph.waiting(add.name) if _reads_slot(graph, node, slot)]
    below = only(graph, out(reads[0]), "AddV2") if len(reads) == 1 else None
    root = only(graph, out(below), "Sqrt") if below else None
    quotient = only(graph, out(product), *_IFS) if root else None
    if below is None or root is None or quotient is None:
        return None
    epsilon = other(graph, below, out(reads[0]))
    checks = _checks(graph, root, quotient)
    apply = _scatter_of(graph, quotient)
    if checks is None or apply is None or not fits(graph, lookup, apply):
        return None
    if not _is_above_zero(graph, epsilon) or graph.shape(rate) != ():
        return None
    if not _divides(graph, quotient, out(product), out(root), rows):
        return None
    results = [node for i in range(3) for node in graph.readers(f"{quotient.name}:{i}")]
    if any(node.op != "Identity" and node is not apply for node in results):
        return None
    parts = (square, add, product, reads[0], below, root, *checks, quotient, *results, apply)
    nodes = {node.name: node for node in parts}
    if not alone(graph, nodes, apply, [values, rows]):
        return None
    return TableUpdate(
        node=apply.name,
        rule="adagrad" if row_once else _ADAGRAD_OF_SQUARES,
        table=graph.inputs(apply)[0],
        slots=(slot,),
        scalars=(rate, epsilon),
        is_resource=True,
        use_locking=False,
        device=apply.device,
        after=waits_outside(graph, (add, apply), nodes, (slot,)),
        others=(StandIn(node=add.name, variable=""),),
        reads=(reads[0].name,),
    )


def _checks(graph: Definition, root: Any, quotient: Any) -> tuple[Any, ...] | None:
    """The nodes that ask whether any row's root is 0 or no number, for the division's branches."""
    any_row = graph.made_by(graph.inputs(quotient)[0], "Any")
    by_row = graph.made_by(graph.inputs(any_row)[0], "Any") if any_row else None
    either = graph.made_by(graph.inputs(by_row)[0], "LogicalOr") if by_row else None
    if any_row is None or by_row is None or either is None:
        return None
    asked = {graph.source(graph.same(each)).op: each for each in graph.inputs(either)}
    if asked.keys() != {"Equal", "IsNan"}:
        return None
    zero, no_number = (graph.source(graph.same(asked[op])) for op in ("Equal", "IsNan"))
    if graph.same(graph.inputs(no_number)[0]) != out(root):
        return None
    compared = [graph.same(each) for each in graph.inputs(zero)]
    if out(root) not in compared or not graph.is_value(other(graph, zero, out(root)), 0):
        return None
    return any_row, by_row, either, zero, no_number


def _divides(graph: Definition, quotient: Any, above: str, below: str, rows: str) -> bool:
    """Whether the branch where no root is 0 gives above / below[rows], and the rows."""
    branch = branch_of(graph, quotient, "else_branch")
    if branch is None:
        return False
    result = branch.made_by(branch.result(0), "RealDiv")
    if result is None or branch.argument(branch.result(1), casts=True) != rows:
        return False
    first, second = branch.inputs(result)
    gather = branch.made_by(second, "GatherV2")
    if gather is None or branch.argument(first) != above:
        return False
    table, at, axis = branch.inputs(gather)
    return bool(
        branch.argument(table) == below
        and branch.argument(at) == rows
        and branch.is_zero(axis)
        and not ("batch_dims" in gather.attr and gather.attr["batch_dims"].i)
    )


def _scatter_of(graph: Definition, quotient: Any) -> Any | None:
    """The node that alone takes a quotient and its rows to the table."""
    apply = _reader(graph, f"{quotient.name}:0", "ResourceScatterSub")
    if apply is None or _reader(graph, f"{quotient.name}:1", "ResourceScatterSub") is not apply:
        return None
    given = [graph.same(each) for each in graph.inputs(apply)[1:]]
    return apply if given == [f"{quotient.name}:1", f"{quotient.name}:0"] else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Average:
    """A moment, a moving average; tensors are named "node:output".

    Attributes:
      slot: the variable's handle.
      add: the node that changes it.
      reads: those that read it, before and after.
      inner: those that compute what it changes by.
      share: its number.
      value: what it is in the end.
    """

    slot: str
    add: Any
    reads: tuple[Any, Any]
    inner: tuple[Any, ...]
    share: str
    value: str


def _adam_of(
    graph: Definition, lookup: StockLookup, values: str, rows: str, square: Any, row_once: bool
) -> TableUpdate | None:
    m = _average(graph, _reader(graph, values, _SUM), rows)
    v = _average(graph, only(graph, out(square), _SUM), rows)
    moves = moves_of(graph, m.value, v.value) if m and v else None
    if m is None or v is None or moves is None or not fits(graph, lookup, moves[-1]):
        return None
    step, root, below, _, apply = moves
    if apply.op != "AssignSubVariableOp":
        return None
    rate, epsilon = other(graph, step, m.value), other(graph, below, out(root))
    scalars = (rate, m.share, v.share, epsilon)
    if any(graph.shape(scalar) != () for scalar in scalars) or not _is_above_zero(graph, epsilon):
        return None
    parts = (square, *moves, m.add, *m.reads, *m.inner, v.add, *v.reads, *v.inner)
    nodes = {node.name: node for node in parts}
    if not alone(graph, nodes, apply, [values, rows]):
        return None
    slots = (m.slot, v.slot)
    return TableUpdate(
        node=apply.name,
        rule="keras_adam" if row_once else _ADAM_OF_SQUARES,
        table=graph.inputs(apply)[0],
        slots=slots,
        scalars=scalars,
        is_resource=True,
        use_locking=False,
        device=apply.device,
        after=waits_outside(graph, (m.add, v.add, apply), nodes, slots),
        others=tuple(StandIn(node=moment.add.name, variable="") for moment in (m, v)),
        reads=tuple(node.name for moment in (m, v) for node in moment.reads),
    )


def _average(graph: Definition, summed: Any | None, rows: str) -> _Average | None:
    """The moment that takes gradients in, which a node sums by row."""
    if summed is None or graph.same(graph.inputs(summed)[1]) != rows:
        return None
    away = only(graph, out(summed), "Sub")
    product = only(graph, out(away), "Mul") if away else None
    add = only(graph, out(product), "AssignAddVariableOp") if product else None
    part = scaled(graph, out(product)) if product else None
    if away is None or add is None or part is None or graph.same(part[1]) != out(away):
        return None
    taken, average = map(graph.same, graph.inputs(away))
    slot = graph.same(graph.inputs(add)[0])
    before = graph.made_by(average, READ)
    afters = [node for node in graph.waiting(add.name) if _reads_slot(graph, node, slot)]
    if taken != out(summed) or before is None or not is_of(graph, before, slot):
        return None
    if waits_of(before) or len(afters) != 1:
        return None
    return _Average(
        slot=slot,
        add=add,
        reads=(before, afters[0]),
        inner=(summed, away, product),
        share=part[2],
        value=out(afters[0]),
    )


def _reader(graph: Definition, tensor: str, op: str) -> Any | None:
    """The one node of a type that reads a tensor."""
    readers = graph.readers(tensor, op)
    return readers[0] if len(readers) == 1 else None


def _reads_slot(graph: Definition, node: Any, slot: str) -> bool:
    return bool(node.op == READ and is_of(graph, node, slot))


def _is_above_zero(graph: Definition, number: str) -> bool:
    found = graph.value(number)
    return found is not None and found.shape == () and bool(found > 0)
