"""Updates of tables in a finished graph, which read the gradients of lookups.

How TensorFlow builds one, from gradients of rows and the rows that they are of:

    ─ Unique and UnsortedSegmentSum: each row once ─ SparseApplyAdagrad or SparseApplyFtrl
      or, of `workbench.ops.fused_update`, WorkbenchRowsApply
      or times the learning rate ─ ScatterSub, of a resource variable ResourceScatterAdd, or
      ResourceScatterSub, as Keras has it
"""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.op_types import FLOAT32

# What subtracts a gradient times the learning rate.
SCATTERS = ("ScatterSub", "ResourceScatterSub", "ResourceScatterAdd")
# What gives a variable its first value, among others.
_SETS = ("Assign", "AssignVariableOp")
_NATIVE = ("WorkbenchRowsApply", "WorkbenchResourceRowsApply")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rule:
    """What an op of TensorFlow's that updates rows is as a rule of WorkbenchGroupedApply.

    Attributes:
      name: the rule.
      inputs: names of the op's inputs, in their order.
      slots, scalars: of them, those that the rule has; a number that the op lacks is 0.
      attributes: what attributes of the op must be, where it has them.
    """

    name: str
    inputs: tuple[str, ...]
    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    attributes: tuple[tuple[str, bool], ...]


def _rules() -> dict[str, _Rule]:
    adagrad = _Rule(
        name="adagrad",
        inputs=("table", "squares", "rate", "gradients", "rows"),
        slots=("squares",),
        scalars=("rate", "epsilon"),
        attributes=(("update_slots", True),),
    )
    of_ftrl = ("table", "squares", "linear", "gradients", "rows", "rate", "l1", "l2")
    ftrl = _Rule(
        name="ftrl",
        inputs=(*of_ftrl, "power"),
        slots=("squares", "linear"),
        scalars=("rate", "l1", "l2", "shrinkage", "power"),
        attributes=(("multiply_linear_by_lr", False),),
    )
    shrinking = dataclasses.replace(ftrl, inputs=(*of_ftrl, "shrinkage", "power"))
    rules = {"Adagrad": adagrad, "Ftrl": ftrl, "FtrlV2": shrinking}
    return {
        f"{kind}SparseApply{op}": rule for kind in ("", "Resource") for op, rule in rules.items()
    }


_RULES = _rules()


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandIn:
    """A node of an update that no longer changes anything.

    Attributes:
      node: its name.
      variable: the ref variable that it hands on still; "" where it hands on nothing.
    """

    node: str
    variable: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableUpdate:
    """What applies gradients of rows to a table.

    Attributes:
      node: name of the op that changes the table.
      rule: attribute of op WorkbenchGroupedApply, or of WorkbenchGroupedApplyAll.
      table, slots: tensors of the variables, or of their handles.
      scalars: tensors of the rule's numbers; a number where the op has it in itself.
      is_resource: whether the variables are handles.
      use_locking: as of the op.
      device: of the op.
      after: names of nodes that run before it by a control edge.
      others: what else it changes things with, all of it before the op itself.
      reads: names of nodes that read slots for it in between.
      shared_by: where lookups share the table, the tensors of their gradients, that it has all of.
    """

    node: str
    rule: str
    table: str
    slots: tuple[str, ...]
    scalars: tuple[str | float, ...]
    is_resource: bool
    use_locking: bool
    device: str
    after: tuple[str, ...]
    others: tuple[StandIn, ...] = ()
    reads: tuple[str, ...] = ()
    shared_by: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """The tensor that the op hands on, a ref variable; "" of one that has no result."""
        return "" if self.is_resource else self.table


def concatenated(graph: Definition, values: str, rows: str) -> tuple[Any, Any] | None:
    """The nodes that alone read a gradient and its rows, to put them beside those of others."""
    tensors = f"{values}:0", f"{rows}:{int(rows == values)}"
    first, second = (only_reader(graph, each, "ConcatV2") for each in tensors)
    if first is None or second is None or first is second:
        return None
    place, other = (place_in(graph, *pair) for pair in zip((first, second), tensors, strict=True))
    if place is None or place != other or {first.name, second.name} & graph.conditional:
        return None
    return first, second


def place_in(graph: Definition, behind: Any, tensor: str) -> int | None:
    """The one place of a tensor among those whose rows a ConcatV2 puts behind each other."""
    *parts, axis = graph.inputs(behind)
    same = [graph.same(each) for each in parts]
    if not graph.is_value(axis, 0) or same.count(graph.same(tensor)) != 1:
        return None
    return same.index(graph.same(tensor))


def sums_of(graph: Definition, values: str, rows: str) -> tuple[Any, Any] | None:
    """The nodes that alone read a gradient and its rows, to sum what each row has."""
    summed = only_reader(graph, f"{values}:0", "UnsortedSegmentSum")
    unique = only_reader(graph, f"{rows}:{int(rows == values)}", "Unique")
    if summed is None or unique is None or {summed.name, unique.name} & graph.conditional:
        return None
    if only_reader(graph, f"{unique.name}:1", "UnsortedSegmentSum") is not summed:
        return None
    return summed, unique


