"""Trace: what it accepts, what it refuses, and that files give back what was saved."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tests.builders.any_trace import TRACKS, traces
from tests.builders.traces import (
    CPU,
    START_NS,
    big_trace,
    make_trace,
    staged_trace,
    unstaged_trace,
)
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.trace import Trace, load_trace
from workbench.errors import TraceError

MS = 1_000_000


def one_item(**changes):
    """A trace of one item and the runs around it, with some of its fields changed."""
    item = {
        "stage": "input",
        "item": 0,
        "put_start_ns": 10,
        "put_end_ns": 20,
        "take_start_ns": 15,
        "take_end_ns": 25,
        "put_track": 1,
        "put_run": 1,
        "take_step": 1,
        "take_track": 0,
    } | changes
    runs = [(0, 1, 5, 90), (1, 1, 0, 30)]
    return make_trace([(30, 5, 1, 0, 2, 1)], runs=runs, items=[tuple(item.values())])


def same(one: Trace, other: Trace) -> bool:
    for name, table in one.tables().items():
        pd.testing.assert_frame_equal(table, other.tables()[name])
    return one.meta == other.meta


# --- construction -------------------------------------------------------------------------------


def test_columns_take_their_narrowest_type():
    kinds = staged_trace().events.dtypes.astype(str).to_dict()
    assert kinds == {
        "start_ns": "int64",
        "dur_ns": "uint32",
        "delay_ns": "uint16",
        "node": "uint8",
        "track": "uint8",
        "step": "uint8",
        "made_bytes": "uint8",
        "passed_bytes": "uint8",
    }
    wide = make_trace([(0, 2**33, 0, 0, 0, 70_000)]).events
    assert (wide["dur_ns"].dtype, wide["step"].dtype) == (np.int64, np.uint32)
    assert staged_trace().items["take_track"].dtype == np.int8


def test_a_missing_column_is_named():
    trace = staged_trace()
    with pytest.raises(TraceError, match=r"`events` has no column `delay_ns`; it needs start_ns,"):
        dataclasses.replace(trace, events=trace.events.drop(columns="delay_ns"))


def test_an_unknown_column_is_named():
    trace = staged_trace()
    with pytest.raises(TraceError, match="`nodes` has an unknown column `color`"):
        dataclasses.replace(trace, nodes=trace.nodes.assign(color="red"))


@pytest.mark.parametrize(("value", "shown"), [(1.5, r"1\.5"), ("x", "'x'"), (None, "nan|None")])
def test_what_is_no_integer_is_shown(value, shown):
    trace = staged_trace()
    runs = trace.runs.astype(object)
    runs.loc[2, "end_ns"] = value
    with pytest.raises(TraceError, match=rf"`runs`, row 2: `end_ns` is ({shown}); expected an int"):
        dataclasses.replace(trace, runs=runs)


def test_meta_must_be_typed():
    with pytest.raises(TraceError, match="meta is a dict; expected a TraceMeta"):
        dataclasses.replace(staged_trace(), meta={"title": "x"})


def test_changing_the_frame_it_was_made_of_changes_no_trace():
    events = staged_trace().events.copy()
    trace = dataclasses.replace(staged_trace(), events=events)
    events.loc[0, "step"] = 99
    assert trace.events["step"][0] != 99


# --- rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trace", [staged_trace(), unstaged_trace(), big_trace(2_000), make_trace(), one_item()], ids=str
)
def test_sound_traces_pass(trace):
    trace.self_check()


EVENT = (5, 1, 0, 0, 2, 1)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (
            make_trace(tracks=[("T", "lane", 0, "")]),
            "`tracks`, row 0: kind is one of step, prefetch, inter_op; found kind 'lane'",
        ),
        (make_trace(tracks=[("T", "step", -1, "")]), "index counts from 0; found index -1"),
        (
            make_trace(tracks=[TRACKS[0], TRACKS[0]]),
            "`tracks`, row 1: no two tracks share kind, stage, index, task and client",
        ),
        (make_trace([(-5, 1, 0, 0, 0, 1)]), "`events`, row 0: times .* found start_ns -5"),
        (
            make_trace([EVENT, (6, -1, 0, 0, 2, 1)]),
            "row 1: dur_ns is not negative; found dur_ns -1",
        ),
        (make_trace([(5, 1, -2, 0, 2, 1)]), "delay_ns is not negative; found delay_ns -2"),
        (
            make_trace([EVENT, (6, 1, 0, 6, 2, 1)]),
            "`events`, row 1: node is a row of `nodes`, 0 to 5; found node 6",
        ),
        (make_trace([(5, 1, 0, 0, 3, 1)]), "track is a row of `tracks`, 0 to 2; found track 3"),
        (
            make_trace(runs=[(2, 1, 0, 5)]),
            "`runs`, row 0: track is a row of `tracks` of kind step or prefetch; found track 2",
        ),
        (make_trace(runs=[(0, 1, -7, 5)]), "times are not negative; found start_ns -7"),
        (
            make_trace(runs=[(0, 1, 9, 5)]),
            "a run ends after it starts; found start_ns 9, end_ns 5",
        ),
        (
            make_trace(runs=[(0, 1, 0, 5), (1, 1, 0, 5), (0, 1, 6, 7)]),
            "`runs`, row 2: numbers of runs are unique within a track; found track 0, number 1",
        ),
        (one_item(put_start_ns=-2), "an unknown time is -1; found put_start_ns -2"),
        (one_item(take_end_ns=-1), "a take has both times or none; found take_start_ns 15"),
        (one_item(put_start_ns=21), "a put ends after it starts; found put_start_ns 21"),
        (one_item(take_start_ns=26), "a take ends after it starts; found take_start_ns 26"),
        (one_item(put_end_ns=26), "an item is taken after it was put; found put_end_ns 26"),
        (one_item(put_track=0), "put_track is a row of `tracks` of kind prefetch, or -1; found"),
        (one_item(take_track=7), "take_track is a row of `tracks` of kind step, or -1; found"),
    ],
)
def test_each_rule_names_table_row_and_value(trace, message):
    with pytest.raises(TraceError, match=message):
        trace.self_check()


def test_bytes_are_not_negative():
    for table, column in (("events", "made_bytes"), ("events", "passed_bytes"), ("items", "bytes")):
        trace = staged_trace()
        frame = getattr(trace, table).assign(**{column: -1})
        with pytest.raises(TraceError, match=f"{column} is not negative; found {column} -1"):
            dataclasses.replace(trace, **{table: frame}).self_check()


def test_events_out_of_order_are_found():
    trace = staged_trace()
    with pytest.raises(TraceError, match="`events`, row 1: events are sorted by start_ns; found"):
        dataclasses.replace(trace, events=trace.events[::-1]).self_check()


def test_an_item_goes_through_a_buffer_once():
    trace = staged_trace()
    twice = pd.concat([trace.items, trace.items.tail(1)])
    with pytest.raises(TraceError, match=r"`items`, row 5: item numbers .* stage 'input', item 4"):
        dataclasses.replace(trace, items=twice).self_check()


def test_a_broken_trace_is_not_saved(tmp_path):
    with pytest.raises(TraceError, match="kind is one of"):
        make_trace(tracks=[("T", "lane", 0, "")]).save(tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


# --- files --------------------------------------------------------------------------------------


@given(traces())
def test_load_gives_what_was_saved(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("trace") / "x.parquet"
    trace.save(path)
    assert same(load_trace(path), trace)


def test_others_read_the_events_as_rows(tmp_path):
    staged_trace().save(tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(frame, staged_trace().events)
    notes = pq.read_metadata(tmp_path / "x.parquet").metadata
    assert notes[b"format_version"] == b"6"


def test_saving_again_replaces_the_file_and_leaves_nothing_else(tmp_path):
    staged_trace().save(tmp_path / "x.parquet")
    unstaged_trace().save(tmp_path / "x.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["x.parquet"]
    assert same(load_trace(tmp_path / "x.parquet"), unstaged_trace())


def rewritten(path, *, columns=None, **metadata):
    """The file once more, with other columns or other notes."""
    file = pq.ParquetFile(path)
    table = file.read(columns=columns)
    notes = {k.decode(): v.decode() for k, v in file.metadata.metadata.items()} | metadata
    with pq.ParquetWriter(path, table.schema) as out:
        out.write_table(table)
        out.add_key_value_metadata(notes)
    return path


def test_a_trace_of_the_first_format_has_no_edges_and_no_sources(saved):
    """That format had five tables, and three columns of nodes."""
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    nodes = notes["tables"]["nodes"]
    del notes["tables"]["edges"], nodes["source"], nodes["fusable"], nodes["fusable_part"]
    rewritten(saved, format_version="1", workbench_trace=json.dumps(notes))
    read = load_trace(saved)
    assert len(read.edges) == 0
    assert set(read.nodes["source"]) == {""}
    assert same(read, staged_trace())


def test_a_trace_of_the_second_format_has_no_bytes(saved):
    """Its events had six columns, its items ten."""
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    del notes["tables"]["items"]["bytes"]
    columns = ["start_ns", "dur_ns", "delay_ns", "node", "track", "step"]
    kept = json.dumps(notes)
    rewritten(saved, columns=columns, format_version="2", workbench_trace=kept)
    read = load_trace(saved)
    assert not read.events[["made_bytes", "passed_bytes"]].any(axis=None)
    assert not read.items["bytes"].any() and same(read, staged_trace())


def test_a_trace_of_the_third_format_has_no_transfers_and_its_tracks_no_task(saved):
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    del notes["tables"]["transfers"]
    del notes["tables"]["tracks"]["task"], notes["tables"]["tracks"]["client"]
    rewritten(saved, format_version="3", workbench_trace=json.dumps(notes))
    read = load_trace(saved)
    assert len(read.transfers) == 0 and set(read.tracks["task"]) == {""}
    assert same(read, staged_trace())


def test_a_trace_of_the_fourth_format_does_not_say_what_is_fusable(saved):
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    del notes["tables"]["nodes"]["fusable"], notes["tables"]["nodes"]["fusable_part"]
    rewritten(saved, format_version="4", workbench_trace=json.dumps(notes))
    read = load_trace(saved)
    assert set(read.nodes["fusable"]) == set(read.nodes["fusable_part"]) == {""}
    assert read.meta.not_fusable is None and same(read, staged_trace())


@pytest.mark.parametrize(
    ("edge", "rule"),
    [((0, 6, 0), "target is a row of `nodes`, 0 to 5"), ((0, 1, 2), "control is 0 or 1")],
)
def test_an_edge_joins_two_nodes(edge, rule):
    with pytest.raises(TraceError, match=f"`edges`, row 0: {rule}"):
        make_trace(edges=[edge]).self_check()


@pytest.fixture
def saved(tmp_path):
    staged_trace().save(tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_a_newer_format_asks_for_an_update(saved):
    rewritten(saved, format_version="7")
    with pytest.raises(TraceError, match=r"Format 7; this Workbench reads 6\. Update it\."):
        load_trace(saved)


def test_a_file_without_a_column_names_it(saved):
    rewritten(saved, columns=["dur_ns", "delay_ns", "node", "track", "step"])
    with pytest.raises(TraceError, match=r"`.*x\.parquet` has no column `start_ns`\."):
        load_trace(saved)


def test_a_small_table_without_a_column_names_it(saved):
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    del notes["tables"]["runs"]["number"]
    rewritten(saved, workbench_trace=json.dumps(notes))
    with pytest.raises(TraceError, match=r"`.*x\.parquet` has no column `number` in `runs`\."):
        load_trace(saved)


def test_another_parquet_file_is_no_trace(tmp_path):
    frame = staged_trace().events
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "x.parquet")
    with pytest.raises(TraceError, match=r"x\.parquet` is not a trace: its Parquet metadata lack"):
        load_trace(tmp_path / "x.parquet")


def test_a_text_file_is_no_trace(tmp_path):
    (tmp_path / "x.parquet").write_text("label\tI1\n")
    with pytest.raises(TraceError, match=r"x\.parquet` is not a trace: not a Parquet file \("):
        load_trace(tmp_path / "x.parquet")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"there is no file `.*none\.parquet`; expected a trace"):
        load_trace(tmp_path / "none.parquet")


def test_a_cut_file_is_damaged(tmp_path):
    big_trace(20_000).save(tmp_path / "x.parquet")
    whole = bytearray((tmp_path / "x.parquet").read_bytes())
    whole[100:60_000] = bytes(59_900)
    (tmp_path / "x.parquet").write_bytes(whole)
    with pytest.raises(TraceError, match=r"x\.parquet` is damaged: "):
        load_trace(tmp_path / "x.parquet")


def test_a_file_that_breaks_a_rule_is_damaged(saved):
    notes = json.loads(pq.read_metadata(saved).metadata[b"workbench_trace"])
    notes["tables"]["tracks"]["kind"][0] = "lane"
    rewritten(saved, workbench_trace=json.dumps(notes))
    with pytest.raises(TraceError, match=r"is damaged: table `tracks`, row 0: kind is one of"):
        load_trace(saved)


def with_meta(path, meta):
    notes = json.loads(pq.read_metadata(path).metadata[b"workbench_trace"])
    return rewritten(path, workbench_trace=json.dumps({**notes, "meta": meta}))


def test_a_file_with_notes_of_other_names_is_read_without_them(saved):
    trace = load_trace(with_meta(saved, {"title": "old", "untraced": {}, "author": "me"}))
    assert trace.meta == TraceMeta(title="old")


def test_a_file_with_a_note_of_the_wrong_type_is_damaged(saved):
    with_meta(saved, {"cores": "four"})
    with pytest.raises(TraceError, match=r"is damaged: meta\.cores is 'four'; expected an integer"):
        load_trace(saved)


# --- views of it --------------------------------------------------------------------------------


def test_steps_are_the_runs_of_main_steps():
    steps = unstaged_trace(3).steps()
    assert steps["number"].tolist() == [1, 2, 3]
    assert (steps["start_ns"] - START_NS).tolist() == [0, 10 * MS, 20 * MS]


def test_to_pandas_puts_names_for_numbers():
    frame = staged_trace().to_pandas()
    assert frame.columns.tolist() == [
        "start_ns", "dur_ns", "delay_ns", "name", "op", "device", "track", "kind", "stage", "step",
    ]  # fmt: skip
    assert frame.iloc[0][["name", "op", "device", "track", "stage", "step"]].tolist() == [
        "input/ReadLines", "ReaderReadV2", CPU, "Prefetch 0", "input", 1,
    ]  # fmt: skip


def test_occupancy_counts_puts_and_takes():
    items = [
        ("input", 0, -1, -1, 12, 15, -1, -1, 1, 0),
        ("input", 1, 10, 20, 21, 22, 1, 1, 2, 0),
        ("input", 2, 21, 22, 30, 31, 1, 2, 3, 0),
        ("other", 0, 5, 6, -1, -1, -1, -1, -1, -1),
    ]
    occupancy = make_trace(items=items).occupancy()
    assert list(occupancy.itertuples(index=False, name=None)) == [
        ("input", 15, 0),
        ("input", 20, 1),
        ("input", 22, 2),  # item 2 came in the moment item 1 went
        ("input", 22, 1),
        ("input", 31, 0),
        ("other", 6, 1),
    ]
    fuller = make_trace(items=items, occupancy_at_start={"input": 3})
    assert fuller.held_before() == {"input": 3, "other": 0}
    assert fuller.occupancy()["count"].tolist() == [2, 3, 4, 3, 2, 1]


def test_a_window_keeps_what_touches_it():
    trace = unstaged_trace(4)
    window = trace.window(START_NS + 10 * MS, START_NS + 20 * MS)
    window.self_check()
    assert window.steps()["number"].tolist() == [2]
    assert set(window.events["step"]) == {2}
    across = trace.window(START_NS + 9 * MS, START_NS + 11 * MS)
    assert across.steps()["number"].tolist() == [1, 2]


def test_a_window_keeps_the_items_held_in_it():
    items = [
        ("input", 0, -1, -1, 12, 15, -1, -1, 1, 0),
        ("input", 1, 10, 20, 21, 60, 1, 1, 2, 0),
        ("input", 2, 21, 22, -1, -1, 1, 2, -1, -1),
        ("input", 3, 70, 75, -1, -1, 1, 3, -1, -1),
    ]
    trace = make_trace(items=items, occupancy_at_start={"input": 2})
    window = trace.window(30, 70)
    assert window.items["item"].tolist() == [1, 2]
    assert window.meta == dataclasses.replace(trace.meta, occupancy_at_start={"input": 1})
    assert window.occupancy()["count"].tolist() == [2, 3, 2]


def test_a_window_cannot_end_before_it_starts():
    with pytest.raises(TraceError, match="the window ends at 3, before its start 5"):
        unstaged_trace().window(5, 3)


def test_its_repr_says_what_it_holds():
    assert repr(staged_trace()) == "Trace('Stage', 4 steps, 24 events, 5 items)".replace(
        "24", str(len(staged_trace().events))
    )


# --- Chrome -------------------------------------------------------------------------------------
