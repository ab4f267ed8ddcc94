"""Live bytes, solved by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.memories import chain_trace, of_ops, staged_trace
from tests.builders.traces import make_trace
from workbench.core.analysis.memory.lifetimes import lifetimes
from workbench.core.analysis.memory.memory import memory
from workbench.errors import TraceError


def lives(trace):
    found = lifetimes(trace)
    names = trace.nodes["name"].to_numpy(object)[found.node].tolist()
    spans = zip(found.begin_ns.tolist(), found.end_ns.tolist(), strict=True)
    return dict(zip(names, spans, strict=True))


class TestLifetimes:
    def test_to_the_last_that_reads_it(self):
        # What d passes on is b's, and lives until c has read it.
        assert lives(chain_trace()) == {
            "in/a": (10, 70),
            "net/b": (20, 70),
            "net/c": (60, 70),
        }

    def test_a_control_edge_reads_nothing(self):
        ops = (("a", "Mul", 0, 10, 8, 0), ("b", "Mul", 20, 30, 8, 0))
        assert lives(of_ops(ops, [("b", "b")], until=40, control=[("a", "b")]))["a"] == (0, 10)

    def test_of_two_inputs_the_one_of_as_many_bytes_is_passed_on(self):
        ops = (
            ("large", "Mul", 0, 10, 64, 0),
            ("small", "Mul", 0, 10, 8, 0),
            ("add", "Add", 20, 30, 0, 64),
            ("end", "Mul", 80, 90, 0, 0),
        )
        fed = [("large", "add"), ("small", "add"), ("add", "end")]
        assert lives(of_ops(ops, fed, until=100)) == {"large": (0, 90), "small": (0, 30)}

    def test_of_equal_inputs_the_one_that_nothing_reads_later(self):
        ops = (
            ("read_later", "Mul", 0, 10, 64, 0),
            ("passed", "Mul", 0, 10, 64, 0),
            ("add", "Add", 20, 30, 0, 64),
            ("reader", "Mul", 30, 50, 0, 0),
            ("end", "Mul", 80, 90, 0, 0),
        )
        fed = [("read_later", "add"), ("passed", "add"), ("read_later", "reader"), ("add", "end")]
        assert lives(of_ops(ops, fed, until=100)) == {"read_later": (0, 50), "passed": (0, 90)}

    def test_where_none_has_as_many_bytes_it_may_be_any(self):
        ops = (
            ("one", "Mul", 0, 10, 64, 0),
            ("two", "Mul", 0, 10, 32, 0),
            ("both", "IdentityN", 20, 30, 0, 96),
            ("end", "Mul", 80, 90, 0, 0),
        )
        fed = [("one", "both"), ("two", "both"), ("both", "end")]
        assert lives(of_ops(ops, fed, until=100)) == {"one": (0, 90), "two": (0, 90)}

    def test_a_list_keeps_what_is_put_into_it(self):
        ops = (
            ("row", "Mul", 0, 10, 32, 0),
            ("list", "TensorListPushBack", 10, 20, 64, 0),
            ("pop", "TensorListPopBack", 60, 70, 96, 0),
            ("end", "Mul", 70, 80, 0, 0),
        )
        fed = [("row", "list"), ("list", "pop"), ("pop", "end")]
        # What comes out of a list is what was put into it.
        assert lives(of_ops(ops, fed, until=100)) == {"row": (0, 80), "list": (10, 80)}

    def test_at_the_end_of_its_run_all_is_gone(self):
        trace = of_ops(
            (("a", "Mul", 0, 10, 8, 0), ("b", "Mul", 80, 120, 8, 0)), [("a", "b")], until=100
        )
        assert lives(trace) == {"a": (0, 100), "b": (80, 120)}

    def test_a_buffer_reads_what_is_put_and_gives_what_is_taken(self):
        assert lives(staged_trace()) == {"in/a": (0, 40), "in/take": (60, 80), "net/b": (70, 80)}


class TestMemory:
    def test_the_peak(self):
        found = memory(chain_trace(steps=2))
        assert found.peak_bytes == 170 and found.peak_ns == 60
        assert found.step_peaks.tolist() == [170, 170]
        assert found.step_peak_interval == (170, 170)
        assert found.df[["name", "family", "tensors", "bytes"]].to_numpy().tolist() == [
            ["in/a", "Input, decode", 1, 100],
            ["net/b", "Dense matmul", 1, 50],
            ["net/c", "Dense matmul", 1, 20],
        ]
        assert found.by_family()["bytes"].tolist() == [100, 70]
        scopes = found.by_scope(1)[["scope", "bytes"]].to_numpy().tolist()
        assert scopes == [["in", 100], ["net", 70]]
        assert repr(found) == "Memory(peak of 170 bytes in 2 steps)"

    def test_the_curve(self):
        curve = memory(chain_trace()).curve
        assert list(zip(curve["time_ns"], curve["op_bytes"], strict=True)) == [
            (10, 100),
            (20, 150),
            (60, 170),
            (70, 150),
            (70, 100),
            (70, 0),
        ]
        assert not curve["buffer_bytes"].any()

    def test_a_buffer(self):
        found = memory(staged_trace())
        # In the buffer from 40 to 60; the step begins at 50 and takes it at 60.
        assert found.curve[["time_ns", "op_bytes", "buffer_bytes"]].to_numpy().tolist() == [
            [0, 64, 0],
            [40, 0, 0],
            [41, 0, 64],
            [59, 0, 0],
            [60, 64, 0],
            [70, 74, 0],
            [80, 64, 0],
            [80, 0, 0],
        ]
        assert found.peak_bytes == 74 and found.step_peaks.tolist() == [74]
        (row,) = found.buffers.to_dict("records")
        # 64 bytes for 9 of 50 ns, beside 64 for 20 ns and 10 for 10 ns.
        assert row["stage"] == "in" and row["item_bytes"] == 64
        assert row["mean_bytes"] == pytest.approx(64 * 9 / 50)
        assert row["share"] == pytest.approx(64 * 9 / (64 * 9 + 64 * 20 + 10 * 10))

    def test_a_buffer_at_the_peak(self):
        trace = staged_trace()
        more = trace.items.assign(item=1, put_start_ns=-1, put_end_ns=-1, put_track=-1, put_run=-1)
        more = more.assign(take_start_ns=-1, take_end_ns=-1, take_step=-1, take_track=-1, bytes=0)
        items = pd.concat([trace.items, more], ignore_index=True)
        found = memory(dataclasses.replace(trace, items=items))
        # An item that was there before and stays; its size was not seen, so it is as the other.
        assert found.peak_bytes == 74 + 64
        assert found.df["family"].tolist() == [
            "Stage buffer",
            "Copy, communication",
            "Dense matmul",
        ]

    def test_variables(self):
        assert memory(chain_trace()).variable_bytes is None
        assert memory(chain_trace(variables={"w": 400, "w/Adam": 400})).variable_bytes == 800

    def test_without_steps(self):
        with pytest.raises(TraceError, match="no step, so nothing lives in it"):
            memory(make_trace())

    def test_without_bytes(self):
        events = chain_trace().events.assign(made_bytes=0)
        with pytest.raises(TraceError, match="does not know how large the outputs of ops are"):
            memory(dataclasses.replace(chain_trace(), events=events))

    def test_without_edges(self):
        with pytest.raises(TraceError, match="does not know which op feeds which"):
            memory(dataclasses.replace(chain_trace(), edges=chain_trace().edges.iloc[:0]))


@st.composite
def traces(draw):
    count = draw(st.integers(1, 12))
    sizes = st.integers(0, 100)
    ops = [("op0", "Mul", 0, 5, 1 + draw(sizes), 0)]
    for i in range(1, count):
        ops.append((f"op{i}", "Mul", i * 10, i * 10 + 5, draw(sizes), draw(sizes)))
    pairs = [(f"op{a}", f"op{b}") for b in range(count) for a in range(b)]
    fed = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return of_ops(ops, [*fed, ("op0", "op0")], until=10 * count, steps=draw(st.integers(1, 3)))


@given(traces())
def test_bytes_come_and_go(trace):
    found = memory(trace)
    curve = found.curve
    assert (curve["op_bytes"] >= 0).all() and curve["op_bytes"].iloc[-1] == 0
    assert found.peak_bytes == curve["op_bytes"].max() == found.df["bytes"].sum()
    assert found.peak_bytes == found.step_peaks.max() >= trace.events["made_bytes"].max()
    assert np.isclose(found.df["share"].sum(), 1)
