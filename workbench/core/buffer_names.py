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
# By stage and capacity, which a buffer keeps.
_FREE: collections.defaultdict[tuple[str, int], list[str]] = collections.defaultdict(list)


def lend_name(stage: str, capacity: int) -> str:
    """A name that no other user has now; see `give_back_with`."""
    free = _FREE[stage, capacity]
    return free.pop() if free else f"{os.getpid()}-{next(_NUMBERS)}/{stage}"


def give_back_with(user: object, stage: str, capacity: int, name: str) -> None:
    """Has a lent name be free when `user` is no more."""
    weakref.finalize(user, _FREE[stage, capacity].append, name).atexit = False
