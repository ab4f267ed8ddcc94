"""How a value shows itself without knowing who draws it: the one registry of outlets."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

# Values stand at the bottom of the house, the outlets that draw them at the top, and imports only
# go downwards; so this module is looked up by name at the moment something is shown. That also
# keeps the widget stack out of programs that show nothing.
_OUTLETS = "workbench.viz.notebook"
# Figures stand by themselves, so that plotly is loaded only where one is asked for.
_CHARTS = "workbench.viz.charts.figures"


def text_of(value: Any) -> str:
    """A result as plain text."""
    text: str = importlib.import_module(_OUTLETS).text(value)
    return text


def charts() -> Any:
    """The module of figures: a function `of_…` for each value that has some."""
    return importlib.import_module(_CHARTS)


class Displayed:
    """Shows as HTML and as text, whichever the front end can do."""

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]:
        """The forms of this value by mime type, as IPython asks for them."""
        outlets = importlib.import_module(_OUTLETS)
        data, metadata = outlets.bundle(self)
        kept = set(data) if include is None else set(data) & set(include)
        kept -= set(exclude or ())
        return (
            {kind: shown for kind, shown in data.items() if kind in kept},
            {kind: notes for kind, notes in metadata.items() if kind in kept},
        )
