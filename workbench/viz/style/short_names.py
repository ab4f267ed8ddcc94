"""Short names that tell things of one kind apart, where there is no room for the names in full."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FOLDERS = re.compile(r"^.*/")
_WORD = re.compile(r"[^_./:-]+[_./:-]*|[_./:-]+")


def told_apart(names: Sequence[str], most: int) -> list[str]:
    """For each name the part that no other has, with "…" for what is left out.

    Args:
      names: different names, such as ["smart_stage_input", "smart_stage"].
      most: most characters of a result, at least 8.

    Returns:
      Different texts, such as ["…input", "…stage"]; names that fit stay as they are.
    """
    if all(len(name) <= most for name in names):
        return list(names)
    words = [_WORD.findall(name) for name in names]
    first = _shared(words)
    # one that is the beginning of the others keeps its last word
    ends = ["".join(each[first:] or each[-1:]) for each in words]
    short = [_cut(f"…{end}" if first else end, most) for end in ends]
    if len(set(short)) == len(short):
        return short
    return [f"{i} {_cut(text, most - len(f'{i} '))}" for i, text in enumerate(short, 1)]


def without_folders(source: str) -> str:
    """A line of code, "/home/me/model/train.py:7 build", by its file alone: "train.py:7 build"."""
    return _FOLDERS.sub("", source)


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with."""
    if len(words) < 2:
        return 0
    shared = min(map(len, words))
    while len({tuple(word.rstrip("_./:-") for word in each[:shared]) for each in words}) > 1:
        shared -= 1
    return shared


def _cut(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
