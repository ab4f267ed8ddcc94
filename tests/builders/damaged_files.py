"""Files and JSON documents with a fault: what somebody else, a disk or an editor makes of them."""

from __future__ import annotations

import contextlib
import copy
import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError

ROOM = 64 << 20
# Makes Python several times as slow.
MEASURES = "WORKBENCH_FUZZ_EXAMPLES" in os.environ
LONGEST_MESSAGE = 1000
# A whole number above it is none of a float.
_LARGE = 1e300
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "9" * 5000,
    "a\x1b[31m\u202eb\0",
    "\ud800",
    "\udcc3",
    [],
    {},
    [[]],
    {"x": 1},
    [0] * 7,
)


def damaged(document: Any, chance: random.Random) -> Any:
    """A copy of a JSON document with one to three faults, anywhere in it."""
    found = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        found = _changed(found, chance)
    return found


def _changed(document: Any, chance: random.Random) -> Any:
    held, key = _place(document, chance)
    if held is None:
        return _odd(chance)
    fault = chance.randrange(5)
    if fault == 0:
        del held[key]
    elif fault == 1 and isinstance(held, list):
        held.insert(key, copy.deepcopy(held[key]))
    elif fault == 2 and isinstance(held, dict):
        held[chance.choice(("", "x", key + "_"))] = held.pop(key)
    elif fault == 3 and isinstance(held[key], int | float) and abs(held[key]) < _LARGE:
        held[key] = chance.choice((held[key] + 1, -held[key], held[key] * 1e300, held[key] * 10**9))
    else:
        held[key] = _odd(chance)
    return document


def _odd(chance: random.Random) -> Any:
    # A copy: the next fault may change it.
    return copy.deepcopy(chance.choice(ODD))


def _place(document: Any, chance: random.Random) -> tuple[Any, Any]:
    """A list or a mapping inside the document and one of its keys; deep ones are as likely."""
    held, key = None, None
    while (
        isinstance(document, list | dict) and document and (held is None or chance.random() < 0.8)
    ):
        held = document
        key = (
            chance.randrange(len(document))
            if isinstance(document, list)
            else chance.choice(list(document))
        )
        document = held[key]
    return held, key


def damaged_bytes(content: bytes, chance: random.Random) -> bytes:
    """A copy of a file's bytes: cut off, with other bytes, with a stretch lost or twice."""
    start = chance.randrange(len(content))
    end = min(len(content), start + chance.choice((1, 2, 8, 64, 4096)))
    fault = chance.randrange(6)
    if fault == 0:
        return content[:start]
    if fault == 1:
        return content[:start] + chance.randbytes(end - start) + content[end:]
    if fault == 2:
        return content[:start] + content[end:]
    if fault == 3:
        return content[:end] + content[start:]
    if fault == 4:
        return content[:start] + bytes(end - start) + content[end:]
    # Parquet has its lengths and its schema at the end.
    last = max(0, len(content) - chance.randrange(1, 600))
    return content[:last] + chance.randbytes(1) + content[last + 1 :]


@contextlib.contextmanager
def in_one_sentence(stored: int) -> Iterator[None]:
    """Requires that what runs inside succeeds or raises an error of ours, in bounded memory.

    Args:
      stored: bytes that the file has.
    """
    if MEASURES:
        tracemalloc.start()
    try:
        yield
    except WorkbenchError as error:
        text = str(error)
        assert 0 < len(text) <= LONGEST_MESSAGE, len(text)
        assert text.isprintable() or not {"\n", "\x1b", "\u202e", "\0"} & set(text), text
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken <= ROOM + 10 * stored


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
