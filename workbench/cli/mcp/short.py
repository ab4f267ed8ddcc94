"""Short answers: what of a result an agent reads at once, and how to have more of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workbench.errors import OptionError, cut, one_line

# Of an answer.
MOST_BYTES = 2000
# How much is kept, from generous to sparse: items of an outer list, of the lists in it, and
# characters of a text. The first that fits is taken.
_SIZES = (
    *((20, 10, 400), (10, 5, 400), (6, 3, 300), (6, 2, 240), (6, 1, 200), (6, 1, 120)),
    *((4, 1, 80), (6, 0, 120), (3, 0, 80), (1, 0, 60), (0, 0, 60)),
)
_PAGE = (5, 3, 240)
# Larger numbers could be rounded to more than a float holds.
_ROUNDED = 1e300


class Results:
    """The documents of this server, by handle.

    Only the last ones are kept: a client that needs an older one asks for it again.
    """

    def __init__(self, most: int = 50) -> None:
        self._most = most
        self._count = 0
        self._kept: dict[str, Any] = {}

    def add(self, document: Any) -> str:
        """Keeps a document; returns the short answer."""
        self._count += 1
        handle = f"r{self._count}"
        self._kept[handle] = document
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return short({"handle": handle, **document})

    def more(self, handle: str, path: str, start: int) -> str:
        """A part of a document, from an item of a list on.

        Raises:
          OptionError: there is no such handle, or no such part.
        """
        if handle not in self._kept:
            raise OptionError(f"there is no result {cut(handle, 40)!r}; ask for it again")
        part = self._kept[handle]
        for name in filter(None, path.split(".")):
            inside = isinstance(part, dict) and name in part
            if not inside and not (isinstance(part, list) and name.isdecimal()):
                raise OptionError(f"{handle} has no {cut(path, 80)!r}; it has {_names(part)}")
            try:
                part = part[int(name)] if isinstance(part, list) else part[name]
            except IndexError:
                raise OptionError(f"{cut(path, 80)!r} has {len(part)} items") from None
        if not isinstance(part, list):
            return short({"value": part})
        return _page(part, start)


def short(document: dict[str, Any]) -> str:
    """A document as JSON of at most `MOST_BYTES`: long lists and texts are cut, and it says so."""
    text = ""
    for size in _SIZES:
        left_out: dict[str, int] = {}
        kept = _cut(document, size, "", left_out)
        text = _json({**kept, "left_out": left_out} if left_out else kept)
        if len(text.encode()) <= MOST_BYTES:
            return text
    # A character has four bytes at most.
    return cut(text, MOST_BYTES // 4)


def _page(items: Sequence[Any], start: int) -> str:
    """As many items as fit, from one on."""
    shown: list[Any] = []
    text = _json({"items": [], "next": None, "of": len(items)})
    for number in range(max(0, start), len(items)):
        shown.append(_cut(items[number], _PAGE, "", {}))
        behind = number + 1 if number + 1 < len(items) else None
        longer = _json({"items": shown, "next": behind, "of": len(items)})
        if len(longer.encode()) > MOST_BYTES:
            if len(shown) > 1:
                break
            longer = short({"items": shown, "next": behind, "of": len(items)})
        text = longer
    return text


def _cut(value: Any, size: tuple[int, int, int], path: str, left_out: dict[str, int]) -> Any:
    outer, inner, most = size
    if isinstance(value, dict):
        return {
            name: _cut(field, size, f"{path}.{name}" if path else name, left_out)
            for name, field in value.items()
        }
    if isinstance(value, list):
        if len(value) > outer:
            left_out[path] = len(value) - outer
        within = (inner, min(inner, 1), most)
        return [
            _cut(item, within, f"{path}.{number}", left_out)
            for number, item in enumerate(value[:outer])
        ]
    if isinstance(value, str):
        return cut(one_line(value), most)
    if isinstance(value, float) and abs(value) < _ROUNDED:
        return float(f"{value:.5g}")
    return value


def _names(part: Any) -> str:
    if isinstance(part, dict):
        return ", ".join(part)
    return f"{len(part)} items" if isinstance(part, list) else "no parts"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
