"""Many small tensors that travel in a step of a cluster."""

from __future__ import annotations

import dataclasses

from tests.builders.cluster_traces import (
    BEGIN_NS,
    MS,
    PS,
    US,
    aligned_steps,
    partition_graphs,
    recv_stats,
    step_metadata,
    worker,
    worker_trace,
)
from tests.builders.findings import keys, of, plain
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.kinds.transfers import many_small_transfers
from workbench.core.capture.partition_edges import partition_edges
from workbench.core.cluster.merge import merge_traces
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import TraceMeta


def many(tensors: int, size: int, name: str = "v{}/read"):
    """A worker's trace whose step also gets `tensors` of `size` bytes each."""
    metadata = step_metadata(0, BEGIN_NS, 0)
    metadata.step_stats.dev_stats[0].node_stats.extend(
        recv_stats(name.format(k), PS, worker(0), size, BEGIN_NS + MS, BEGIN_NS + 1400 * US)
        for k in range(tensors)
    )
    step = StepRecord(
        number=1, client=1, start_ns=BEGIN_NS, end_ns=BEGIN_NS + 5 * MS, metadata=metadata
    )
    aligned = aligned_steps([step])
    edges = partition_edges(partition_graphs(), aligned.ops.nodes)
    ops = dataclasses.replace(aligned.ops, edges=edges)
    return build_trace([step], [], {}, TraceMeta(task=aligned.task), ops)


def test_what_they_belong_to_is_named_with_the_toggle():
    found = of(many(20, 1000), "many_small_transfers")
    assert found.title == "23 small tensors a step travel between worker 0 and others"
    assert "2 of 1 lookup, 20 of 20 variables" in found.evidence
    assert "Most are of `C1/embedding_lookup_sparse`." in found.evidence
    assert found.mend.startswith("Look `C1/embedding_lookup_sparse` up together: grouped lookups")
    assert found.toggle == "grouped" and found.gain_ns is None
    # They travel from 1 to 1.4 ms, and ids and rows from 1 to 1.701; one op runs until 1.002 ms.
    assert 0.3 * MS < found.cost_ns <= 1.3 * MS
    # The longest first.
    assert found.nodes[0] == "v0/read" and len(found.nodes) == 20


def test_lookups_that_are_grouped_need_no_toggle():
    trace = many(20, 1000)
    names = trace.nodes["name"].str.replace("embedding_lookup", "grouped_embedding_lookup")
    found = of(
        dataclasses.replace(trace, nodes=trace.nodes.assign(name=names)), "many_small_transfers"
    )
    assert found.toggle is None
    assert plain(found.mend).startswith("Let `C1/grouped_embedding_lookup_sparse`")


def test_few_or_large_tensors_are_none():
    assert "many_small_transfers" not in keys(many(16, 1000))
    assert "many_small_transfers" not in keys(many(40, 65_000))


def test_of_a_cluster_nothing_is_said_of_threads_and_cores():
    """Of one machine the same ops would be too many for its cores: both tasks' count."""
    trace = merge_traces(
        [worker_trace(k, with_edges=True, compute_ns=(9 * MS,) * 4) for k in range(2)]
    )
    assert keys(trace) == ["client_time"]
    found = find(trace)
    assert found.steps == 4 and found.trace.tracks["client"].nunique() == 2
    assert many_small_transfers.__name__ not in keys(trace)
