"""RunMetadata and StepStats → Trace, and the message of each refusal."""

from __future__ import annotations

import re

import pytest
from tensorflow.core.protobuf.config_pb2 import RunMetadata

from tests.builders.profiles import CPU, run_metadata, step_stats
from workbench.core.importing.import_trace import import_trace
from workbench.errors import TraceError

US = 1_000
START = 1_795_399_526_450_000_000
OPS = [("w", "VarHandleOp", START, 2 * US), ("y", "MatMul", START + 3 * US, 5 * US)]


def wrapped(number: int) -> int:
    """What 64 bits with a sign keep of it."""
    return (number + 2**63) % 2**64 - 2**63


def later(ops, by_ns):
    return [(name, op, start + by_ns, length) for name, op, start, length in ops]


def test_one_run_is_a_step():
    trace = import_trace(run_metadata(OPS), title="mine")
    trace.self_check()
    frame = trace.to_pandas()
    assert list(zip(frame["name"], frame["op"], frame["dur_ns"], frame["step"], strict=True)) == [
        ("w", "VarHandleOp", 2 * US, 1),
        ("y", "MatMul", 5 * US, 1),
    ]
    assert trace.steps().values.tolist() == [[1, 0, START, START + 8 * US]]
    assert (trace.meta.title, trace.meta.source) == ("mine", "step_stats")
    assert len(trace.edges) == 0


def test_step_stats_are_as_good():
    assert (
        import_trace(step_stats(OPS))
        .to_pandas()
        .equals(import_trace(run_metadata(OPS)).to_pandas())
    )


def test_a_list_is_a_step_each():
    trace = import_trace([run_metadata(OPS), step_stats(later(OPS, 20 * US))])
    assert trace.steps()[["number", "track"]].values.tolist() == [[1, 0], [2, 0]]
    assert len(trace.nodes) == 2


def test_steps_at_one_time_are_of_several_clients():
    trace = import_trace([run_metadata(OPS), run_metadata(later(OPS, US))])
    assert trace.steps()[["number", "track"]].values.tolist() == [[1, 0], [2, 1]]


def test_microseconds_alone_are_read():
    """TensorFlow before 1.11 wrote no nanoseconds."""
    message = RunMetadata()
    message.step_stats.dev_stats.add(device=CPU).node_stats.add(
        node_name="w", all_start_micros=7, op_end_rel_micros=3, all_end_rel_micros=4
    )
    trace = import_trace(message)
    assert trace.events[["start_ns", "dur_ns"]].values.tolist() == [[7_000, 4_000]]


@pytest.mark.parametrize(
    ("noted", "delay_ns"),
    [
        (START - 7_000, 7_000),
        (0, 0),
        # Versions 2.18 and 2.19 of TensorFlow: times 1000, of which 64 bits remain.
        (wrapped(1000 * (START - 7_000)), 7_000),
        (wrapped(1000 * (START - 7_000)) + 1, 0),
        (START + 5, 0),
        (-4, 0),
        (17, 0),
    ],
)
def test_when_an_op_became_ready(noted, delay_ns):
    message = run_metadata(OPS)
    message.step_stats.dev_stats[0].node_stats[0].scheduled_nanos = noted
    assert import_trace(message).to_pandas()["delay_ns"].tolist()[0] == delay_ns


def broken(**fields):
    message = run_metadata(OPS)
    node = message.step_stats.dev_stats[0].node_stats[1]
    for name, value in fields.items():
        setattr(node, name, value)
    return message


WHERE = f"step 1: node_stats 1 of device `{CPU}`"


FAULTS = [
    ({"node_name": ""}, f"{WHERE} has no `node_name`; an op needs a name and a start"),
    (
        {"all_start_nanos": 0, "all_start_micros": 0},
        f"{WHERE} (`y`) has no `all_start_nanos` or `all_start_micros`; an op needs a start",
    ),
    (
        {"all_end_rel_nanos": -4},
        f"{WHERE} (`y`): `all_end_rel_nanos` is -4; expected a time of 0 or more",
    ),
    (
        {"all_start_nanos": 1 << 62},
        f"{WHERE} (`y`): `all_start_nanos` is {1 << 62}; expected a time of 0 or more",
    ),
    (
        {"op_end_rel_micros": 1 << 60},
        f"{WHERE} (`y`): `op_end_rel_micros` is {1 << 60}; expected a time of 0 or more",
    ),
]


@pytest.mark.parametrize(("fields", "fault"), FAULTS)
def test_an_op_with_a_fault_is_left_out_and_counted(fields, fault):
    message = broken(**fields)
    kept = message.SerializeToString()
    trace = import_trace(message)
    assert trace.to_pandas()["name"].tolist() == ["w"]
    assert trace.meta.left_out == {f"events with a fault, the first of them: {fault}": 1}
    assert message.SerializeToString() == kept


@pytest.mark.parametrize(("fields", "fault"), FAULTS)
def test_a_step_of_nothing_else_is_refused(fields, fault):
    message = broken(**fields)
    del message.step_stats.dev_stats[0].node_stats[0]
    with pytest.raises(TraceError, match=re.escape(fault.replace("stats 1", "stats 0"))):
        import_trace(message)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (run_metadata(OPS, device=""), "step 1: dev_stats 0 has no `device`; expected its name"),
        (run_metadata([("_SOURCE", "NoOp", START, 1)]), "step 1 has no `node_stats`: it was run"),
        (RunMetadata(), r"step 1 has no `node_stats`: .*RunOptions\.SOFTWARE_TRACE"),
        ([run_metadata(OPS), RunMetadata()], "step 2 has no `node_stats`: it was run without a t"),
    ],
)
def test_each_refusal_names_the_step(message, found):
    with pytest.raises(TraceError, match=found):
        import_trace(message)
