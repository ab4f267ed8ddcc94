"""The timeline of a cluster: lanes by task, receipts, and an arrow from each Send to its Recv."""

from __future__ import annotations

import json

from tests.builders.cluster_traces import MS, worker_trace
from tests.builders.timelines import in_browser
from tests.builders.traces import unstaged_trace
from workbench.core.cluster.client import clients, of_client
from workbench.core.cluster.merge import merge_traces
from workbench.core.importing.import_trace import import_trace
from workbench.core.trace.receipts import sending_events
from workbench.viz.timeline.view import timeline_view


def merged():
    """Both workers have steps 1 and 2; those of worker 1 compute for longer."""
    return merge_traces([worker_trace(0), worker_trace(1, compute_ns=(5 * MS, 5 * MS))])


def test_lanes_stand_by_task_and_by_the_worker_they_work_for():
    lanes = timeline_view(merged()).lanes
    found = [(lane.label, lane.detail) for lane in lanes if lane.label]
    assert found == [
        *((name, "worker 0") for name in ("Main step", "Receive", "Inter-op 0")),
        *((name, "worker 1") for name in ("Main step", "Receive", "Inter-op 0")),
        *((name, "ps 0, worker 0") for name in ("Receive", "Inter-op 0")),
        *((name, "ps 0, worker 1") for name in ("Receive", "Inter-op 0")),
    ]
    assert lanes[-1].title == "Inter-op 0, ps 0, worker 1"
    assert all(lane.detail == "" for lane in timeline_view(unstaged_trace()).lanes)


def test_a_receipt_says_its_tensors_and_bytes():
    view = timeline_view(merged())
    names = set(view.nodes["name"])
    assert {
        "receive 1 tensor, 6.4\N{NO-BREAK SPACE}kB",
        "receive 1 tensor, 800\N{NO-BREAK SPACE}B",
    } <= names
    # They are no ops, so sums of ops have none.
    assert "RecvTensor" not in set(view.in_view()["op"])


def test_every_arrow_leads_from_the_op_to_its_receiver():
    trace = merged()
    events = sending_events(trace.tables())
    assert (events >= 0).all() and len(events) == 12
    sent = trace.events["node"].to_numpy()[events]
    assert (sent == trace.transfers["source"].to_numpy()).all()
    view = timeline_view(trace)
    lanes = view.lanes
    for start, end in zip(view.columns["sendFrom"], view.columns["recvTo"], strict=True):
        assert lanes[start].kind == "inter_op" and lanes[end].kind == "receive"
        assert lanes[start].client == lanes[end].client
        assert lanes[start].detail != lanes[end].detail
    assert (view.columns["sendTime"] <= view.columns["recvTime"]).all()


def test_the_browser_tells_steps_of_one_number_apart():
    view = timeline_view(merged())
    rows = [lane.first for lane in view.lanes if lane.kind == "step"]
    places = in_browser(view, f"{json.dumps(rows)}.map((i) => stepOf(model, i))")
    assert isinstance(places, list) and len(set(places)) == 2 and min(places) >= 0
    assert in_browser(view, "model.sendTime.length") == 12


def test_a_client_alone():
    trace = merged()
    assert clients(trace) == ["worker 0", "worker 1"] and clients(unstaged_trace()) == [""]
    one = of_client(trace, "worker 1")
    assert len(one.steps()) == 2 and len(one.transfers) == 6 and len(one.events) == 8
    alone = unstaged_trace()
    assert of_client(alone, "") is alone


def test_chrome_json_names_tasks_and_is_read_back(tmp_path):
    trace = merged()
    trace.to_chrome(tmp_path / "x.json")
    assert "Inter-op 0, ps 0 for worker 1" in (tmp_path / "x.json").read_text()
    read = import_trace(tmp_path / "x.json")
    assert read.tracks.equals(trace.tracks) and len(read.events) == len(trace.events)
