"""What an op has to do at least, from its type and the shapes of its tensors.

The arithmetic is that of the step, not of the ops that TensorFlow has for it. What works on one
number at a time rides along with what makes the numbers, so it counts as arithmetic alone. What
multiplies matrices, sums, copies, looks rows up or updates them reads and writes each tensor once.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

from workbench.core.analysis.limit.peaks import MULTIPLIED
from workbench.core.analysis.limit.work import LINE_BYTES, OWN_BYTES, Work
from workbench.core.graph.op_families import stock_op
from workbench.core.graph.tensor_shapes import TensorShape

Tensors = Sequence[TensorShape]

# What takes more than this is not in a cache when a step comes to it again.
FAR_BYTES = 32 << 20
_MULTIPLY_ADD = 2.0
# What ops call both matrices of a product; of an op that is not registered the names are unknown.
_FACTORS = ("a", "b", "x", "y", "")
# What ops call the ids of rows.
_IDS = ("indices", "values", "keys")


def work_of(op: str, inputs: Tensors, outputs: Tensors) -> Work | None:
    """The work of one run.

    Args:
      op: type of the node.
      inputs, outputs: its tensors.

    Returns:
      None where no rule knows the op's arithmetic, or the shapes do not tell it.
    """
    name = stock_op(op)
    for pattern, rule in _RULES:
        if pattern.match(name):
            return rule(inputs, outputs)
    return _elementwise(inputs, outputs)


def _named(tensors: Tensors, argument: str) -> list[TensorShape]:
    return [tensor for tensor in tensors if tensor.argument == argument]


def _bytes(tensors: Tensors) -> float:
    return float(sum(tensor.bytes for tensor in tensors))


def _moved(count: float, flops: float = 0.0, dtype: str = "float32") -> Work:
    """Work that moves so many bytes, from memory where they fit in no cache."""
    if count > FAR_BYTES:
        return Work(flops=flops, dtype=dtype, memory_bytes=count)
    return Work(flops=flops, dtype=dtype, cached_bytes=count)


def _nothing(_: Tensors, __: Tensors) -> Work:
    return Work()


def _unknown(_: Tensors, __: Tensors) -> None:
    return None


def _elementwise(inputs: Tensors, outputs: Tensors) -> Work | None:
    """One operation for each number; what makes fewer than it reads does something else."""
    numbers = [tensor for tensor in outputs if tensor.is_floating and not tensor.is_variable]
    read = max((t.count for t in inputs if t.is_floating and not t.is_variable), default=0)
    if any(tensor.count < read for tensor in numbers):
        return None
    return Work(flops=float(sum(tensor.count for tensor in numbers)))


def _pass(inputs: Tensors, outputs: Tensors) -> Work:
    """Goes through all that it reads and writes, once."""
    return _moved(_bytes(inputs) + _bytes(outputs))


def _copy(_: Tensors, outputs: Tensors) -> Work:
    """Reads as much as it writes."""
    return _moved(2 * _bytes(outputs))


def _product(inputs: Tensors, outputs: Tensors) -> Work | None:
    """[…, m, k] by […, k, n], either transposed: m k n multiply-adds for each matrix it makes."""
    factors = [tensor for tensor in inputs if tensor.argument in _FACTORS][:2]
    if len(factors) < 2 or not outputs:
        return None
    matrices = outputs[0]
    if any(len(tensor.shape) < 2 for tensor in (*factors, matrices)):
        return None
    left, right, product = (math.prod(tensor.shape[-2:]) for tensor in (*factors, matrices))
    # m k times k n, by m n
    inner = math.isqrt(left * right // max(1, product))
    flops = _MULTIPLY_ADD * matrices.count * inner
    moved = _bytes(factors) + matrices.bytes
    return _moved(moved, flops, matrices.dtype) if matrices.dtype in MULTIPLIED else None


def _interaction(inputs: Tensors, outputs: Tensors) -> Work | None:
    """Dots of pairs of vectors [examples, n, d]; the gradient adds each pair twice."""
    vectors = next((tensor for tensor in (*inputs, *outputs) if len(tensor.shape) == 3), None)
    dots = next((tensor for tensor in (*outputs, *inputs) if len(tensor.shape) == 2), None)
    if vectors is None or dots is None or not outputs:
        return None
    times = 1 if len(outputs[0].shape) == 2 else 2
    flops = times * _MULTIPLY_ADD * dots.count * vectors.shape[-1]
    return _moved(_bytes(inputs) + _bytes(outputs), flops)


def _rows_moved(
    table: TensorShape, rows: float, held: float, *, writes: bool, all_bytes: float | None = None
) -> Work:
    """Rows of a table and its slots: read, and with `writes` written.

    Args:
      table: of which the slots are as large.
      rows: how many.
      held: how many tensors they are read of, the table among them.
      writes: whether all of them are written, too.
      all_bytes: of all tables that the op goes to, with slots; by default of this one.
    """
    width = table.bytes / table.shape[0] if table.shape and table.shape[0] else 0.0
    copies = held * (2 if writes else 1)
    lines = held * rows * max(1.0, width / LINE_BYTES)
    all_bytes = held * table.bytes if all_bytes is None else all_bytes
    if all_bytes > FAR_BYTES:
        return Work(lines=lines * (2 if writes else 1))
    # A line that was just read is written in the core's own cache.
    if all_bytes > OWN_BYTES:
        return Work(cached_lines=lines)
    return Work(cached_bytes=copies * rows * width)


def _with_bytes(work: Work, more: float) -> Work:
    return dataclasses.replace(work, cached_bytes=work.cached_bytes + more)


def _gather(inputs: Tensors, outputs: Tensors) -> Work | None:
    """Rows by ids: each different one once."""
    if len(inputs) < 2 or not outputs:
        return None
    table = inputs[0]
    ids = next((tensor for tensor in inputs if tensor.argument in _IDS), inputs[1])
    if not table.shape:
        return None
    # Which ids are equal is not known here; there are no more different ones than rows.
    rows = min(float(ids.count), float(table.shape[0]) or float(ids.count))
    moved = _rows_moved(table, rows, 1, writes=False)
    return _with_bytes(moved, outputs[0].bytes + ids.bytes)


def _row_update(inputs: Tensors, _: Tensors) -> Work | None:
    """Rows of a table and its slots, each read and written, by gradients of those rows."""
    held = [tensor for tensor in inputs if tensor.is_variable and tensor.shape]
    ids = next((tensor for tensor in inputs if tensor.argument in ("rows", *_IDS)), None)
    named = ("grad", "grads", "gradients", "updates")
    gradient = next((tensor for tensor in inputs if tensor.argument in named), None)
    if not held or ids is None:
        return None
    rest = float(ids.bytes + (gradient.bytes if gradient else 0))
    return _with_bytes(_rows_moved(held[0], float(ids.count), len(held), writes=True), rest)


def _dense_update(inputs: Tensors, _: Tensors) -> Work:
    """A variable and its slots, each read and written, and its gradient."""
    held = [tensor for tensor in inputs if tensor.is_variable]
    others = [tensor for tensor in inputs if not tensor.is_variable]
    return _moved(2 * _bytes(held) + _bytes(others), float(sum(t.count for t in held)))


def _grouped(inputs: Tensors, outputs: Tensors) -> Work | None:
    """Lookups of many features, or their gradients and updates."""
    tables, ids = _named(inputs, "tables"), _named(inputs, "ids")
    slots, gradients = _named(inputs, "slots"), _named(inputs, "gradients")
    if not ids:
        return None
    moved = _bytes(ids) + _bytes(outputs) + _bytes(gradients)
    if not tables:
        return Work(cached_bytes=moved)
    held = 1 + len(slots) / len(tables)
    all_bytes = held * _bytes(tables)
    per_table = len(ids) / len(tables)
    near, far = 0.0, 0.0
    for place, table in enumerate(tables):
        of_table = ids[round(place * per_table) : round((place + 1) * per_table)]
        count = float(sum(each.count for each in of_table))
        rows = min(count, float(table.shape[0]) or count) if table.shape else count
        one = _rows_moved(table, rows, held, writes=not outputs, all_bytes=all_bytes)
        near, far = near + one.cached_lines, far + one.lines
        moved += one.cached_bytes
    return Work(lines=far, cached_lines=near, cached_bytes=moved)


def _fields(_: Tensors, outputs: Tensors) -> Work:
    return Work(fields=float(sum(tensor.count for tensor in outputs)))


_Rule = Callable[[Tensors, Tensors], Work | None]
# The first that matches the op's type counts.
_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"(Workbench|Fused)?(Batch)?MatMul(V\d)?$", _product),
        (r"\w*(Conv[123][Dd]|Einsum|LSTM|GRU|CudnnRNN|SparseMatMul|SparseTensorDense)", _unknown),
        (r"(Stateful)?PartitionedCall|(Stateless)?(While|If|Case)|XlaLaunch|\w*PyFunc", _unknown),
        (r"WorkbenchDotInteraction", _interaction),
        (r"Workbench\w*GroupedApplyAll", _dense_update),
        (r"Workbench\w*Grouped", _grouped),
        (r"Workbench\w*RowsApply|WorkbenchEmbeddingApply", _row_update),
        (r"(Resource)?SparseApply|(Resource)?Scatter(Nd)?(Add|Sub|Mul|Update)", _row_update),
        (r"(Workbench)?(Resource)?Apply[A-Z]|Assign", _dense_update),
        (r"(Resource)?Gather(V2)?$|Workbench(Resource)?LocalLookUp$", _gather),
        (r"WorkbenchEmbeddingGather|SparseSegment\w+(?<!Grad)(?<!GradV2)$", _gather),
        (r"\w*Decode(CSV|Csv)|\w*ParseExample|StringToNumber", _fields),
        # What hands tensors on, makes none, or waits.
        (r"Const$|Placeholder|Variable|VarHandleOp|ReadVariableOp|\w*Iterator", _nothing),
        (r"Identity|Reshape|ExpandDims|Squeeze|StopGradient|EnsureShape", _nothing),
        (r"NoOp|_?Arg$|_?Retval|_?(Host)?(Send|Recv)|WorkbenchBuffer|WorkbenchChoice", _nothing),
        (r"(Ref)?(Enter|Exit|Merge|NextIteration|Switch)|RefSelect$|LoopCond", _nothing),
        (r"Shape|Size$|Rank$|ControlTrigger|BroadcastGradientArgs", _nothing),
        (r"Stack|TensorList|TensorArray|PreventGradient", _nothing),
        # What goes through all of its tensors once.
        (r"(Sum|Mean|Max|Min|Prod|All|Any|L2Loss|BiasAddGrad|ArgM\w+|Softmax)$", _pass),
        (r"\w*Segment|\w*SoftmaxCrossEntropy|Cumsum|Concat|Pack$|Split|Transpose", _pass),
        (r"Workbench(BatchNorm|FmInteraction|HashColumns|PreLookUp|PostLookUp)", _pass),
        (r"StringToHash|FusedBatchNorm|Unique|DynamicPartition|DynamicStitch|Where$", _pass),
        (r"WorkbenchUnique|SparseFillEmpty|SparseReshape|LogSoftmax", _pass),
        (r"Tile$|StridedSlice|Slice|Pad|GatherNd|Unpack|Reverse|WorkbenchIdColumns", _copy),
    )
)
