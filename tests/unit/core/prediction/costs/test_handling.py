"""What the executor takes beside the ops: literal traces, reckoned by hand."""

from __future__ import annotations

import numpy as np

from tests.builders.step_traces import US
from tests.builders.traces import START_NS, make_trace
from workbench.core.prediction.costs.handling import handling_of

TRACKS = [("Main step", "step", 0, ""), ("Inter-op 0", "inter_op", 0, "")]


def test_a_thread_that_waited_for_a_core_says_nothing_of_the_executor():
    # 40 ops of 10 µs on one thread, 2 µs from one to the next; before one of them 5 ms.
    starts = START_NS + (12 * np.arange(40) + 5_000 * (np.arange(40) >= 20)) * US
    rows = [(int(start), 10 * US, 2 * US, 0, 1, 1) for start in starts]
    trace = make_trace(rows, nodes=(("one", "Mul"),), tracks=TRACKS)
    assert handling_of(trace.events).between_ns == 2 * US
