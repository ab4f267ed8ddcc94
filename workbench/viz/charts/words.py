"""Words of a figure: plotly reads tags in every text, so what others named is escaped here."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable

from workbench.viz.comparison.chart import shown_label as shown_label
from workbench.viz.style.plain_text import plain

BREAK = "<br>"
# They stand for the ends of strong words while lines are made, one character each.
_OPEN, _CLOSE = "\ue000", "\ue001"
TITLE, _NAME = 72, 30
_JOINT = " + "


def named(text: str) -> str:
    """A name as words of a figure, whatever letters it has."""
    return html.escape(plain(text), quote=False)


def setting(label: str) -> str:
    """The name of a variant or setting."""
    return named(shown_label(label))


def setting_lines(label: str) -> str:
    """The name of a variant or setting in lines, each as many of its toggles as it has room for."""
    lines: list[str] = []
    for toggle in shown_label(label).split(_JOINT):
        if lines and len(lines[-1]) + len(toggle) <= _NAME:
            lines[-1] += f"{_JOINT}{toggle}"
        else:
            lines.append(toggle)
    return f"{_JOINT}{BREAK}".join(named(line) for line in lines)


def in_lines(text: str, wide: int = _NAME) -> str:
    """A text in lines of at most `wide` letters, escaped."""
    lines = textwrap.wrap(plain(text), wide, break_long_words=False, break_on_hyphens=False)
    return BREAK.join(html.escape(line, quote=False) for line in lines)


def headline(pieces: Iterable[tuple[str, bool]]) -> str:
    """A sentence of (text, strong) pieces, in lines."""
    text = "".join(
        f"{_OPEN}{plain(text)}{_CLOSE}" if strong else plain(text) for text, strong in pieces
    )
    return _in_strong_lines(text, TITLE)


def narrower(headline: str, wide: int) -> str:
    """The same headline in lines of at most `wide` letters."""
    text = headline.replace(BREAK, " ").replace("<b>", _OPEN).replace("</b>", _CLOSE)
    return _in_strong_lines(html.unescape(text), wide)


def _in_strong_lines(text: str, wide: int) -> str:
    lines, strong = [], False
    for line in textwrap.wrap(text, wide, break_long_words=False, break_on_hyphens=False):
        line = (_OPEN if strong else "") + line
        strong = line.rfind(_OPEN) > line.rfind(_CLOSE)
        lines.append(html.escape(line + (_CLOSE if strong else ""), quote=False))
    return BREAK.join(lines).replace(_OPEN, "<b>").replace(_CLOSE, "</b>")


def hover(*lines: str) -> str:
    """The words of a hover card: what is not empty, a line each; the first is strong."""
    first, *rest = (line for line in lines if line)
    return BREAK.join([f"<b>{first}</b>", *rest])
