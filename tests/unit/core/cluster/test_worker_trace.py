"""Step stats of several tasks → one worker's trace on its own clock, with what travelled."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.cluster_traces import BEGIN_NS, MS, PS, US, step_metadata, worker, worker_trace
from workbench.core.capture.step_stats import stats_columns
from workbench.core.capture.step_transfers import transfer_count
from workbench.core.cluster.aligned_ops import align_ops, lost_transfers
from workbench.core.cluster.traffic import transfers_table
from workbench.core.graph.tasks import is_ps, task_of, tasks_of
from workbench.core.trace.trace import load_trace
from workbench.errors import TraceError


def test_a_device_names_its_task():
    assert task_of(PS) == "ps 0" and is_ps("ps 0")
    assert task_of("/job:worker/task:12") == "worker 12" and not is_ps("worker 12")
    assert task_of("/device:CPU:0") == ""
    assert tasks_of([PS, worker(1), PS]).tolist() == ["ps 0", "worker 1", "ps 0"]


@pytest.mark.parametrize("skew_ns", [0, 50 * MS, -50 * MS, 7 * US + 3])
def test_an_injected_skew_is_recovered(skew_ns):
    trace = worker_trace(skew_ns=skew_ns)
    offset, error = trace.meta.clock_offset_ns["ps 0"], trace.meta.clock_error_ns["ps 0"]
    assert abs(offset - skew_ns) <= error <= 201 * US
    assert trace.meta.task == "worker 0"
    # On the worker's clock the ps gathers while the worker waits for the rows.
    events = trace.to_pandas()
    gather = events[events["op"] == "GatherV2"]["start_ns"].iloc[0]
    assert abs(gather - (BEGIN_NS + 1400 * US)) <= error


def test_every_send_has_its_recv_and_comes_before_it():
    trace = worker_trace()
    table = transfers_table(trace)
    assert len(table) == 6 and (table["sent_ns"] > 0).all()
    assert (table["sent_ns"] <= table["start_ns"]).all()
    assert (table["start_ns"] <= table["end_ns"]).all()
    rows = table[table["receiver"] == "worker 0"]
    assert rows["tensor"].unique().tolist() == ["C1/embedding_lookup_sparse/Gather"]
    assert rows["op"].unique().tolist() == ["GatherV2"]
    assert rows["bytes"].tolist() == [6400, 6400] and rows["step"].tolist() == [1, 2]
    assert trace.meta.lost_transfers == 0


def test_ops_are_on_tracks_of_their_task():
    tracks = worker_trace(1).tracks
    assert tracks["task"].tolist() == ["worker 1", "worker 1", "ps 0"]
    assert set(tracks["client"]) == {"worker 1"}
    assert tracks["index"].tolist() == [0, 0, 0]


def test_a_record_of_a_tensor_is_no_op():
    ops = stats_columns([step_metadata(0, BEGIN_NS, 0)])
    assert not ops.nodes["op"].str.contains("from").any()
    assert len(ops.run) == 4 and len(ops.transfers) == 3
    assert transfer_count(step_metadata(0, BEGIN_NS, 0)) == 3


def test_an_op_that_ran_twice_tells_no_time_of_sending():
    metadata = step_metadata(0, BEGIN_NS, 0)
    here = metadata.step_stats.dev_stats[2].node_stats
    here.append(here[0])
    sent = stats_columns([metadata]).transfers["sent_ns"]
    assert sorted(sent < 0) == [False, False, True]


def test_a_task_whose_clock_cannot_be_aligned_is_left_out():
    metadata = step_metadata(0, BEGIN_NS, 0)
    # Nothing comes back from the ps.
    metadata.step_stats.dev_stats[0].node_stats.clear()
    aligned = align_ops(stats_columns([metadata]))
    assert aligned.left_out == {"ps 0": 2} and "sent nothing" in aligned.refused["ps 0"]
    assert len(aligned.ops.run) == 2 and not len(aligned.ops.transfers)


def test_records_that_a_step_lacks_are_counted():
    runs = [step_metadata(0, BEGIN_NS + k * 10 * MS, 0) for k in range(4)]
    runs[2].step_stats.dev_stats[1].node_stats.pop()
    assert lost_transfers(stats_columns(runs).transfers, 4) == 1
    assert lost_transfers(stats_columns(runs[:2]).transfers, 2) == 0


def test_a_file_and_a_window_keep_what_travelled(tmp_path):
    trace = worker_trace()
    trace.save(tmp_path / "one.parquet")
    read = load_trace(tmp_path / "one.parquet")
    assert read.transfers.equals(trace.transfers) and read.tracks.equals(trace.tracks)
    assert read.meta == trace.meta
    first = trace.steps().iloc[0]
    part = trace.window(int(first["start_ns"]), int(first["end_ns"]))
    assert len(part.transfers) == 3 and set(part.transfers["step"]) == {1}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("node", 99, "node is a row of `nodes`"),
        ("track", 1, "track is a row of `tracks` of kind step or prefetch"),
        ("bytes", -1, "bytes is not negative"),
        ("sent_ns", -2, "an unknown time is -1"),
        ("start_ns", BEGIN_NS * 2, "it ends after it starts"),
        ("sent_ns", BEGIN_NS * 2, "it is received after it was sent"),
    ],
)
def test_a_damaged_transfer_is_named(column, value, message):
    trace = worker_trace()
    values = trace.transfers[column].astype("int64")
    values[0] = value
    trace = dataclasses.replace(trace, transfers=trace.transfers.assign(**{column: values}))
    with pytest.raises(TraceError, match=f"table `transfers`, row 0: {message}"):
        trace.self_check()