def rows_update_of(
    graph: Definition, lookup: StockLookup, summed: Any, unique: Any
) -> TableUpdate | None:
    """The update by an op that changes rows of a table and its slots, where it alone reads them."""
    apply = only_reader(graph, f"{summed.name}:0", *_RULES)
    if apply is None or not fits(graph, lookup, apply):
        return None
    rule = _RULES[apply.op]
    inputs = dict(zip(rule.inputs, graph.inputs(apply), strict=True))
    own = [graph.same(inputs[name]) for name in ("gradients", "rows")]
    if own != [f"{summed.name}:0", f"{unique.name}:0"]:
        return None
    if any(
        apply.attr[name].b is not value for name, value in rule.attributes if name in apply.attr
    ):
        return None
    return _table_update(
        apply,
        rule.name,
        tuple(inputs[name] for name in ("table", *rule.slots)),
        tuple(inputs.get(name, 0.0) for name in rule.scalars),
    )


def native_update_of(
    graph: Definition, lookup: StockLookup, summed: Any, unique: Any
) -> TableUpdate | None:
    """The update by `workbench.ops.fused_update`, where it alone reads a gradient."""
    apply = only_reader(graph, f"{summed.name}:0", *_NATIVE)
    if apply is None or not fits(graph, lookup, apply):
        return None
    slots = apply.attr["S"].i
    *held, gradients, rows = graph.inputs(apply)
    cast = graph.made_by(rows, "Cast")
    own = [graph.same(gradients), graph.same(graph.inputs(cast)[0] if cast else rows)]
    if own != [f"{summed.name}:0", f"{unique.name}:0"]:
        return None
    variables, scalars = held[: 1 + slots], held[1 + slots :]
    return _table_update(apply, apply.attr["rule"].s.decode(), tuple(variables), tuple(scalars))


def descent_of(
    graph: Definition, lookup: StockLookup, values: str, rows: str
) -> TableUpdate | None:
    """Gradient descent's update, where it alone reads a gradient."""
    given = f"{rows}:{int(rows == values)}"
    negated = only_reader(graph, f"{values}:0", "Neg")
    scaled = only_reader(graph, f"{(negated.name if negated else values)}:0", "Mul")
    ops = SCATTERS[:2] if negated is None else SCATTERS[2:]
    apply = only_reader(graph, f"{scaled.name}:0", *ops) if scaled else None
    if scaled is None or apply is None or only_reader(graph, given, *ops) is not apply:
        return None
    table, updated, changes = graph.inputs(apply)
    own = [graph.same(each) for each in (updated, changes)]
    if own != [graph.same(given), f"{scaled.name}:0"] or not fits(graph, lookup, apply):
        return None
    gradient = f"{(negated.name if negated else values)}:0"
    rates = [each for each in graph.inputs(scaled) if graph.same(each) != graph.same(gradient)]
    if len(rates) != 1 or graph.shape(rates[0]) != ():
        return None
    return _table_update(apply, "gradient_descent", (table,), (rates[0],))


def waits_of(node: Any) -> list[str]:
    """The names of nodes that run before another one by a control edge."""
    return [text[1:] for text in node.input if text.startswith("^")]


def fits(graph: Definition, lookup: StockLookup, apply: Any) -> bool:
    """Whether an update is one of the lookup's table, in float32, and nothing reads its result."""
    kinds = [apply.attr[name].type for name in ("T", "dtype") if name in apply.attr]
    return bool(
        apply.name not in graph.conditional
        and all(kind == FLOAT32 for kind in (*kinds, lookup.dtype))
        and variable_of(graph, lookup.table) == graph.same(graph.inputs(apply)[0])
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
        is_resource="Resource" in apply.op,
        use_locking="use_locking" in apply.attr and apply.attr["use_locking"].b,
        device=apply.device,
        after=tuple(waits_of(apply)),
    )


def only_reader(graph: Definition, tensor: str, *ops: str) -> Any | None:
    """The one node that reads a tensor, where it is of one of these types."""
    readers = [node for node in graph.readers(tensor) if node.op not in ("Identity", "Shape")]
    return readers[0] if len(readers) == 1 and readers[0].op in ops else None


def stock_update(graph: Definition, table: str) -> str:
    """The type of TensorFlow's op that changes the table of a lookup; "" where none does."""
    readers = graph.readers(variable_of(graph, table))
    ops = [node.op for node in readers if not node.op.startswith("Workbench")]
    updates = [op for op in ops if family_of(op) == UPDATE]
    # An initializer sets it, which counts where nothing else does: so do some optimizers of Keras.
    return min(updates, key=lambda op: op in _SETS, default="")


def variable_of(graph: Definition, read: str) -> str:
    """The variable, or handle, of which a tensor is the value."""
    node = graph.made_by(read, "ReadVariableOp")
    return graph.same(graph.inputs(node)[0] if node is not None else read)
