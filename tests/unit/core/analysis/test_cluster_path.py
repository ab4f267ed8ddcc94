"""The critical path of a cluster's trace: over tasks, through what travels, of one worker."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.cluster_traces import MS, US, worker_trace
from tests.builders.critical_paths import three_steps
from workbench.core.analysis.alignment import align
from workbench.core.analysis.critical_path import critical_path
from workbench.core.cluster.client import event_rows
from workbench.core.cluster.merge import merge_traces
from workbench.core.cluster.transfer_events import with_transfers
from workbench.errors import OptionError
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.timeline.path import path_lane

IDS, ROWS = "C1/embedding_lookup_sparse/Unique", "C1/embedding_lookup_sparse/Gather"


def one(**more):
    return worker_trace(0, with_edges=True, **more)


def merged():
    """Worker 1 computes for longer."""
    return merge_traces([one(), worker_trace(1, with_edges=True, compute_ns=(5 * MS, 5 * MS))])


def test_the_chain_leads_to_the_server_and_back():
    path = critical_path(one(compute_ns=(2 * MS,)))
    names = path.trace.nodes["name"].to_numpy(object)
    shown = path.segments[path.segments["kind"].isin(["op", "travel"])]
    assert [(names[row.node], row.kind) for row in shown.itertuples()] == [
        (IDS, "op"),
        (IDS, "travel"),
        (ROWS, "op"),
        (ROWS, "travel"),
        ("dense/MatMul", "op"),
        ("dense/MatMul", "travel"),
        ("Adagrad/update", "op"),
    ]
    assert path.segments["dur_ns"].sum() == path.end_ns - path.begin_ns
    # Of what travels no event is there; of ops it is the one of that node.
    events = path.trace.events["node"].to_numpy(np.int64)
    ops = shown[shown["kind"] == "op"]
    assert (events[ops["event"]] == ops["node"]).all()
    assert (shown[shown["kind"] == "travel"]["event"] == -1).all()


def test_its_time_is_told_by_task():
    path = critical_path(one(compute_ns=(2 * MS,)))
    chain = path.by_task().set_index(["kind", "place"])["ns"]
    # From 1.8 to 3.8 ms and the first ms; an executor's end comes 2 us after its kernel's.
    assert chain["op", "worker 0"] == pytest.approx(3 * MS, abs=5 * US)
    assert chain["op", "ps 0"] == pytest.approx(0.4 * MS, abs=5 * US)
    # From 1.0 to 1.2 ms, and from 3.8 to 4.0; a microsecond more or less, as receipts are counted.
    assert chain["travel", "worker 0 → ps 0"] == pytest.approx(0.4 * MS, rel=0.3)
    assert chain["travel", "ps 0 → worker 0"] == pytest.approx(0.2 * MS, rel=0.3)
    assert chain.sum() == pytest.approx(path.step_ns)


def test_slack_is_that_of_the_traces_own_events():
    path = critical_path(one())
    assert len(path.slack_ns) == len(path.trace.events)
    on_chain = path.segments.loc[path.segments["kind"] == "op", "event"]
    assert (path.slack_ns[on_chain] == 0).all()


def test_of_several_workers_the_slowest_counts_or_the_named_one():
    trace = merged()
    assert critical_path(trace).client == "worker 1"
    named = critical_path(trace, "worker 0")
    assert named.client == "worker 0" and named.steps == 2
    assert named.step_ns < critical_path(trace).step_ns
    assert critical_path(three_steps()).client == ""
    assert critical_path_view(named).title == "steps of worker 0"


def test_lanes_are_those_of_the_worker_by_task():
    assert critical_path(merged()).lanes["lane"].tolist() == [
        "Inter-op 0, worker 1",
        "Inter-op 0, ps 0",
    ]


def test_a_worker_without_steps_is_refused():
    with pytest.raises(
        OptionError,
        match="has no step of client 'worker 7'; it has steps of 'worker 0', 'worker 1'",
    ):
        critical_path(merged(), "worker 7")


def test_the_timeline_marks_the_events_of_the_slowest_worker():
    trace = merged()
    lane = path_lane(trace, np.zeros(len(trace.nodes), np.int64))
    assert lane.client == "worker 1"
    client = trace.tracks["client"].to_numpy(object)[trace.events["track"].to_numpy(np.int64)]
    assert set(client[lane.on_path]) == {"worker 1"}
    # All ops of a step are on its chain, which has no other.
    assert lane.on_path.sum() == len(event_rows(trace, "worker 1"))


def test_an_alignment_is_of_the_slowest_workers():
    aligned = align(merged(), merged(), labels=("a", "b"))
    assert aligned.a.steps == 2 and aligned.basis == "critical path"


def test_a_receipt_ends_where_its_reader_begins_and_begins_where_its_op_ended():
    trace = one(compute_ns=(2 * MS,))
    seen, rows = with_transfers(trace, "worker 0")
    assert (rows >= 0).sum() == len(trace.events) and (rows < 0).sum() == 3
    events = seen.events.assign(name=seen.nodes["name"].to_numpy(object)[seen.events["node"]])
    end = events["start_ns"] + events["dur_ns"].astype(np.int64)
    travels = rows < 0
    for name, reader in ((IDS, ROWS), (ROWS, "dense/MatMul"), ("dense/MatMul", "Adagrad/update")):
        of = (events["name"] == name).to_numpy()
        read = events.loc[(events["name"] == reader).to_numpy() & ~travels, "start_ns"].iloc[0]
        assert events.loc[of & travels, "start_ns"].iloc[0] == end[of & ~travels].iloc[0]
        assert end[of & travels].iloc[0] <= read


def test_stages_have_the_names_that_the_worker_gave_them():
    trace = merged()
    tracks = trace.tracks.assign(stage=["worker 0 in", *trace.tracks["stage"][1:]])
    seen, _ = with_transfers(trace.__class__(**{**trace.tables(), "tracks": tracks}), "worker 0")
    assert seen.tracks["stage"].iloc[0] == "in"
