"""IntraOpPool: worker threads inside the ops of a stage's runs, in the place of the session's.

TensorFlow's RunOptions have no field for it: the thread that starts a run names its pool, and an
executor of ours passes that on to the kernels, see `thread_pool.add_stage_pools`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from workbench import _native

_LOCK = threading.Lock()
_POOLS: weakref.WeakKeyDictionary[Any, weakref.WeakValueDictionary[int, IntraOpPool]] = (
    weakref.WeakKeyDictionary()
)


class IntraOpPool:
    """Threads of one pool; they end when nothing refers to it any more.

    Attributes:
      name: of the threads; the kernel shows the last 15 characters.
      threads: how many.
    """

    def __init__(self, name: str, threads: int) -> None:
        """Starts the threads.

        Args:
          name: not empty.
          threads: at least 1.
        """
        self.name = name
        self.threads = threads
        self._pool = _native.calls().workbench_new_intra_op_pool(name.encode(), threads)
        # At exit a run that is stuck may still use them.
        weakref.finalize(self, _end, self._pool, os.getpid()).atexit = False

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Has the runs that this thread starts in the `with` block use the pool."""
        use = _native.calls().workbench_use_intra_op_pool
        use(self._pool)
        try:
            yield
        finally:
            use(None)


def pool_of(session: Any, number: int, name: str, threads: int) -> IntraOpPool:
    """The one pool of a session's stages with this number.

    Args:
      session: a raw `tf.compat.v1.Session`.
      number: of the pool, from 0.
      name, threads: of a pool that has to be made.
    """
    with _LOCK:
        pools = _POOLS.setdefault(session, weakref.WeakValueDictionary())
        pool = pools.get(number)
        if pool is None:
            pool = pools[number] = IntraOpPool(name, threads)
        return pool


def _end(pool: int, process: int) -> None:
    # A forked child has the pool of its parent in memory, but not the threads.
    if os.getpid() == process:
        _native.calls().workbench_delete_intra_op_pool(pool)
