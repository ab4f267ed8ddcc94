"""Gradients of stock lookups of sparse ids in a finished graph.

How TensorFlow builds one, from the gradient of the embeddings to the table:

    ─ [Reshape to rows] ─ [Select: zeros where the row was empty]
      ─ SparseSegment{Sum,Mean,SqrtN}GradV2(·, ids, rows, table rows) → gradients, rows of the table
        or, where ids were made unique, SparseSegment{Sum,Mean,SqrtN}Grad and two Reshapes

That of weighted ids is in weighted/gradients.py.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from workbench.core.fusion.lookups.find.shortened_rows import (
    ShortenedRows,
    is_gradient_of,
)
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.table_updates.any_update import update_of
from workbench.core.fusion.lookups.table_updates.update import (
    TableUpdate,
    only_reader,
    variable_of,
)
from workbench.core.fusion.lookups.weighted.gradients import (
    table_gradients,
)
from workbench.core.fusion.lookups.weighted.lookups import weighted_sum
from workbench.core.fusion.lookups.weighted.weight_gradients import (
    changes_later,
    weight_gradient_of,
)
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import RefusedError

_UNKNOWN = "its gradient is not the one that TensorFlow makes of a lookup"


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


# What leaves a row as it is whose gradient is 0; other ops move it, or decay its slots.
_PASSES_OVER_ZEROS = re.compile(r"(Resource)?SparseApply(Adagrad|AdagradV2|GradientDescent)$")
_UPDATES_ROWS = re.compile(r"(Resource)?SparseApply")


def with_gradients(
    graph: Definition, lookup: StockLookup
) -> tuple[StockLookup, list[LookupGradient]]:
    """A lookup with the gradient of its weights, if any, and the gradients of its table.

    Raises:
      RefusedError: there is one that a grouped op cannot make.
    """
    if lookup.weights:
        return _weighted(graph, lookup)
    combines = graph.nodes[lookup.combines]
    _, ids, rows = graph.inputs(combines)
    made = [
        node
        for node in graph.readers(rows)
        if node is not combines and node.op.startswith("SparseSegment")
    ]
    gradients = [_gradient(graph, lookup, node, ids, rows) for node in made]
    if gradients and lookup.max_norm is not None:
        # Rows are read once more, which is not to be behind a change of them.
        values = [each.values for each in gradients]
        if len(values) > 1 or not changes_later(graph, lookup, values):
            raise RefusedError("its rows are shortened to max_norm, and have several gradients")
    return lookup, gradients


def _weighted(graph: Definition, lookup: StockLookup) -> tuple[StockLookup, list[LookupGradient]]:
    """Those of a lookup with weights; TensorFlow's own would do the whole lookup again."""
    weighted = weighted_sum(graph, graph.nodes[lookup.combines])
    of_table = None if weighted is None else table_gradients(graph, weighted)
    if (of_table is None or of_table) and lookup.max_norm is not None:
        raise RefusedError(
            "its rows are shortened to max_norm, and their gradient stays TensorFlow's"
        )
    if weighted is None or of_table is None:
        raise RefusedError(_UNKNOWN)
    gradients = [_made_of(graph, lookup, gradient.summed, gradient.given) for gradient in of_table]
    of_weights = weight_gradient_of(
        graph,
        lookup,
        weighted,
        {g.values: t.given for g, t in zip(gradients, of_table, strict=True)},
    )
    if of_weights is not None:
        given = _of_result(graph, lookup, of_weights.given)
        if given is None:
            raise RefusedError(_UNKNOWN)
        of_weights = dataclasses.replace(of_weights, given=given)
    return dataclasses.replace(lookup, weight_gradient=of_weights), gradients


def _passes_over_zeros(graph: Definition, lookup: StockLookup) -> bool:
    """Whether an update of the table need not know that rows without ids had a gradient of 0."""
    if lookup.zero_id is None:
        return True
    ops = [node.op for node in graph.readers(variable_of(graph, lookup.table))]
    return all(_PASSES_OVER_ZEROS.match(op) for op in ops if _UPDATES_ROWS.match(op))


def _gradient(
    graph: Definition, lookup: StockLookup, node: Any, ids: str, rows: str
) -> LookupGradient:
    own = [graph.same(each) for each in (ids, rows)]
    if (
        node.op != f"{graph.nodes[lookup.combines].op}{'Grad' if lookup.unique else 'GradV2'}"
        or [graph.same(each) for each in graph.inputs(node)[1:3]] != own
        or node.name in graph.conditional
        or any(text.startswith("^") for text in node.input)
    ):
        raise RefusedError(_UNKNOWN)
    return _made_of(graph, lookup, node, graph.inputs(node)[0])


def _made_of(graph: Definition, lookup: StockLookup, node: Any, combined: str) -> LookupGradient:
    """The gradient that a node makes of that of combined rows."""
    given = _of_result(graph, lookup, combined)
    nodes = _gradient_nodes(graph, lookup, node)
    if given is None or nodes is None:
        raise RefusedError(_UNKNOWN)
    values, rows = nodes
    update, names = update_of(graph, lookup, values, rows, row_once=True)
    if lookup.max_norm is not None or not _passes_over_zeros(graph, lookup):
        # The gradient of shortened rows is only known once they were read again.
        update = None
    return LookupGradient(values=values, rows=rows, given=given, update=update, **names)


def _of_result(graph: Definition, lookup: StockLookup, combined: str) -> str | None:
    """The gradient of the embeddings behind that of combined rows."""
    given: str | None = combined
    if lookup.selects:
        given = _before_select(graph, lookup, combined)
    return _before_reshape(graph, lookup, given) if lookup.shapes and given is not None else given


def _gradient_nodes(graph: Definition, lookup: StockLookup, node: Any) -> tuple[str, str] | None:
    """The nodes that give the gradients of rows, and the rows."""
    if not lookup.unique:
        return node.name, node.name
    if lookup.max_norm is not None:
        return _nodes_through_norm(graph, lookup, node)
    values = only_reader(graph, f"{node.name}:0", "Reshape")
    if values is None or values.name in graph.conditional:
        return None
    scope = values.name.rpartition("/")[0]
    for rows in graph.readers(f"{lookup.unique}:0", "Reshape"):
        if rows.name.rpartition("/")[0] == scope:
            return values.name, rows.name
    return None


def _nodes_through_norm(
    graph: Definition, lookup: StockLookup, node: Any
) -> tuple[str, str] | None:
    """Those that `_gradient_nodes` gives, of rows that are shortened."""
    shortened = ShortenedRows(rows=f"{lookup.gather}:0", max_norm=lookup.max_norm or 0.0)
    for rows in graph.readers(f"{lookup.unique}:0", "Reshape"):
        scope = rows.name.rpartition("/")[0]
        for values in graph.nodes.values():
            if values.op != "Reshape" or values.name.rpartition("/")[0] != scope:
                continue
            gradient, given = graph.inputs(values)[0], f"{node.name}:0"
            if is_gradient_of(graph, shortened, gradient, given, lookup.dtype):
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
