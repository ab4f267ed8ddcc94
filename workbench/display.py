"""How a value shows itself in a notebook without knowing who draws it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any


class Displayed:
    """Shows as widget, as static HTML and as text, whichever the front end can do.

    Values stand at the bottom of the house, the outlets that draw them at the top, and imports
    only go downwards; so the outlet is looked up by name at the moment something is shown. That
    also keeps the widget stack out of programs that show nothing.
    """

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]:
        """The forms of this value by mime type, as IPython asks for them."""
        outlet = importlib.import_module("workbench.viz.mime")
        data, metadata = outlet.bundle(self)
        kept = set(data) if include is None else set(data) & set(include)
        kept -= set(exclude or ())
        return (
            {kind: shown for kind, shown in data.items() if kind in kept},
            {kind: notes for kind, notes in metadata.items() if kind in kept},
        )
