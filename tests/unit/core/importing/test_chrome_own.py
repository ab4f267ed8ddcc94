"""What `Trace.to_chrome` wrote comes back; what is not as it writes is refused."""

from __future__ import annotations

import dataclasses
import json

import pandas as pd
import pytest
from hypothesis import given

from tests.builders.any_trace import traces
from tests.builders.findings import with_fusable
from tests.builders.traces import make_trace, staged_trace, unstaged_trace
from workbench.core.importing.import_trace import import_trace
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError


def there_and_back(trace: Trace, folder) -> Trace:
    trace.to_chrome(folder / "x.json")
    return import_trace(folder / "x.json")


def as_rows(trace: Trace) -> pd.DataFrame:
    """The events with all that is known of their nodes, in an order of their own."""
    source = trace.nodes["source"].take(trace.events["node"].to_numpy()).array
    rows = trace.to_pandas().assign(source=source).astype(object)
    return rows.sort_values(list(rows.columns), ignore_index=True)


def same_but_for_what_is_lost(one: Trace, other: Trace) -> bool:
    pd.testing.assert_frame_equal(as_rows(one), as_rows(other))
    pd.testing.assert_frame_equal(one.tracks, other.tracks)
    order = ["track", "number"]
    pd.testing.assert_frame_equal(
        one.runs.sort_values(order, ignore_index=True),
        other.runs.sort_values(order, ignore_index=True),
    )
    return one.meta == other.meta


@given(traces())
def test_events_runs_and_tracks_come_back(tmp_path_factory, trace):
    back = there_and_back(trace, tmp_path_factory.mktemp("chrome"))
    assert same_but_for_what_is_lost(trace, back)
    assert len(back.edges) == 0
    key = ["stage", "item"]
    pd.testing.assert_frame_equal(
        trace.items.sort_values(key, ignore_index=True),
        back.items.sort_values(key, ignore_index=True),
        check_dtype=False,
    )


@pytest.mark.parametrize("trace", [staged_trace(3), unstaged_trace(2), make_trace()], ids=str)
def test_a_trace_comes_back_with_its_items_and_notes(tmp_path, trace):
    back = there_and_back(trace, tmp_path)
    assert same_but_for_what_is_lost(trace, back)
    pd.testing.assert_frame_equal(trace.items, back.items)
    pd.testing.assert_frame_equal(trace.occupancy(), back.occupancy())


def test_the_line_of_an_op_comes_back(tmp_path):
    trace = staged_trace(1)
    lines = [f"model.py:{row}" for row in range(len(trace.nodes))]
    trace = dataclasses.replace(trace, nodes=trace.nodes.assign(source=lines))
    assert same_but_for_what_is_lost(trace, there_and_back(trace, tmp_path))


def test_what_is_fusable_comes_back(tmp_path):
    trace = with_fusable(staged_trace(1), dense=("matrix product", "dense/MatMul"))
    back = there_and_back(trace, tmp_path)
    kinds = dict(zip(back.nodes["name"], back.nodes["fusable"], strict=True))
    assert kinds.pop("dense/MatMul") == "matrix product" and set(kinds.values()) == {""}
    assert set(back.nodes["fusable_part"]) == {"", "dense"} and back.meta.not_fusable == {}


def test_a_title_may_be_another_one(tmp_path):
    staged_trace(1).to_chrome(tmp_path / "x.json")
    assert import_trace(tmp_path / "x.json").meta.title == "Stage"
    assert import_trace(tmp_path / "x.json", title="mine").meta.title == "mine"


def test_a_file_of_an_earlier_version_still_has_its_steps(tmp_path):
    """That wrote no table of tracks: it is read as the file of any other tool."""
    unstaged_trace(3).to_chrome(tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    del document["otherData"]["tracks"]
    (tmp_path / "x.json").write_text(json.dumps(document))
    back = import_trace(tmp_path / "x.json")
    assert back.steps()["number"].tolist() == [1, 2, 3]
    assert len(back.events) == len(unstaged_trace(3).events)
    assert sorted(back.nodes["name"]) == sorted(unstaged_trace(3).nodes["name"])


def changed(document, where, value):
    """Sets a field, or takes it away."""
    held = document
    for name in where[:-1]:
        held = held[name]
    if value is None:
        del held[where[-1]]
    else:
        held[where[-1]] = value


def first(document, name):
    return next(i for i, e in enumerate(document["traceEvents"]) if e["name"].startswith(name))


@pytest.mark.parametrize(
    ("event", "where", "value", "message"),
    [
        ("dense/MatMul", ("args", "step"), None, r"event \d+: `args\.step` is missing: not as"),
        (
            "dense/MatMul",
            ("args", "op"),
            3,
            r"event \d+: `args\.op` is 3: not as",
        ),
        ("dense/MatMul", ("args", "step"), 1 << 70, r"`args\.step` is 1180591620717411303424, too"),
        ("put", ("args", "stage"), None, r"`args\.stage` is missing: .* write the file again"),
        (
            "step 1",
            ("name",),
            "step one",
            r"is named 'step one'; expected a run's number",
        ),
        (
            "thread_name",
            ("args", "holds"),
            "tea",
            r"thread \d+ of process 1 has slices, but no `th",
        ),
        ("thread_name", ("args", "track"), 7, r"`runs`, row \d+: track is a row of `tracks`"),
    ],
)
def test_what_it_does_not_write_is_refused(tmp_path, event, where, value, message):
    staged_trace(2).to_chrome(tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    changed(document, ("traceEvents", first(document, event), *where), value)
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(TraceError, match=message) as raised:
        import_trace(tmp_path / "x.json")
    assert str(raised.value).startswith(f"`{tmp_path / 'x.json'}` is no trace: ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("origin_ns", -1, r"`otherData\.origin_ns` is -1; expected nanoseconds since 1970"),
        ("tracks", 5, r"`otherData\.tracks` is no table of name, kind, index, stage"),
        ("tracks", {"name": ["a"]}, r"table `tracks`|is no table of name"),
        ("cores", "four", r"meta\.cores is 'four'; expected an integer"),
    ],
)
def test_notes_that_it_does_not_write_are_refused(tmp_path, name, value, message):
    staged_trace(2).to_chrome(tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    document["otherData"][name] = value
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(TraceError, match=message):
        import_trace(tmp_path / "x.json")
