"""What a trace of a cluster says: clocks, time, traffic, stragglers, findings; as text and HTML."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.builders.cluster_traces import MS, worker_trace
from tests.builders.traces import unstaged_trace
from workbench.core.analysis.cluster_report import cluster_report
from workbench.core.cluster.merge import merge_traces
from workbench.errors import TraceError


def test_a_report_of_all_workers():
    slow = worker_trace(1, compute_ns=(9 * MS,) * 10, clock_ns=-50 * MS)
    merged = merge_traces([worker_trace(0, compute_ns=(2 * MS,) * 10), slow], title="Two")
    report = cluster_report(merged)
    assert report.workers == ["worker 0", "worker 1"] and repr(report).startswith("ClusterReport")
    assert report.straggler.task == "worker 1" and not report.findings
    assert report.clocks["task"].tolist() == ["worker 0", "worker 1"]
    shown, _ = report._repr_mimebundle_()
    text = shown["text/plain"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks, against that of ps 0" in text and "worker 1  −50.0 ms" in text
    assert "worker 0  ps 0 → worker 0     1  6.4 kB" in text
    assert "worker 1 straggles" in text
    assert "worker 1 straggles" in shown["text/html"] and "<table" in shown["text/html"]


def test_a_report_has_the_chain_of_each_worker_by_task_and_the_findings_of_the_slowest():
    slow = worker_trace(1, with_edges=True, compute_ns=(9 * MS,) * 10)
    quick = worker_trace(0, with_edges=True, compute_ns=(2 * MS,) * 10)
    report = cluster_report(merge_traces([quick, slow], title="Two"))
    assert [path.client for path in report.paths] == ["worker 0", "worker 1"]
    assert [found.key for found in report.findings] == ["client_time"]
    text = report._repr_mimebundle_()[0]["text/plain"].replace("\N{NO-BREAK SPACE}", " ")
    assert "The longest chain of a step, mean" in text
    # 1 and 9 of 12 ms, from one step to the next.
    assert re.search(r"worker 1 +op +worker 1 +10\.0 ms +84 %", text), text
    assert re.search(r"worker 1 +travel +worker 1 → ps 0 +0\.\d+ ms", text), text


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
