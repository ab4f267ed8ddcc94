"""Results with several numbers of intra-op threads, which a process can have one of."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tensorflow"])


def require_same_bits(of: Callable[[], Sequence[Any]], counts: Sequence[int] = (1, 2, 5)) -> None:
    """Requires that a function of a module returns the same arrays whatever the threads."""
    with ProcessPoolExecutor(2, mp_context=_PROCESSES, max_tasks_per_child=1) as processes:
        first, *others = processes.map(_returned, [of] * len(counts), counts)
    assert len(first) > 0
    for other in others:
        for one, another in zip(first, other, strict=True):
            np.testing.assert_array_equal(one, another)


def _returned(of: Callable[[], Sequence[Any]], threads: int) -> Sequence[Any]:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    return of()
