"""The words of an error as they stand in the panel."""

from __future__ import annotations

import re

# A word of its own, not the name of something.
_FIRST_WORD = re.compile(r"[a-z]+ ")


def begun(words: str) -> str:
    """The words of an error, which begin as a sentence does."""
    return words[:1].upper() + words[1:] if _FIRST_WORD.match(words) else words


def sentence(words: str) -> str:
    """The same, ended as one."""
    return begun(words) + ("" if words.endswith(".") else ".")
