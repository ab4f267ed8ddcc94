"""Gradients of stock lookups in a finished graph, and the updates that read them.

How TensorFlow builds one, from the gradient of the embeddings to the table:

    ─ [Reshape to rows] ─ [Select: zeros where the row was empty]
      ─ SparseSegment{Sum,Mean,SqrtN}GradV2(·, ids, rows, table rows) → gradients, rows of the table
        or, where ids were made unique, SparseSegment{Sum,Mean,SqrtN}Grad and two Reshapes
      ─ Unique and UnsortedSegmentSum: each row once ─ SparseApplyAdagrad and its like
        or times the learning rate ─ ScatterSub, of a resource variable ResourceScatterAdd
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.lookup_fusion.definition import Definition
from workbench.core.lookup_fusion.stock_lookups import COMBINERS, StockLookup

_GRADIENTS = tuple(f"{op}GradV2" for op in COMBINERS)
_OF_UNIQUE = tuple(f"{op}Grad" for op in COMBINERS)
_ADAGRAD = ("SparseApplyAdagrad", "ResourceSparseApplyAdagrad")
_FLOAT = 1  # TensorFlow's number of float32


@dataclasses.dataclass(frozen=True, kw_only=True)
class LookupGradient:
    """The gradient of a lookup that a grouped op can make.

    Attributes:
      values: the node that makes the gradients of rows.
      rows: the node that says which rows of the table they are of, in output 1 where it is the
        same one.
      given: the tensor of the gradient of the embeddings.
      summed, unique: nodes that alone read both, and sum the gradients of a row; "" where none do.
        Of a grouped op each row has one gradient.
      update: the op that applies it to the table, where a grouped op can do that too.
    """

    values: str
    rows: str
    given: str
    summed: str = ""
    unique: str = ""
    update: TableUpdate | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableUpdate:
    """An op that applies gradients of rows to a table.

    Attributes:
      node: its name.
      rule: attribute of op WorkbenchGroupedApply.
      table, slots: tensors of the variables, or of their handles.
      scalars: tensors of the rule's numbers; a number where the op has it in itself.
      is_resource: whether the variables are handles.
      use_locking: as of the op.
      device: of the op.
    """

    node: str
    rule: str
    table: str
    slots: tuple[str, ...]
    scalars: tuple[str | float, ...]
    is_resource: bool
    use_locking: bool
    device: str


def gradients_of(graph: Definition, lookup: StockLookup) -> list[LookupGradient] | None:
    """The gradients of a lookup; None where there is one that a grouped op cannot make."""
    combines = graph.nodes[lookup.combines]
    _, ids, rows = graph.inputs(combines)
    found = []
    for node in graph.readers(rows):
        if node is combines or not node.op.startswith("SparseSegment"):
            continue
        gradient = _gradient(graph, lookup, node, ids, rows)
        if gradient is None:
            return None
        found.append(gradient)
    return found


def _gradient(
    graph: Definition, lookup: StockLookup, node: Any, ids: str, rows: str
) -> LookupGradient | None:
    own = [graph.same(each) for each in (ids, rows)]
    if (
        node.op not in (_OF_UNIQUE if lookup.unique else _GRADIENTS)
        or [graph.same(each) for each in graph.inputs(node)[1:3]] != own
        or node.name in graph.conditional
        or any(text.startswith("^") for text in node.input)
    ):
        return None
    given: str | None = graph.inputs(node)[0]
    if lookup.selects and given is not None:
        given = _before_select(graph, lookup, given)
    if lookup.shapes and given is not None:
        given = _before_reshape(graph, lookup, given)
    made = _made(graph, lookup, node)
    if given is None or made is None:
        return None
    values, rows = made
    sums = _sums(graph, values, rows)
    if sums is None:
        update = _descent(graph, lookup, values, rows)
        return LookupGradient(values=values, rows=rows, given=given, update=update)
    summed, unique = sums
    return LookupGradient(
        values=values,
        rows=rows,
        given=given,
        summed=summed.name,
        unique=unique.name,
        update=_adagrad(graph, lookup, summed, unique),
    )


def _made(graph: Definition, lookup: StockLookup, node: Any) -> tuple[str, str] | None:
    """The nodes that give the gradients of rows, and the rows."""
    if not lookup.unique:
        return node.name, node.name
    values = _only(graph, f"{node.name}:0", "Reshape")
    if values is None or values.name in graph.conditional:
        return None
    scope = values.name.rpartition("/")[0]
    for rows in graph.readers(f"{lookup.unique}:0", "Reshape"):
        if rows.name.rpartition("/")[0] == scope:
            return values.name, rows.name
    return None


def _before_select(graph: Definition, lookup: StockLookup, given: str) -> str | None:
    """The gradient of what the forward Select gives."""
    node = graph.made_by(given, "Select", "SelectV2")
    if node is None:
        return None
    empty, zeros, gradient = graph.inputs(node)
    same = graph.same(empty) == graph.same(graph.inputs(graph.nodes[lookup.selects])[0])
    return gradient if same and graph.is_zeros(zeros) else None


def _before_reshape(graph: Definition, lookup: StockLookup, given: str) -> str | None:
    """The gradient of what the forward Reshape gives."""
    node = graph.made_by(given, "Reshape")
    if node is None:
        return None
    gradient, shape = graph.inputs(node)
    reshaped = graph.inputs(graph.nodes[lookup.shapes])[0]
    taken = graph.made_by(shape, "Shape")
    if taken is not None and graph.same(graph.inputs(taken)[0]) == graph.same(reshaped):
        return gradient
    known = graph.value(shape)
    return gradient if known is not None and tuple(known) == graph.shape(reshaped) else None


def _sums(graph: Definition, values: str, rows: str) -> tuple[Any, Any] | None:
    """The nodes that alone read a gradient and its rows, to sum what each row has."""
    summed = _only(graph, f"{values}:0", "UnsortedSegmentSum")
    unique = _only(graph, f"{rows}:{int(rows == values)}", "Unique")
    if summed is None or unique is None or {summed.name, unique.name} & graph.conditional:
        return None
    if _only(graph, f"{unique.name}:1", "UnsortedSegmentSum") is not summed:
        return None
    return summed, unique


def _adagrad(
    graph: Definition, lookup: StockLookup, summed: Any, unique: Any
) -> TableUpdate | None:
    """Adagrad's update, where it alone reads a gradient."""
    apply = _only(graph, f"{summed.name}:0", *_ADAGRAD)
    if apply is None or not _fits(graph, lookup, apply):
        return None
    table, slot, rate, gradients, rows = graph.inputs(apply)
    own = [graph.same(each) for each in (gradients, rows)]
    if own != [f"{summed.name}:0", f"{unique.name}:0"]:
        return None
    if "update_slots" in apply.attr and not apply.attr["update_slots"].b:
        return None
    return _table_update(apply, "adagrad", (table, slot), (rate, 0.0))


