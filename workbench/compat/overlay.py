"""A module of stock TensorFlow with some names replaced or added."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class Overlay(ModuleType):
    """Looks a name up in `additions.__all__` first, then in `base`."""

    def __init__(self, base: ModuleType, additions: ModuleType) -> None:
        super().__init__(base.__name__, base.__doc__)
        self._base = base
        for name in additions.__all__:
            setattr(self, name, getattr(additions, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_base"], name)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(self._base)})
