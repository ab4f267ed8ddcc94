"""Chrome JSON: every run, op and flow of a trace, without overlap, names escaped."""

from __future__ import annotations

import json

from hypothesis import given

from tests.builders.any_trace import traces
from tests.builders.traces import START_NS, staged_trace


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
    starts = {e["id"]: e for e in by_phase(document, "s")}
    finishes = {e["id"]: e for e in by_phase(document, "f")}

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
