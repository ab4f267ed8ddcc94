"""Types, shapes and sizes of tensors, in words."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence

from workbench.core.graph.graph_view import GraphView, Shape
from workbench.viz.style import format

_MOST_KINDS = 2
_SIZES = {
    **dict.fromkeys(("bool", "int8", "uint8", "qint8", "quint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "half"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "double", "complex64"), 8),
    "complex128": 16,
}


def size_of(dtype: str, shape: Shape) -> int:
    """Bytes of a tensor; -1 where the graph does not say its size, or it holds strings."""
    if dtype not in _SIZES or shape is None or any(side < 0 for side in shape):
        return -1
    return _SIZES[dtype] * math.prod(shape)


def kind_of(view: GraphView, node: int, output: int) -> str:
    """Type and shape of one output: "int64 [?, 2]"; the type alone without a known rank."""
    shapes = view.output_shapes(node)
    shape = shapes[output] if output < len(shapes) else None
    dtype = view.outputs[node][output]
    if shape is None:
        return dtype
    return f"{dtype} [{', '.join('?' if side < 0 else str(side) for side in shape)}]"


def tensor_words(view: GraphView, tensors: Sequence[tuple[int, int]]) -> tuple[str, int]:
    """Tensors, as (node, output), in words; and the bytes of those whose size is known."""
    kinds = collections.Counter(kind_of(view, node, output) for node, output in tensors)
    named = [kind if n == 1 else f"{n} × {kind}" for kind, n in kinds.most_common(_MOST_KINDS)]
    if len(kinds) > _MOST_KINDS:
        named.append(f"{len(kinds) - _MOST_KINDS} other kinds")
    sizes = []
    for node, output in tensors:
        shapes = view.output_shapes(node)
        shape = shapes[output] if output < len(shapes) else None
        sizes.append(size_of(view.outputs[node][output], shape))
    known = sum(size for size in sizes if size >= 0)
    count = "1 tensor" if len(tensors) == 1 else f"{format.integer(len(tensors))} tensors"
    return f"{count}: {', '.join(named)}; {byte_words(known, sum(s < 0 for s in sizes))}", known


def byte_words(known: int, unknown: int) -> str:
    """Bytes, decimal: "27 kB", "27 kB and 52 of unknown size", "size not known"."""
    if not unknown:
        return byte_count(known)
    return f"{byte_count(known)} and {unknown} of unknown size" if known else "size not known"


def byte_count(value: int) -> str:
    """Bytes with three digits at most: "181 kB", "2.0 kB", "16 MB"."""
    for unit, per in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= 0.9995 * per:
            amount = value / per
            digits = 1 if amount < 9.95 else 0
            return f"{amount:.{digits}f}{format.NBSP}{unit}"
    return f"{value}{format.NBSP}B"
