"""Sentences of a page of Markdown, without code, tables and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_HEADING = re.compile(r"^#{1,6} .*$", re.M)
_TABLE = re.compile(r"^\|.*$", re.M)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+", re.M)
_TAG = re.compile(r"</?[a-z][^>]*>")
# A period, question or exclamation mark, then white space; a colon before a list ends nothing.
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9`…*_])")
_NO_END = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Fig|No|cf)\.$")
_WORD = re.compile(r"[^\W_]+(?:['’.\-/_:=+×][^\W_]+)*")


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, each on one line; what stands in backticks counts as one word."""
    for pattern in (_FENCE, _COMMENT, _HEADING, _TABLE, _PICTURE, _TAG):
        page = pattern.sub("\n", page)
    page = _CODE.sub("code", _LINK.sub(r"\1", page))
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", page)):
        text = " ".join(paragraph.replace("**", "").split())
        before = ""
        for part in _END.split(text):
            before = f"{before} {part}".strip()
            if not _NO_END.search(before):
                if words(before):
                    yield before
                before = ""
        if before:
            yield before


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return len(_WORD.findall(sentence))
