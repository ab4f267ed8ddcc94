"""Names of the buffers of functions, lent again when nothing uses them any more.

An eager op stays in memory with each name that it was run on, and so does the buffer: a process
that stages one model after the other would keep all of them.
"""

from __future__ import annotations

import collections
import itertools
import os
import weakref

_NUMBERS = itertools.count()
# By what a buffer keeps for good: its stage, its capacity and the dtypes of its items.
_Kind = tuple[str, int, tuple[str, ...]]
_FREE: collections.defaultdict[_Kind, list[str]] = collections.defaultdict(list)


def lend_name(kind: _Kind) -> str:
    """A name that no other user has now; see `give_back_with`.

    Args:
      kind: stage, capacity and dtypes of the buffer.
    """
    free = _FREE[kind]
    return free.pop() if free else f"{os.getpid()}-{next(_NUMBERS)}/{kind[0]}"


def give_back_with(user: object, kind: _Kind, name: str) -> None:
    """Has a lent name be free when `user` is no more."""
    weakref.finalize(user, _FREE[kind].append, name).atexit = False
