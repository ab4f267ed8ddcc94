"""Which of the ready nodes a thread of the cost model executor runs next."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.core.simulation.ready_nodes import ByPath


@given(st.lists(st.integers(1, 100), min_size=2, max_size=12, unique=True))
def test_what_a_thread_gives_back_takes_its_place_among_the_others(paths):
    # The first node is long and runs; the next one is short and kept; the others are long.
    first, short, *long = range(len(paths) + 1)
    path_ns = [1000, *paths]
    span_ns = np.array([10.0, 1.0, *[10.0] * len(long)])
    ready = ByPath(path_ns, span_ns, threads=1, short_ns=5.0)
    ready.add(None, [first])
    assert ready.take(0) == first
    for node in (short, *long):
        ready.add(0, [node])
    taken = [ready.take(0) for _ in paths]
    assert [path_ns[node] for node in taken if node is not None] == sorted(paths, reverse=True)
    assert ready.take(0) is None
