"""Origin: what makes a program again in another process, on another day. It is data, never code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Origin:
    """One of the models that come with this library, or a place in a file of the user's own.

    Attributes:
      model: the model's name; "" for a program of the user's own.
      options: the model's options, JSON-ready; its `data` is None where the file was generated.
      place: where the user's own program stands, such as "my_model.py:build"; "" for a model.
    """

    model: str = ""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        """What `Configuration` keeps of it."""
        if self.place:
            return {"place": self.place}
        return {"model": self.model, "options": dict(self.options)}
