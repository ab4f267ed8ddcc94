"""How long ops run with a core each: literal traces, reckoned by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.step_traces import US
from tests.builders.traces import START_NS, make_trace
from workbench.core.prediction.handling import handling_of
from workbench.core.prediction.op_times import with_own_times
from workbench.core.trace.trace import Trace

NODES = (("one", "Mul"), ("two", "Sum"), ("three", "Neg"))


def threads(count: int) -> list[tuple[str, str, int, str]]:
    return [
        ("Main step", "step", 0, ""),
        *((f"Inter-op {i}", "inter_op", i, "") for i in range(count)),
    ]


def own_us(trace: Trace) -> list[float]:
    found = with_own_times(trace, trace.events, np.ones(len(trace.nodes), bool))
    return (found.sort_values(["track", "start_ns"])["own_ns"] / US).tolist()


def side_by_side(cores: int) -> Trace:
    """Three ops that begin together, of 10, 20 and 30 µs."""
    events = [(START_NS, us * US, 0, i, 1 + i, 1) for i, us in enumerate((10, 20, 30))]
    return make_trace(
        events,
        nodes=NODES,
        tracks=threads(3),
        runs=[(0, 1, START_NS, START_NS + 30 * US)],
        cores=cores,
    )


def test_ops_that_share_cores_have_each_its_part_of_them():
    # On one core the first 10 µs are a third each, the next 10 a half.
    thirds = [10 / 3, 10 / 3 + 5, 10 / 3 + 15]
    assert own_us(side_by_side(cores=1)) == pytest.approx(thirds)
    assert sum(own_us(side_by_side(cores=1))) == pytest.approx(30)


def test_ops_with_a_core_each_are_as_long_as_they_were():
    assert own_us(side_by_side(cores=3)) == [10, 20, 30]


def test_a_thread_that_waited_for_a_core_says_nothing_of_the_executor():
    # 40 ops of 10 µs on one thread, 2 µs from one to the next; before one of them 5 ms.
    starts = START_NS + (12 * np.arange(40) + 5_000 * (np.arange(40) >= 20)) * US
    rows = [(int(start), 10 * US, 2 * US, 0, 1, 1) for start in starts]
    trace = make_trace(rows, nodes=NODES, tracks=threads(1))
    assert handling_of(trace.events).between_ns == 2 * US
