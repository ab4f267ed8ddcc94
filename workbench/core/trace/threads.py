"""Ops of main steps → tracks, one for each thread that ran them, and rows for those that waited."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from workbench.core.trace.intervals import sub_rows
from workbench.core.trace.op_columns import OpColumns

# Kinds of track in their order: the thread that called the step, a pool's, none.
_CALLER, _POOL, _NO_THREAD = range(3)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ThreadTracks:
    """Where the ops of main steps are drawn.

    Attributes:
      track: int64 [ops], counted through `names`.
      names: of the tracks, in their order.
      known: whether the tracer knows the threads; if not, the tracks are one way to draw the ops.
      system_names: what the operating system calls the thread of a track, by the track's name.
    """

    track: np.ndarray
    names: tuple[str, ...]
    known: bool
    system_names: Mapping[str, str]


def thread_tracks(ops: OpColumns, callers: Mapping[int, str]) -> ThreadTracks:
    """Gives each op a track, so that no two on one track overlap.

    A thread runs one op at a time. An asynchronous op (a transfer, a call of a function, an
    iterator) goes on without its thread, which runs others meanwhile. A node that did so is drawn
    on tracks of its own each time it runs. Where the tracer names no threads, all ops are drawn on
    as few tracks as hold them: ops that overlap ran on different threads.

    Args:
      ops: by start.
      callers: name of the client that each thread is, by the operating system's id.
    """
    known = bool(ops.thread.any())
    found, different = pd.factorize(ops.thread if known else ops.thread[:0])
    ids = [int(thread) for thread in different]
    row = found.astype(np.int64) if known else np.zeros(len(ops.run), np.int64)
    loose = _asynchronous(ops, row) if known else np.ones(len(row), bool)
    row[loose] = len(ids) + sub_rows(ops.start_ns[loose], ops.end_ns[loose]).astype(np.int64)
    busy = np.bincount(row, weights=ops.end_ns - ops.start_ns)
    kinds = [_CALLER if thread in callers else _POOL for thread in ids]
    kinds += [_NO_THREAD if known else _POOL] * (len(busy) - len(ids))

    def place(number: int) -> tuple[int, float]:
        # Ids of threads say nothing: the busiest of a pool comes first.
        return kinds[number], number if kinds[number] == _NO_THREAD else -busy[number]

    order = sorted(np.flatnonzero(np.bincount(row)).tolist(), key=place)
    track = np.zeros(len(busy), np.int64)
    track[order] = np.arange(len(order))
    of_rows = [ids[number] if number < len(ids) else 0 for number in order]
    names = _names(
        [kinds[number] for number in order], [callers.get(thread, "") for thread in of_rows]
    )
    system_names = {
        name: ops.thread_names[thread]
        for name, thread in zip(names, of_rows, strict=True)
        if ops.thread_names.get(thread)
    }
    return ThreadTracks(track=track[row], names=names, known=known, system_names=system_names)


def _names(kinds: Sequence[int], callers: Sequence[str]) -> tuple[str, ...]:
    """Names of tracks, counted within each kind; a caller's is that of its client."""
    of_pool, of_none = itertools.count(), itertools.count()
    return tuple(
        f"{caller} ops"
        if kind == _CALLER
        else f"Inter-op {next(of_pool)}"
        if kind == _POOL
        else f"Async {next(of_none)}"
        for kind, caller in zip(kinds, callers, strict=True)
    )


def _asynchronous(ops: OpColumns, row: np.ndarray) -> np.ndarray:
    """Ops of the nodes that some time did not keep their thread, bool [ops].

    Of two that overlap on one thread one does not hold it: the longer one, which either contains
    the other or waited for something.
    """
    asynchronous = np.zeros(len(ops.nodes), bool)
    # Stable, so by start within each thread. Of 16 bits, because that is sorted in linear time.
    row = row.astype(np.uint16)
    order = np.argsort(row, kind="stable")
    row, node = row[order], ops.node[order]
    start, end = ops.start_ns[order], ops.end_ns[order]
    while True:
        overlap = np.flatnonzero((row[1:] == row[:-1]) & (end[:-1] > start[1:]))
        if not len(overlap):
            return asynchronous[ops.node]
        longer = (end - start)[overlap + 1] > (end - start)[overlap]
        asynchronous[node[overlap + longer]] = True
        kept = ~asynchronous[node]
        row, node, start, end = row[kept], node[kept], start[kept], end[kept]
