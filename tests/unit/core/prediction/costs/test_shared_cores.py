"""How long ops that split their work take with all cores, from steps in which they shared them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.core.prediction.costs.shared_cores import SharedCores, shared_cores

# A split op from 0 to 10, one beside another op from 20 to 40, two side by side from 50 to 60.
EVENTS = pd.DataFrame(
    [(0, 0, 10), (0, 20, 20), (1, 20, 20), (0, 50, 10), (1, 50, 10)],
    columns=["track", "start_ns", "dur_ns"],
)
SPLITS = np.array([True, True, False, True, True])


def shared(busy_ns: float | None, *, cores: int = 2, events: pd.DataFrame = EVENTS) -> SharedCores:
    return shared_cores(events, SPLITS, cores=cores, busy_ns=busy_ns)


def test_the_cpu_time_says_how_many_cores_an_op_has_alone():
    # Side by side all is busy: 2 × 20 + 2 × 10. What is left is the 10 of the first op.
    assert shared(60 + 15).split_cores == pytest.approx(1.5, rel=1e-4)
    assert shared(60 + 20).split_cores == pytest.approx(2, rel=1e-4)
    assert shared(60 + 10).split_cores == shared(30).split_cores == 1


def test_what_shared_the_cores_would_take_less_alone():
    assert shared(60 + 20).alone_ns == pytest.approx([10, 10, 20, 5, 5], rel=1e-4)
    assert shared(60 + 15).alone_ns == pytest.approx([10, 20 / 1.5, 20, 10 / 1.5, 10 / 1.5], 1e-4)


def test_threads_that_look_for_work_are_busy_too():
    assert shared(500).split_cores == pytest.approx(2, rel=1e-4)


def test_with_a_core_for_each_nothing_is_taken_from_any():
    assert shared(60 + 10, cores=8).alone_ns == pytest.approx(EVENTS["dur_ns"])


def test_where_that_is_not_known_ops_take_what_they_took():
    found = shared(None)
    assert found.split_cores == 1
    assert found.alone_ns.tolist() == EVENTS["dur_ns"].tolist()


def test_ops_that_share_a_core_have_each_its_part_of_it():
    found = shared(80, cores=1)
    assert found.split_cores == 1
    assert found.alone_ns == pytest.approx([10, 10, 10, 5, 5])
    # On one core the first 10 are a third each, the next 10 a half.
    beside = pd.DataFrame([(i, 0, 10 + 10 * i) for i in range(3)], columns=EVENTS.columns)
    found = shared_cores(beside, np.zeros(3, bool), cores=1, busy_ns=None)
    assert found.alone_ns == pytest.approx([10 / 3, 10 / 3 + 5, 10 / 3 + 15])
    found = shared_cores(beside, np.zeros(3, bool), cores=3, busy_ns=None)
    assert found.alone_ns.tolist() == [10, 20, 30]


def test_what_runs_inside_of_another_op_counts_once():
    inside = pd.concat(
        [EVENTS, pd.DataFrame([(0, 2, 3)], columns=EVENTS.columns)], ignore_index=True
    )
    found = shared_cores(inside, np.append(SPLITS, False), cores=2, busy_ns=60 + 15)
    assert found.split_cores == pytest.approx(1.5, rel=1e-4)


def test_an_op_that_was_never_alone_is_not_known_to_use_more_than_one_core():
    beside = EVENTS.drop(0).reset_index(drop=True)
    found = shared_cores(beside, SPLITS[1:], cores=2, busy_ns=500)
    assert found.split_cores == 1
