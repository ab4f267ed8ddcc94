"""Peaks: what a core of a machine does at most, while all cores do it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

# Products of other types have no peak here.
MULTIPLIED = ("float32", "float64")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Peaks:
    """What one core does in a second at most, its share of what all cores do at the same time.

    Attributes:
      cores: how many there are.
      multiply_adds: of numbers of each type of `MULTIPLIED`, as products of a dense layer and of
        its gradients do them.
      cached_bytes: read or written, of what lies in a core's own cache.
      shared_bytes: read or written in order, of what lies in a cache but not in a core's own.
      memory_bytes: read or written in order, of what lies in no cache.
      cached_lines: of 64 bytes, read in no order, of what lies in a cache but not in a core's own.
      lines: of 64 bytes, read in no order, of what lies in no cache.
      fields: of lines of text, made numbers or words of.

    Raises:
      ValueError: a value is not above 0.
    """

    cores: int
    multiply_adds: Mapping[str, float]
    cached_bytes: float
    shared_bytes: float
    memory_bytes: float
    cached_lines: float
    lines: float
    fields: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "multiply_adds", dict(self.multiply_adds))
        plain = {name: getattr(self, name) for name in _RATES}
        rates = {**plain, **{name: self.multiply_adds.get(name, 0.0) for name in MULTIPLIED}}
        for name, rate in rates.items():
            if not (rate > 0 and math.isfinite(rate)):
                raise ValueError(f"the peak {name} is {rate!r}; expected a number above 0")
        if self.cores < 1:
            raise ValueError(f"a machine has {self.cores!r} cores; expected at least 1")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, by name of the field."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> Peaks:
        """What `to_json` gave.

        Raises:
          KeyError, TypeError, ValueError: it is something else.
        """
        rates = {name: float(known[name]) for name in _RATES}
        products = {name: float(known["multiply_adds"][name]) for name in MULTIPLIED}
        return cls(cores=int(known["cores"]), multiply_adds=products, **rates)


_RATES = (
    *("cached_bytes", "shared_bytes", "memory_bytes"),
    *("cached_lines", "lines", "fields"),
)
