"""Widgets: the views alive in a notebook. They hold no number of their own."""

from __future__ import annotations

import threading
from typing import Any

import anywidget
import pandas as pd
import traitlets

from workbench.core.trace.trace import Trace
from workbench.viz.style import assets, still
from workbench.viz.timeline.html import timeline_static_html
from workbench.viz.timeline.view import TimelineView, timeline_view

# packed columns up to this travel with the model, so a saved notebook shows them without a kernel;
# larger ones are sent when a view asks, and never saved
_SAVED_BYTES = 96_000
_UNPACKED_BYTES = 4_000_000
# seconds until the front end should have loaded the script of a widget that was just shown, and
# between further attempts
_PUSH_AFTER = (0.6, 1.5, 3.0)


class TimelineWidget(anywidget.AnyWidget):
    """The timeline of a trace, to zoom, search and pick from.

    Shows as a widget, and as a still picture for when its kernel is gone.

    Attributes:
      view: the finished view that is drawn.
      selected: index of the selected span in the view, -1 for none; may be set from Python.
    """

    header = traitlets.Dict().tag(sync=True)
    packed = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)

    def __init__(self, source: Trace | TimelineView, **options: Any) -> None:
        """Makes the widget.

        Args:
          source: a trace, or a view made by `timeline_view`.
          **options: handed to `timeline_view` when `source` is a trace.
        """
        self.view = source if isinstance(source, TimelineView) else timeline_view(source, **options)
        self._buffer = self.view.columns.buffer()
        self._push: threading.Timer | None = None
        self._esm, self._css = assets.script(), assets.style()
        packed = self.view.columns.packed if len(self._buffer) <= _UNPACKED_BYTES else b""
        super().__init__(
            header=self.view.to_json_header(),
            packed=packed if len(packed) <= _SAVED_BYTES else b"",
            still=still.new_name(),
        )
        self.on_msg(_answer)

    @property
    def selected_event(self) -> int:
        """Row of the selected span in the events of the trace; -1 where it is no event, or none."""
        return int(self.view.spans.row[self.selected]) if self.selected >= 0 else -1

    def in_view(self, start_ns: int = 0, end_ns: int | None = None) -> pd.DataFrame:
        """What a stretch holds, by op type: see `TimelineView.in_view`."""
        return self.view.in_view(start_ns, end_ns)

    def _send_columns(self) -> None:
        self.send({"kind": "data"}, [self._buffer])

    def send_soon(self, waits: tuple[float, ...] = _PUSH_AFTER) -> None:
        """Sends the columns unasked: while cells run, a view's request waits behind them.

        Happens by itself where the widget is shown; a program that shows it inside another widget
        calls it. A view that stands already takes the columns, any other leaves them; so they are
        sent again until the request of a view gets through.
        """
        if self.packed or not waits:
            return

        def push() -> None:
            self._send_columns()
            self.send_soon(waits[1:])

        self._push = threading.Timer(waits[0], push)
        self._push.daemon = True
        self._push.start()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget alone; a host that asks for this shows no still picture."""
        self.send_soon()
        return super()._repr_mimebundle_(**kwargs)

    def _ipython_display_(self) -> None:
        still.show(self, timeline_static_html(self.view), self.view.describe())


def _answer(widget: TimelineWidget, message: Any, _buffers: Any) -> None:
    """Sends the columns to a view that asks for them."""
    if isinstance(message, dict) and message.get("kind") == "data":
        if widget._push is not None:
            widget._push.cancel()
        widget._send_columns()
