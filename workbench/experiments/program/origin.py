"""Origin: what makes a program again in another process, on another day. It is data, never code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.errors import DataError


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


def origin_from(document: Any) -> Origin:
    """Reads what `Origin.to_json` made, which may come from anybody: nothing in it is looked up.

    Raises:
      DataError: it is something else.
    """
    if isinstance(document, Mapping):
        match dict(document):
            case {"place": str(place), **rest} if place and not rest:
                return Origin(place=place)
            case {"model": str(model), "options": dict(options), **rest} if model and not rest:
                plain = str | int | float | None
                if all(isinstance(each, str) for each in options) and all(
                    isinstance(each, plain) for each in options.values()
                ):
                    return Origin(model=model, options=options)
    raise DataError("its configuration does not say what program was measured")
