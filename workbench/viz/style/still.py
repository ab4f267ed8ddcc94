"""The still picture of a widget: an output of its own, hidden while the widget lives.

In one output with the widget it would be lost: viewers take the widget, also where no kernel and
no saved state is there to draw it.
"""

from __future__ import annotations

import html
import uuid
from typing import Any

from IPython.display import display


def new_name() -> str:
    """The class by which a living widget finds its own still picture."""
    return f"wb-still-{uuid.uuid4().hex[:12]}"


def show(widget: Any, picture: str, words: str) -> None:
    """Shows the still picture, then the widget.

    Args:
      widget: has the class of its still picture as `still`.
      picture: HTML without script. words: the same as text.
    """
    shown = f'<div class="{html.escape(widget.still)}">{picture}</div>'
    display({"text/html": shown, "text/plain": words}, raw=True)
    made = widget._repr_mimebundle_()
    data, metadata = made if isinstance(made, tuple) else (made, {})
    display(data, metadata=metadata, raw=True)
