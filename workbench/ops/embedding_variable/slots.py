"""Slots: what optimizers keep beside the rows of an EmbeddingVariable."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slot:
    """Values of an optimizer for each row, made with the row.

    Attributes:
      name: in a checkpoint `<variable>/<name>-values`.
      initial: what all of its values start with.
    """

    name: str
    initial: float


class Slots:
    """The slots of an EmbeddingVariable, shared by its partitions, in the order they were made."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], Slot] = {}
        # Keeps the optimizers, so that their ids stay theirs.
        self._optimizers: dict[int, Any] = {}

    def make(self, optimizer: Any, key: str, name: str, initial: float) -> Slot:
        """The optimizer's slot `key`; a name that is taken gets a number, as in TensorFlow."""
        made = self.find(optimizer, key)
        if made is not None:
            return made
        taken = {slot.name for slot in self._made.values()}
        free, number = name, 0
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        self._optimizers[id(optimizer)] = optimizer
        self._made[id(optimizer), key] = Slot(name=free, initial=float(initial))
        return self._made[id(optimizer), key]

    def find(self, optimizer: Any, key: str) -> Slot | None:
        """The optimizer's slot `key`, None if it has none."""
        return self._made.get((id(optimizer), key))

    def all(self) -> tuple[Slot, ...]:
        """Every slot, in the order they were made."""
        return tuple(self._made.values())
