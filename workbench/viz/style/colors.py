"""The one palette: op families, their colors, patterns and codes, and which op belongs where.

Colors stand in `FAMILIES`; `css()` turns them into custom properties for both themes, and a test
recomputes contrast and distance from here. Patterns and codes are the second channel: they carry
the family where color cannot.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import numpy as np

DARK_TEXT = "#16181b"
LIGHT_TEXT = "#ffffff"


@dataclasses.dataclass(frozen=True)
class Family:
    """An op family: name and two-letter code, color per theme, pattern drawn by the browser."""

    name: str
    code: str
    light: str
    dark: str
    pattern: str


FAMILIES = (
    Family("Input, decode", "IN", "#b08414", "#e2951f", "vertical"),
    Family("Ids, preprocess", "ID", "#736c00", "#ddd568", "slash"),
    Family("Lookup", "LK", "#1a92dd", "#38b8f2", "dots"),
    Family("Dense matmul", "MM", "#0d5bb5", "#4a84e4", "plain"),
    Family("Gradient", "GR", "#d063a5", "#bb689f", "backslash"),
    Family("Update", "UP", "#04846b", "#63e3c8", "horizontal"),
    Family("Copy, communication", "CP", "#8c2a10", "#e2532a", "crossed"),
    Family("Control, other", "CT", "#575a5e", "#a1a3a5", "squares"),
)
INPUT, IDS, LOOKUP, DENSE, GRADIENT, UPDATE, COPY, CONTROL = range(8)
# not families: a span that waits (hatched), and the run of a whole step (a tint of the ink)
WAIT, RUN = 8, 9

# In this order; what stands first wins. "$" ends a name that is the beginning of others.
_RULES = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        # what writes variables; ScatterNd makes a tensor and is none of them
        (UPDATE, r"(Resource(Sparse)?|Sparse)?Apply[A-Z]|Assign|ResourceScatter(?!Nd$)"),
        (UPDATE, r"WorkbenchEmbedding(Apply|Clear|Import)"),
        (UPDATE, r"Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)$|ResourceScatterNd"),
        (COPY, r"_?(Host)?(Send|Recv)|Collective|Nccl|_?Copy|WorkbenchBuffer|(Map)?(Uns|S)tage$"),
    )
)
_GRADIENT_NAME = re.compile(r"(^|/)gradients?(_tape|_\d+)?/")
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
        (LOOKUP, r"Workbench(PostLookUp|(Resource)?LocalLookUp|Embedding)"),
        (LOOKUP, r"(Resource)?Gather|(Unsorted|Sparse)?Segment|\w*(Embedding|Lookup)|KvResource"),
        (LOOKUP, r"(Parallel)?DynamicStitch"),
        # what multiplies matrices; what works on one number at a time, such as an activation, a
        # mean or a loss, is none of them
        (DENSE, r"\w*MatMul|Einsum|\w*Conv[123][dD]|(Block)?(LSTM|GRU)|CudnnRNN"),
        (COPY, r"Concat|Split|Pack|Unpack|ParallelConcat|DeepCopy|(Conjugate)?Transpose"),
        (COPY, r"(Strided)?Slice|Tile|(Mirror)?Pad(V\d)?$|BroadcastTo|Reverse"),
    )
)


def family_of(op: str, name: str = "") -> int:
    """The family of one op, from its type and the name of its node.

    What a CPU library puts in place of an op counts as that op ("_MklMatMul" is "MatMul").
    Updates and transfers are known by their type wherever they stand; then everything in a
    gradient scope is a gradient; then the type decides again. What no rule knows is "other".
    """
    op = _REPLACED.sub("", op)
    for family, rule in _RULES:
        if rule.match(op):
            return family
    if _GRADIENT_NAME.search(name):
        return GRADIENT
    for family, rule in _LATER_RULES:
        if rule.match(op):
            return family
    return CONTROL


def families_of(ops: Iterable[str], names: Iterable[str]) -> np.ndarray:
    """Families of many nodes, uint8."""
    return np.fromiter((family_of(o, n) for o, n in zip(ops, names, strict=True)), np.uint8)


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", as WCAG 2 defines it."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colors, 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_on(color: str) -> str:
    """The better of the two text colors on this fill."""
    return max(LIGHT_TEXT, DARK_TEXT, key=lambda text: contrast(text, color))


def css(theme: str) -> str:
    """Custom properties of one theme: --wb-f0 … fills, --wb-t0 … the text on them.

    Args:
      theme: "light" or "dark".
    """
    fills = [getattr(family, theme) for family in FAMILIES]
    return "".join(f"--wb-f{i}:{fill};--wb-t{i}:{text_on(fill)};" for i, fill in enumerate(fills))
