"""Chart: a plotly figure that asks no server for anything, wherever it is shown or written."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

# Plotly offers to upload a figure to its maker's cloud unless it is told not to.
CONFIG = {
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}


def private(config: dict[str, Any] | None = None) -> dict[str, Any]:
    """A configuration of plotly.js with ours below it: what the caller gives wins."""
    return {**CONFIG, **(config or {})}


class Chart(go.Figure):
    """A plotly figure that is shown and written with `CONFIG`, and with plotly.js in its files.

    It is a `plotly.graph_objects.Figure` in all else.
    """

    def show(self, *args: Any, config: dict[str, Any] | None = None, **named: Any) -> Any:
        """Shows it, as plotly's renderer of the notebook or terminal does."""
        return super().show(*args, config=private(config), **named)

    def to_html(self, config: dict[str, Any] | None = None, *args: Any, **named: Any) -> str:
        """A page, as of `plotly.io.to_html`."""
        written: str = super().to_html(private(config), *args, **named)
        return written

    def write_html(
        self, file: Any, config: dict[str, Any] | None = None, *args: Any, **named: Any
    ) -> None:
        """Writes a page, as `plotly.io.write_html` does."""
        super().write_html(file, private(config), *args, **named)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, validate: bool = True, **named: Any
    ) -> Any:
        shown = {"config": private(), **named}
        return super()._repr_mimebundle_(include, exclude, validate, **shown)

    def _repr_html_(self) -> str:
        return self.to_html(full_html=False)

    def _ipython_display_(self) -> None:
        if pio.renderers.render_on_display and pio.renderers.default:
            self.show()
        else:
            super()._ipython_display_()
