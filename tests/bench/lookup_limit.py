"""The limit of a lookup: native/bench/lookup_limit.cc, compiled for this machine and called."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tests.bench.compiled import compiled

# Values and indices of each feature.
Batch = Sequence[tuple[np.ndarray, np.ndarray]]


def limit(
    batches: Sequence[Batch], tables: int, rows: int, dim: int, size: int, threads: int
) -> Callable[[], None]:
    """A call that looks the next batch up.

    Args:
      batches: what comes, over and over.
      tables, rows, dim: how many tables there are, each of them [rows, dim]; features share them
        in turns.
      size: rows of a batch.
      threads: that share its features.
    """
    library = _library()
    made = [library.limit_table(rows, dim) for _ in range(tables)]
    features = len(batches[0])
    out = [np.zeros([size, dim], np.float32) for _ in range(features)]
    at = _pointers([made[f % tables] for f in range(features)])
    to = _pointers([each.ctypes.data for each in out])
    # As offsets, which is less to read than indices.
    given = [
        [(values, np.searchsorted(index[:, 0], np.arange(size + 1))) for values, index in batch]
        for batch in batches
    ]
    read = [
        (_pointers([v.ctypes.data for v, _ in batch]), _pointers([o.ctypes.data for _, o in batch]))
        for batch in given
    ]
    pool = ThreadPoolExecutor(threads)
    parts = [features * i // threads for i in range(threads + 1)]
    state = {"next": 0}

    def look_up() -> None:
        ids, offsets = read[state["next"] % len(read)]
        state["next"] += 1
        work = [
            functools.partial(
                library.limit_look_up, parts[i], parts[i + 1], dim, size, at, ids, offsets, to
            )
            for i in range(threads)
        ]
        others = [pool.submit(each) for each in work[1:]]
        work[0]()
        for each in others:
            each.result()

    # What the pointers point to lives as long as the call does.
    look_up.kept = (given, out)  # type: ignore[attr-defined]
    return look_up


@functools.cache
def _library() -> Any:
    built = compiled("lookup_limit", "-ffast-math", "-shared", "-fPIC")
    library = ctypes.CDLL(built)
    integer = ctypes.c_int64
    library.limit_table.restype = ctypes.c_void_p
    library.limit_table.argtypes = [integer, integer]
    library.limit_look_up.restype = None
    library.limit_look_up.argtypes = [integer] * 4 + [ctypes.c_void_p] * 4
    return library


def _pointers(addresses: Sequence[int]) -> Any:
    return (ctypes.c_void_p * len(addresses))(*addresses)
