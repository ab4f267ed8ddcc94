"""Where the time of a step goes; its parts sum to it."""

from __future__ import annotations

import pytest

from tests.builders.cluster_traces import MS, US, worker_trace
from tests.builders.traces import staged_trace
from workbench.core.cluster.merge import merge_traces
from workbench.core.cluster.step_split import PARTS, step_split


def test_a_step_computes_and_waits_for_the_ps():
    trace = worker_trace()
    split = step_split(trace)
    assert split["client"].tolist() == ["worker 0", "worker 0"]
    assert (split[list(PARTS)].sum(axis=1) == split["dur_ns"]).all()
    first = split.iloc[0]
    # Ids 1 ms and the dense part 2 ms; an op ends 2 µs after its kernel.
    assert first["compute_ns"] == 3 * MS + 4 * US
    # The dense part was ready 50 µs before it ran.
    assert first["queue_ns"] == 50 * US
    # Ids to rows: 1.002 to 1.701; the gradient, until the ps has applied it: 0.498, and 0.002.
    error = trace.meta.clock_error_ns["ps 0"]
    assert abs(first["ps_ns"] - (699 * US + 500 * US)) <= error + 100 * US
    assert first["stage_ns"] == first["token_ns"] == 0 and first["other_ns"] > 0


def test_each_worker_of_a_merged_trace_has_its_own():
    merged = merge_traces([worker_trace(0), worker_trace(1, compute_ns=(5 * MS, 6 * MS))])
    split = step_split(merged)
    assert (split[list(PARTS)].sum(axis=1) == split["dur_ns"]).all()
    slow = split[split["client"] == "worker 1"]
    assert slow["compute_ns"].tolist() == [6 * MS + 4 * US, 7 * MS + 4 * US]


def test_a_step_that_waits_for_its_stage():
    split = step_split(staged_trace())
    assert split["stage_ns"].iloc[0] == pytest.approx(MS, abs=30 * US)
    assert (split[list(PARTS)].sum(axis=1) == split["dur_ns"]).all()


def test_waiting_for_the_token_of_a_synchronous_step():
    trace = worker_trace()
    trace.nodes.loc[trace.nodes["op"] == "SparseApplyAdagrad", "op"] = "QueueDequeueV2"
    assert (step_split(trace)["token_ns"] == 202 * US).all()
