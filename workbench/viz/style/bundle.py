"""Joins ES modules of `static/` into one by their own imports, without a bundler.

A module imports by relative path and by name: `import { a, b } from "../shared/dom.js";`. In what
is joined all share one scope, so no two modules have a top-level name in common.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "static"
# An import with the blank lines behind it: the imported names, the path of the module.
IMPORT = re.compile(r'^import \{([\w,\s]+)\} from "([^"\n]+)";\n+', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


def modules_of(entries: Iterable[str]) -> dict[str, str]:
    """The modules that some are made of, and those themselves.

    Args:
      entries: paths below `static/`.

    Returns:
      The text of each module by its path, once, behind those that it imports.
    """
    texts: dict[str, str] = {}
    seen: set[str] = set()

    def follow(path: str) -> None:
        if path in seen:
            return
        seen.add(path)
        text = (STATIC / path).read_text("utf-8")
        for _, imported in IMPORT.findall(text):
            follow(posixpath.normpath(posixpath.join(posixpath.dirname(path), imported)))
        texts[path] = text

    for entry in entries:
        follow(entry)
    return texts


def joined(entries: Iterable[str], end: str = "") -> str:
    """One module without imports, comments and indentation.

    Args:
      entries: paths below `static/`.
      end: what stands at its end, for example its exports.
    """
    return _joined(tuple(modules_of(entries).values()), end)


@functools.lru_cache(maxsize=8)
def _joined(texts: tuple[str, ...], end: str) -> str:
    text = EXPORT.sub("", "\n".join(IMPORT.sub("", text) for text in texts))
    return _INDENT.sub("", _COMMENT.sub("", text)) + end
