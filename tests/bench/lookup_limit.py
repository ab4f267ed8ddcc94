"""The limit of lookups and updates: native/bench/lookup_limit.cc, compiled and called."""

from __future__ import annotations

import ctypes
import functools
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tests.bench.compiled import compiled

# Values and indices of each feature.
Batch = Sequence[tuple[np.ndarray, np.ndarray]]


def limit(
    batches: Sequence[Batch], tables: int, rows: int, dim: int, size: int, threads: int, way: str
) -> Callable[[], None]:
    """A call that looks the next batch up, and trains on it.

    Args:
      batches: what comes, over and over.
      tables, rows, dim: how many tables there are, each of them [rows, dim]; features share them
        in turns.
      size: rows of a batch.
      threads: that share its features.
      way: "forward", or the optimizer by which tables are updated, "SGD" or "Adagrad".
    """
    library = _library()
    made = [library.limit_table(rows, dim) for _ in range(tables)]
    features = len(batches[0])
    out = [np.zeros([size, dim], np.float32) for _ in range(features)]
    at = _pointers([made[f % tables] for f in range(features)])
    to = _pointers([each.ctypes.data for each in out])
    squares = None
    if way == "Adagrad":
        kept = [library.limit_table(rows, dim) for _ in range(tables)]
        squares = _pointers([kept[f % tables] for f in range(features)])
    upstream = np.full([size, dim], 1e-3, np.float32)
    grads = _pointers([upstream.ctypes.data] * features)
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

    def work_on(begin: int, end: int, ids: Any, offsets: Any) -> None:
        library.limit_look_up(begin, end, dim, size, at, ids, offsets, to)
        if way != "forward":
            library.limit_update(begin, end, dim, size, at, squares, ids, offsets, grads)

    def step() -> None:
        ids, offsets = read[state["next"] % len(read)]
        state["next"] += 1
        others = [
            pool.submit(work_on, parts[i], parts[i + 1], ids, offsets) for i in range(1, threads)
        ]
        work_on(parts[0], parts[1], ids, offsets)
        for each in others:
            each.result()

    # What the pointers point to lives as long as the call does.
    step.kept = (given, out, upstream)  # type: ignore[attr-defined]
    return step


def read_rates(threads: Sequence[int]) -> list[float]:
    """Bytes a second that so many threads together read of memory that is in no cache: medians."""
    library = _library()
    # More than caches hold; a table is in huge pages.
    count = 1 << 26
    floats = library.limit_table(count, 1)
    rates: list[list[float]] = [[] for _ in threads]
    try:
        with ThreadPoolExecutor(max(threads)) as pool:
            for _ in range(15):
                for number, found in zip(threads, rates, strict=True):
                    each = count // number
                    begin = time.perf_counter()
                    starts = [floats + 4 * each * i for i in range(number)]
                    list(pool.map(library.limit_read, starts, [each] * number))
                    found.append(4 * each * number / (time.perf_counter() - begin))
    finally:
        library.limit_free(floats)
    return [float(np.median(found)) for found in rates]


@functools.cache
def _library() -> Any:
    # Short loops become vector instructions only where they are not unrolled before.
    flags = ["-ffast-math", "--param=max-completely-peel-times=8", "-shared", "-fPIC"]
    if platform.machine() == "x86_64":
        flags.append("-mprefer-vector-width=512")
    built = compiled("lookup_limit", *flags)
    library = ctypes.CDLL(built)
    integer = ctypes.c_int64
    library.limit_table.restype = ctypes.c_void_p
    library.limit_table.argtypes = [integer, integer]
    library.limit_free.restype = None
    library.limit_free.argtypes = [ctypes.c_void_p]
    library.limit_read.restype = ctypes.c_float
    library.limit_read.argtypes = [ctypes.c_void_p, integer]
    library.limit_look_up.restype = None
    library.limit_look_up.argtypes = [integer] * 4 + [ctypes.c_void_p] * 4
    library.limit_update.restype = None
    library.limit_update.argtypes = [integer] * 4 + [ctypes.c_void_p] * 5
    return library


def _pointers(addresses: Sequence[int]) -> Any:
    return (ctypes.c_void_p * len(addresses))(*addresses)
