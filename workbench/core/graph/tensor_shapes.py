"""Tensors of a node with their types and shapes, and the text in which a trace keeps them.

"a=float32[512,13] table=&float32[10000,16]": argument, type, shape; "&" before what is a variable.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable

_TENSOR = re.compile(r"(?:(\w+)=)?(&?)(\w+)\[([\d,]*)\]")
# Of types whose names do not end with their bits; a string is what TensorFlow keeps of it in place.
_BYTES = {"bool": 1, "string": 24, "resource": 0, "variant": 0}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TensorShape:
    """One tensor that a node reads or makes.

    Attributes:
      dtype: name of its type, such as "float32".
      shape: its dimensions.
      argument: what the op calls it; "" where that is not known.
      is_variable: whether it is the value of a variable, which the op may change.
    """

    dtype: str
    shape: tuple[int, ...]
    argument: str = ""
    is_variable: bool = False

    @property
    def count(self) -> int:
        """How many numbers, or texts, it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Memory that it takes; of text what stands in place."""
        return self.count * bytes_of(self.dtype)

    @property
    def is_floating(self) -> bool:
        """Whether its numbers are floating ones."""
        return "float" in self.dtype

    def __str__(self) -> str:
        name = f"{self.argument}=" if self.argument else ""
        dims = ",".join(map(str, self.shape))
        return f"{name}{'&' * self.is_variable}{self.dtype}[{dims}]"


def bytes_of(dtype: str) -> int:
    """Bytes of one number of a type."""
    if dtype in _BYTES:
        return _BYTES[dtype]
    bits = re.search(r"\d+$", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1


def shapes_text(tensors: Iterable[TensorShape]) -> str:
    """Tensors as text."""
    return " ".join(map(str, tensors))


def parsed_shapes(text: str) -> tuple[TensorShape, ...]:
    """The tensors of a text; words in it that are none are left out."""
    return tuple(
        TensorShape(
            argument=found[1] or "",
            is_variable=bool(found[2]),
            dtype=found[3],
            shape=tuple(int(size) for size in found[4].split(",") if size),
        )
        for word in text.split()
        if (found := _TENSOR.fullmatch(word))
    )
