"""Stragglers: none, always the same task, a rotating one; and when nothing is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.cluster_traces import MS, worker_trace
from workbench.core.cluster.merge import merge_traces
from workbench.core.cluster.straggler import NONE, ROTATING, SAME, UNKNOWN, straggler, straggler_of


def test_one_that_is_always_slower_is_named():
    found = straggler_of({"worker 0": np.full(20, 10), "worker 1": np.full(20, 15)})
    assert (found.kind, found.task) == (SAME, "worker 1")
    assert found.slowest == {"worker 0": 0, "worker 1": 20}
    assert "20 of 20 times it is this task's" in found.words


def test_two_that_are_slow_in_turns_rotate():
    slow = np.where(np.arange(20) % 2, 20, 10)
    found = straggler_of({"worker 0": slow, "worker 1": slow[::-1]})
    assert (found.kind, found.task) == (ROTATING, "")
    assert "worker 0 10, worker 1 10" in found.words


def test_small_differences_make_no_straggler():
    found = straggler_of({"worker 0": np.full(20, 100), "worker 1": np.full(20, 119)})
    assert found.kind == NONE and "No straggler" in found.words


@pytest.mark.parametrize(("workers", "rounds"), [(1, 50), (2, 7)])
def test_too_few_workers_or_rounds_have_no_verdict(workers, rounds):
    found = straggler_of({f"worker {i}": np.full(rounds, 10 + 9 * i) for i in range(workers)})
    assert found.kind == UNKNOWN and f"{workers} workers and {rounds} rounds" in found.words


@given(st.integers(2, 6), st.integers(8, 60), st.randoms(use_true_random=False))
def test_only_the_slowest_is_ever_named(workers, rounds, random):
    own = {
        f"worker {i}": np.array([random.randint(1, 99) for _ in range(rounds)])
        for i in range(workers)
    }
    found = straggler_of(own)
    assert sum(found.slowest.values()) <= rounds
    if found.kind == SAME:
        assert found.slowest[found.task] == max(found.slowest.values())
        assert found.slowest[found.task] > rounds * 0.2 / workers


def test_a_merged_trace_has_a_verdict():
    slow = worker_trace(1, compute_ns=(9 * MS,) * 12)
    found = straggler(merge_traces([worker_trace(0, compute_ns=(2 * MS,) * 12), slow]))
    assert (found.kind, found.task, found.rounds) == (SAME, "worker 1", 12)