def _descent(graph: Definition, lookup: StockLookup, values: str, rows: str) -> TableUpdate | None:
    """Gradient descent's update, where it alone reads a gradient."""
    given = f"{rows}:{int(rows == values)}"
    negated = _only(graph, f"{values}:0", "Neg")
    scaled = _only(graph, f"{(negated.name if negated else values)}:0", "Mul")
    op = "ScatterSub" if negated is None else "ResourceScatterAdd"
    apply = _only(graph, f"{scaled.name}:0", op) if scaled else None
    if scaled is None or apply is None or _only(graph, given, op) is not apply:
        return None
    table, updated, changes = graph.inputs(apply)
    own = [graph.same(each) for each in (updated, changes)]
    if own != [graph.same(given), f"{scaled.name}:0"] or not _fits(graph, lookup, apply):
        return None
    gradient = f"{(negated.name if negated else values)}:0"
    rates = [each for each in graph.inputs(scaled) if graph.same(each) != graph.same(gradient)]
    if len(rates) != 1 or graph.shape(rates[0]) != ():
        return None
    return _table_update(apply, "gradient_descent", (table,), (rates[0],))


def _fits(graph: Definition, lookup: StockLookup, apply: Any) -> bool:
    """Whether an update is one of the lookup's table, in float32, and nothing reads its result."""
    kind = apply.attr["T" if "T" in apply.attr else "dtype"].type
    return bool(
        apply.name not in graph.conditional
        and kind == lookup.dtype == _FLOAT
        and _is_table(graph, lookup.table, graph.inputs(apply)[0])
        and not graph.readers(f"{apply.name}:0")
    )


def _table_update(
    apply: Any, rule: str, variables: tuple[str, ...], scalars: tuple[str | float, ...]
) -> TableUpdate:
    return TableUpdate(
        node=apply.name,
        rule=rule,
        table=variables[0],
        slots=variables[1:],
        scalars=scalars,
        is_resource=apply.op.startswith("Resource"),
        use_locking="use_locking" in apply.attr and apply.attr["use_locking"].b,
        device=apply.device,
    )


def _only(graph: Definition, tensor: str, *ops: str) -> Any | None:
    """The one node that reads a tensor, where it is of one of these types."""
    readers = [node for node in graph.readers(tensor) if node.op not in ("Identity", "Shape")]
    return readers[0] if len(readers) == 1 and readers[0].op in ops else None


def _is_table(graph: Definition, read: str, variable: str) -> bool:
    """Whether what a lookup reads is that variable, of which it may be a handle."""
    node = graph.made_by(read, "ReadVariableOp")
    read = graph.inputs(node)[0] if node is not None else read
    return graph.same(read) == graph.same(variable)
