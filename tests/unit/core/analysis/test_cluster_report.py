"""What a trace of a cluster says: clocks, time, traffic, stragglers, findings; as text and HTML."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.cluster_traces import (
    BEGIN_NS,
    MS,
    PS,
    US,
    aligned_steps,
    recv_stats,
    step_metadata,
    worker,
    worker_trace,
)
from tests.builders.traces import unstaged_trace
from workbench.core.analysis.cluster_report import cluster_report
from workbench.core.analysis.findings.transfers import many_small_transfers
from workbench.core.cluster.merge import merge_traces
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import TraceMeta
from workbench.errors import TraceError


def many(tensors: int, size: int):
    """A worker's trace whose step also gets so many variables of a size."""
    metadata = step_metadata(0, BEGIN_NS, 0)
    metadata.step_stats.dev_stats[0].node_stats.extend(
        recv_stats(f"v{k}/read", PS, worker(0), size, BEGIN_NS + MS, BEGIN_NS + 1400 * US)
        for k in range(tensors)
    )
    step = StepRecord(
        number=1, client=1, start_ns=BEGIN_NS, end_ns=BEGIN_NS + 5 * MS, metadata=metadata
    )
    aligned = aligned_steps([step])
    return build_trace([step], [], {}, TraceMeta(task=aligned.task), aligned.ops)


def test_many_small_tensors_are_a_finding_that_names_what_they_belong_to():
    found = many_small_transfers(many(20, 1000), "worker 0")
    assert found.key == "many_small_transfers"
    assert found.title == "23 small tensors a step travel between worker 0 and others"
    assert "2 of 1 lookup, 20 of 20 variables" in found.evidence
    assert "Most are of `C1/embedding_lookup_sparse`." in found.evidence
    assert "wb.pack_transfers(config)" in found.mend and found.gain_ns is None
    # They travel from 1 to 1.4 ms, and ids and rows from 1 to 1.701; one op runs until 1.002 ms.
    assert 0 < found.cost_ns <= 1.3 * MS


def test_few_or_large_tensors_are_none():
    assert many_small_transfers(many(16, 1000), "worker 0") is None
    assert many_small_transfers(many(40, 65_000), "worker 0") is None


def test_a_report_of_all_workers():
    slow = worker_trace(1, compute_ns=(9 * MS,) * 10, clock_ns=-50 * MS)
    merged = merge_traces([worker_trace(0, compute_ns=(2 * MS,) * 10), slow], title="Two")
    report = cluster_report(merged)
    assert report.workers == ["worker 0", "worker 1"] and repr(report).startswith("ClusterReport")
    assert report.straggler.task == "worker 1" and not report.found
    assert report.clocks["task"].tolist() == ["worker 0", "worker 1"]
    shown, _ = report._repr_mimebundle_()
    text = shown["text/plain"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks, against that of ps 0" in text and "worker 1  −50.0 ms" in text
    assert "worker 0  ps 0 → worker 0     1  6.4 kB" in text
    assert "worker 1 straggles" in text
    assert "worker 1 straggles" in shown["text/html"] and "<table" in shown["text/html"]


def test_what_is_missing_is_said():
    trace = worker_trace(0)
    meta = dataclasses.replace(trace.meta, lost_transfers=3, left_out={"ops of ps 1": 7})
    text = cluster_report(dataclasses.replace(trace, meta=meta))._repr_mimebundle_()[0][
        "text/plain"
    ]
    assert "3 transfers are missing, which servers did not record" in text
    assert "Left out: 7 ops of ps 1." in text


def test_a_trace_of_one_task_has_no_report():
    with pytest.raises(TraceError, match="'All off' has no step of a cluster; expected one that"):
        cluster_report(unstaged_trace())
