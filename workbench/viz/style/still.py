"""The still picture of a widget: an output of its own, hidden while the widget lives.

In one output with the widget it would be lost: viewers take the widget, also where no kernel and
no saved state is there to draw it.
"""

from __future__ import annotations

import html
import uuid
from typing import Any

from IPython.display import display

# JupyterLab says in the output after the picture that the widget has no state, as after every
# reopening: text alone, where a living widget has elements. The picture stands for it.
_HIDES_LOST = (
    "<style>.jp-OutputArea-child:has(.{still}) + .jp-OutputArea-child:has(> .jupyter-widgets)"
    ":not(:has(> .jupyter-widgets > *)) {{ display: none; }}</style>"
)


def new_name() -> str:
    """The class by which a living widget finds its own still picture."""
    return f"wb-still-{uuid.uuid4().hex[:12]}"


def still_output(still: str, picture: str) -> str:
    """The HTML of the output before the widget's.

    Args:
      still: its class, of `new_name`.
      picture: HTML.
    """
    name = html.escape(still)
    return f'<div class="{name}">{picture}</div>{_HIDES_LOST.format(still=name)}'


def show(widget: Any, picture: str, words: str) -> None:
    """Shows the still picture, then the widget.

    Args:
      widget: has the class of its still picture as `still`.
      picture: HTML without script. words: the same as text.
    """
    shown = still_output(widget.still, picture)
    display({"text/html": shown, "text/plain": words}, raw=True)
    show_widget(widget)


def show_widget(widget: Any) -> None:
    """Shows a widget whose still picture stands before it.

    The picture has words for viewers without widgets; those of the widget would follow them.
    """
    made = widget._repr_mimebundle_()
    data, metadata = made if isinstance(made, tuple) else (made, {})
    shown = {kind: each for kind, each in data.items() if kind != "text/plain"}
    display(shown, metadata=metadata, raw=True)
