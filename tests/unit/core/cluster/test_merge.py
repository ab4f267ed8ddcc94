"""Traces of workers → one on the clock of their parameter server."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.cluster_traces import MS, US, worker_trace
from tests.builders.findings import with_fusable
from tests.builders.traces import unstaged_trace
from workbench.core.cluster.merge import merge_traces
from workbench.core.cluster.traffic import transfers_table
from workbench.core.trace.trace import load_trace
from workbench.errors import TraceError


def two_workers():
    """The clock of worker 1 is 80 ms behind that of the ps, that of worker 0 50 ms."""
    return [
        worker_trace(0, skew_ns=50 * MS, clock_ns=-50 * MS),
        worker_trace(1, skew_ns=80 * MS, clock_ns=-80 * MS, numbers=(2, 5)),
    ]


def test_all_tasks_are_on_the_clock_of_the_ps():
    merged = merge_traces(two_workers(), title="both")
    assert merged.meta.task == "ps 0" and merged.meta.title == "both"
    offsets, errors = merged.meta.clock_offset_ns, merged.meta.clock_error_ns
    assert abs(offsets["worker 0"] + 50 * MS) <= errors["worker 0"] <= 201 * US
    assert abs(offsets["worker 1"] + 80 * MS) <= errors["worker 1"] <= 201 * US
    # Both began at the same moment.
    first = merged.steps().groupby("track")["start_ns"].min()
    assert abs(first.iloc[0] - first.iloc[1]) <= sum(errors.values())


def test_tracks_say_where_and_for_whom():
    tracks = merge_traces(two_workers()).tracks
    inter_op = tracks[tracks["kind"] == "inter_op"]
    assert list(zip(inter_op["task"], inter_op["client"], strict=True)) == [
        ("worker 0", "worker 0"),
        ("ps 0", "worker 0"),
        ("worker 1", "worker 1"),
        ("ps 0", "worker 1"),
    ]


def test_steps_keep_their_numbers_and_sends_their_recvs():
    merged = merge_traces(two_workers())
    numbers = merged.steps().groupby("track")["number"].apply(list)
    assert sorted(numbers) == [[1, 2], [2, 5]]
    table = transfers_table(merged)
    assert len(table) == 12 and (table["sent_ns"] <= table["end_ns"]).all()
    assert table.groupby("client").size().to_dict() == {"worker 0": 6, "worker 1": 6}


def test_a_node_of_the_ps_is_one(tmp_path):
    merged = merge_traces(two_workers())
    assert not merged.nodes.duplicated(["name", "op", "device"]).any()
    assert (merged.nodes["op"] == "GatherV2").sum() == 1
    merged.save(tmp_path / "merged.parquet")
    read = load_trace(tmp_path / "merged.parquet")
    assert read.transfers.equals(merged.transfers) and len(read.events) == 16


def test_what_is_fusable_stays_known():
    one, other = two_workers()
    names = other.nodes["name"].tolist()
    merged = merge_traces([one, with_fusable(other, part=("lookup", *names))])
    of_other = merged.nodes["device"].str.startswith("/job:worker/replica:0/task:1")
    assert of_other.any() and set(merged.nodes["fusable"][of_other]) == {"lookup"}
    assert merged.meta.not_fusable == {} and merge_traces([one, other]).meta.not_fusable is None


def test_what_cannot_be_merged_is_refused():
    one, other = two_workers()
    with pytest.raises(TraceError, match="no trace to merge"):
        merge_traces([])
    with pytest.raises(TraceError, match="'All off' is of one task alone"):
        merge_traces([unstaged_trace()])
    with pytest.raises(TraceError, match="two traces are of worker 0"):
        merge_traces([one, one])
    lonely = dataclasses.replace(other, meta=dataclasses.replace(other.meta, clock_offset_ns={}))
    with pytest.raises(TraceError, match="worker 0 has ps 0; worker 1 has none"):
        merge_traces([one, lonely])


def test_a_clock_that_is_known_too_little_is_refused():
    one, other = two_workers()
    vague = dataclasses.replace(one.meta, clock_error_ns={"ps 0": 3 * MS})
    with pytest.raises(TraceError, match=r"ps 0 is known to ±3\.0.ms, and the shortest"):
        merge_traces([dataclasses.replace(one, meta=vague), other])
