"""Chrome JSON: every run, op and flow of a trace, without overlap, names escaped."""

from __future__ import annotations

import json

from hypothesis import given

from tests.builders.any_trace import traces
from tests.builders.cluster_traces import worker_trace
from tests.builders.traces import START_NS, staged_trace
from workbench.core.cluster.merge import merge_traces
from workbench.core.importing.import_trace import import_trace


def chrome(trace, folder):
    trace.to_chrome(folder / "x.json")
    text = (folder / "x.json").read_text(encoding="utf-8")
    return json.loads(text, parse_float=lambda t: round(float(t) * 1000))


def by_phase(document, phase):
    return [e for e in document["traceEvents"] if e["ph"] == phase]


def no_slices_overlap(document) -> bool:
    ends: dict[tuple[int, int], int] = {}
    for slice_ in sorted(by_phase(document, "X"), key=lambda e: e["ts"]):
        place = slice_["pid"], slice_["tid"]
        if slice_["ts"] < ends.get(place, 0):
            return False
        ends[place] = slice_["ts"] + slice_["dur"]
    return True


def flows_bind(document) -> bool:
    """Each flow goes forward from inside a put to inside the take of the same item."""
    starts, finishes = (
        {e["id"]: e for e in by_phase(document, phase) if e["cat"] == "item"} for phase in "sf"
    )

    def around(event, name):
        return [
            (e["args"]["stage"], e["args"]["item"])
            for e in by_phase(document, "X")
            if (e["name"], e["pid"], e["tid"]) == (name, event["pid"], event["tid"])
            and e["ts"] <= event["ts"] < e["ts"] + e["dur"]
        ]

    return starts.keys() == finishes.keys() and all(
        starts[i]["ts"] <= finishes[i]["ts"]
        and len(around(starts[i], "put")) == 1
        and around(starts[i], "put") == around(finishes[i], "take")
        for i in starts
    )


def test_chrome_has_every_run_op_and_flow(tmp_path):
    trace = staged_trace(3)
    document = chrome(trace, tmp_path)
    names = [e["name"] for e in by_phase(document, "X")]
    assert {"step 1", "step 2", "step 3", "stage run 4", "put", "take", "dense/MatMul"} <= set(
        names
    )
    assert len(names) == len(trace.events) + len(trace.runs) + 4 + 3
    assert len(by_phase(document, "s")) == 3
    assert no_slices_overlap(document)
    assert flows_bind(document)
    threads = [e["args"]["name"] for e in by_phase(document, "M") if e["name"] == "thread_name"]
    assert threads == [
        "Main step", "Main step, take", "Prefetch 0", "Prefetch 0, put", "Prefetch 0, ops",
        "Inter-op 0", "Inter-op 1",
    ]  # fmt: skip
    assert document["otherData"]["origin_ns"] == START_NS - 3_500_000


def test_chrome_leads_from_the_op_that_made_a_tensor_to_its_receipt(tmp_path):
    trace = merge_traces([worker_trace(0), worker_trace(1)])
    document = chrome(trace, tmp_path)
    assert no_slices_overlap(document)
    places = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in by_phase(document, "M")
        if e["name"] == "thread_name"
    }

    def inside(event) -> list[tuple[str, str]]:
        place = event["pid"], event["tid"]
        return [
            (places[place], e["name"])
            for e in by_phase(document, "X")
            if (e["pid"], e["tid"]) == place and e["ts"] <= event["ts"] < e["ts"] + e["dur"]
        ]

    starts, finishes = (
        {e["id"]: e for e in by_phase(document, phase) if e["cat"] == "transfer"} for phase in "sf"
    )
    assert len(starts) == len(trace.transfers) == 12 and starts.keys() == finishes.keys()
    assert all(starts[i]["ts"] <= finishes[i]["ts"] for i in starts)
    found = {(starts[i]["name"], *inside(starts[i]), *inside(finishes[i])) for i in starts}
    ids, rows = "C1/embedding_lookup_sparse/Unique", "C1/embedding_lookup_sparse/Gather"
    for k in range(2):
        own, there = f"Inter-op 0, worker {k}", f"ps 0 for worker {k}"
        assert (ids, (own, ids), (f"Receive, {there}", "receive 1")) in found
        assert (
            rows,
            (f"Inter-op 0, {there}", rows),
            (f"Receive, worker {k}", "receive 1"),
        ) in found
    assert len(found) == 6


def test_a_clusters_trace_is_read_back_without_its_receipts(tmp_path):
    trace = merge_traces([worker_trace(0), worker_trace(1)])
    trace.to_chrome(tmp_path / "x.json")
    read = import_trace(tmp_path / "x.json")
    assert len(read.events) == len(trace.events) and len(read.runs) == len(trace.runs)
    assert not len(read.transfers)


def test_chrome_counts_the_buffer(tmp_path):
    counters = by_phase(chrome(staged_trace(2), tmp_path), "C")
    assert {e["name"] for e in counters} == {"Buffer input"}
    assert [e["args"]["items"] for e in counters] == [1, 0, 1, 0, 1]


def test_chrome_escapes_names(tmp_path):
    nasty = '</script>"\\\u2028<b>'
    trace = staged_trace(1, stage=nasty, stage_nodes=((nasty, nasty), (nasty, nasty)), title=nasty)
    document = chrome(trace, tmp_path)
    assert nasty in [e["name"] for e in by_phase(document, "X")]
    assert document["otherData"]["title"] == nasty


@given(traces())
def test_chrome_of_anything_has_no_overlap(tmp_path_factory, trace):
    document = chrome(trace, tmp_path_factory.mktemp("chrome"))
    assert no_slices_overlap(document)
    assert flows_bind(document)
    slices = sorted(e["dur"] for e in by_phase(document, "X") if "step" in e.get("args", {}))
    assert slices == sorted(trace.events["dur_ns"].tolist())
