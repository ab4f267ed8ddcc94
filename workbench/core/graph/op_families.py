"""Op families: what kind of work an op does, by its type and the name of its node."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from workbench.core.graph.workbench_ops import WORKBENCH_OPS

FAMILY_NAMES = (
    "Input, decode",
    "Ids, preprocess",
    "Lookup",
    "Dense matmul",
    "Gradient",
    "Update",
    "Copy, communication",
    "Control, other",
)
INPUT, IDS, LOOKUP, DENSE, GRADIENT, UPDATE, COPY, CONTROL = range(8)

# In this order; what stands first wins. "$" ends a name that is the beginning of others.
_RULES = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        # what writes variables; ScatterNd makes a tensor and is none of them
        (UPDATE, r"(Resource(Sparse)?|Sparse)?Apply[A-Z]|Assign|ResourceScatter(?!Nd$)"),
        (UPDATE, r"Workbench(Embedding(Apply|Clear|Import)|(Resource)?RowsApply)"),
        (UPDATE, r"Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)$|ResourceScatterNd"),
        (COPY, r"_?(Host)?(Send|Recv)|Collective|Nccl|_?Copy|WorkbenchBuffer|(Map)?(Uns|S)tage$"),
    )
)
# The scope that TensorFlow gives gradients, as a pattern.
GRADIENTS = r"gradients?(?:_tape|_\d+)?/"
_GRADIENT_NAME = re.compile(rf"(^|/){GRADIENTS}")
_REPLACED = re.compile(r"^_Mkl(Native)?|^_(?=Fused)")
_LATER_RULES = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        (GRADIENT, r"\w+Grad(V\d)?$|\w+Backprop"),
        (INPUT, r"Iterator|Optional|\w*Dataset|Decode|Parse|Read(File|er|Lines)|\w*Reader"),
        (INPUT, r"\w*Queue(Dequeue|Enqueue)|String(Split|ToNumber|Strip)|(Eager)?PyFunc|Example"),
        (IDS, r"LookupTable|MutableHashTable|HashTable|Bucketize|Unique|Log1p|OneHot|Fingerprint"),
        (IDS, r"String|AsString|Substr|Unicode|(Static)?Regex|DynamicPartition|FloorMod|Mod$"),
        (IDS, r"Sparse(FillEmpty|Reshape|ToDense|Cross|Concat|Slice|Split)|Ragged"),
        (IDS, r"Workbench(PreLookUp|Prune|Unique|Partition)"),
        (LOOKUP, r"Workbench(Resource)?(Local|Grouped)LookUp|WorkbenchEmbedding"),
        (LOOKUP, r"(Resource)?Gather|(Unsorted|Sparse)?Segment|\w*(Embedding|Lookup)|KvResource"),
        (LOOKUP, r"(Parallel)?DynamicStitch"),
        # what multiplies matrices; what works on one number at a time, such as an activation, a
        # mean or a loss, is none of them
        (DENSE, r"\w*MatMul|Einsum|\w*Conv[123][dD]|(Block)?(LSTM|GRU)|CudnnRNN"),
        (COPY, r"Concat|Split|Pack|Unpack|ParallelConcat|DeepCopy|(Conjugate)?Transpose"),
        (COPY, r"(Strided)?Slice|Tile|(Mirror)?Pad(V\d)?$|BroadcastTo|Reverse"),
    )
)


def stock_op(op: str) -> str:
    """The op of the graph that was built: a CPU library puts its own in the place of some."""
    return _REPLACED.sub("", op)


def family_of(op: str, name: str = "") -> int:
    """The family of one op, from its type and the name of its node.

    What a CPU library puts in place of an op counts as that op ("_MklMatMul" is "MatMul").
    Updates and transfers are known by their type wherever they stand; then everything in a
    gradient scope is a gradient; then the type decides again. What no rule knows is "other".
    """
    op = stock_op(op)
    workbench_op = WORKBENCH_OPS.get(op)
    if workbench_op is not None and workbench_op.family == FAMILY_NAMES[UPDATE]:
        return UPDATE
    for family, rule in _RULES:
        if rule.match(op):
            return family
    if _GRADIENT_NAME.search(name):
        return GRADIENT
    if workbench_op is not None:
        return FAMILY_NAMES.index(workbench_op.family)
    for family, rule in _LATER_RULES:
        if rule.match(op):
            return family
    return CONTROL


def families_of(ops: Iterable[str], names: Iterable[str]) -> np.ndarray:
    """Families of many nodes, uint8."""
    return np.fromiter((family_of(o, n) for o, n in zip(ops, names, strict=True)), np.uint8)


def family_names(ops: Iterable[str], names: Iterable[str]) -> list[str]:
    """Names of the families of many nodes."""
    return [FAMILY_NAMES[family] for family in families_of(ops, names).tolist()]
