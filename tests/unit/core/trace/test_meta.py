"""TraceMeta: what it accepts, what it refuses, and its JSON form."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.core.trace.meta import STEP_STATS, TraceMeta, UntracedSteps
from workbench.errors import TraceError

WHOLE = TraceMeta(
    title="A title",
    tensorflow="2.21.0",
    cores=4,
    inter_op_threads=2,
    capacity={"input": 1},
    occupancy_at_start={"input": 0},
    source=STEP_STATS,
    step_stats="asked for",
    threads="recorded",
    thread_names={"Inter-op 0": "tf_Compute"},
    variables={"table": 640},
    lost_ops=7,
    lost_transfers=2,
    task="worker 0",
    clock_offset_ns={"ps 0": -400},
    clock_error_ns={"ps 0": 90},
    left_out={"counters": 3},
    server_policies={"/job:worker/replica:0/task:0/device:CPU:0": "WORKBENCH_INLINE"},
    untraced=UntracedSteps(steps=9, step_ns=100, cpu_ns=150, run_ns=90, while_traced=True),
    source_cores=0.25,
    packs_when_idle=False,
    not_fusable={"net/GatherV2": "it is in a branch or a loop, or on more than one device"},
)


def test_the_whole_example_sets_every_field():
    for field in dataclasses.fields(TraceMeta):
        assert getattr(WHOLE, field.name) != getattr(TraceMeta(), field.name), field.name


def test_what_was_written_is_read_back():
    assert TraceMeta.from_json(json.loads(json.dumps(WHOLE.to_json()))) == WHOLE
    assert WHOLE.to_json().keys() == {field.name for field in dataclasses.fields(TraceMeta)}


@given(
    st.builds(
        TraceMeta,
        cores=st.none() | st.integers(1, 999),
        capacity=st.dictionaries(st.text(), st.integers(0, 99)),
        untraced=st.none() | st.builds(UntracedSteps, steps=st.integers(1, 64)),
        source_cores=st.none() | st.floats(0, 64),
        packs_when_idle=st.none() | st.booleans(),
    )
)
def test_any_is_read_back(meta: TraceMeta):
    assert TraceMeta.from_json(json.loads(json.dumps(meta.to_json()))) == meta


def test_what_is_not_known_is_not_written():
    assert TraceMeta().to_json() == {}
    assert TraceMeta(untraced=UntracedSteps(steps=9)).to_json() == {"untraced": {"steps": 9}}


def test_notes_of_an_earlier_file_are_read():
    notes = {
        "title": "old",
        "cores": None,
        "untraced": {},
        "source_cores": 1,
        "author": "of notes that any file may have",
    }
    assert TraceMeta.from_json(notes) == TraceMeta(title="old", source_cores=1)
    measured = {"untraced": {"steps": 9, "step_ns": 100, "day": "Monday"}}
    assert TraceMeta.from_json(measured).untraced == UntracedSteps(steps=9, step_ns=100)


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"title": 7}, "meta.title is 7; expected text"),
        ({"cores": "4"}, "meta.cores is '4'; expected an integer"),
        ({"cores": True}, "meta.cores is True; expected an integer"),
        ({"source_cores": "x"}, "meta.source_cores is 'x'; expected a number"),
        ({"packs_when_idle": 1}, "meta.packs_when_idle is 1; expected true or false"),
        ({"capacity": 3}, "meta.capacity is 3; expected values by name"),
        ({"capacity": {"a": "b"}}, "meta.capacity['a'] is 'b'; expected an integer"),
        ({"untraced": 5}, "meta.untraced is 5; expected values by name"),
        ({"untraced": {"step_ns": 1.5}}, "meta.untraced.step_ns is 1.5; expected an integer"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(notes: dict[str, Any], message: str):
    with pytest.raises(TraceError) as error:
        TraceMeta.from_json(notes)
    assert str(error.value) == message


def test_changing_the_mapping_it_was_made_of_changes_nothing():
    capacity = {"input": 1}
    meta = TraceMeta(capacity=capacity)
    capacity["input"] = 9
    assert meta.capacity == {"input": 1}
