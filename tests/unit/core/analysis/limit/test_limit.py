"""A step against a machine of round numbers, solved by hand; and what holds of any trace."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.any_trace import traces
from tests.builders.limits import PEAKS, PRODUCT, product_trace, with_shapes
from tests.builders.traces import make_trace, staged_trace
from workbench.core.analysis.limit.limit import limit_of
from workbench.core.analysis.limit.peaks import Peaks
from workbench.core.trace.meta import UntracedSteps
from workbench.errors import TraceError

SHAPES = st.sampled_from(
    [
        ("", ""),
        (PRODUCT, "float32[10,5]"),
        ("a=float32[4000,4000] b=float32[4000,4000]", "float32[4000,4000]"),
        ("params=float32[99,16] indices=int64[50]", "float32[50,16]"),
        ("x=float32[7]", "float32[7]"),
    ]
)


def test_parts_of_a_step():
    found = limit_of(product_trace(), PEAKS)
    # Each product takes 1 µs of multiply-adds, or 1.4 of bytes; the ReLU 50 flops of a core.
    assert found.step_ns == 10_000 and found.cores == 2
    assert found.one_core_ns == 1400 + 1400 + 25 and found.floor_ns == 1412
    # Ops take 4 + 2 + 3 µs of two cores' 20.
    assert found.below_peak_ns == int((9000 - 2825) / 2)
    # One core idles at 1–2 and 4–9 µs, two at 5–6; before the first op and after the last, both do.
    # An op was ready at 5–6 µs.
    assert found.ready_ns == (2 * 1000 + 2 * 1000 + 1000) / 2
    assert found.waits_ns == found.beside_ns == 0
    assert found.narrow_ns == 10_000 - 1412 - 3087 - 2500
    assert found.parts()["ns"].sum() == found.step_ns


def test_ops_and_families():
    found = limit_of(product_trace(), PEAKS)
    table = found.df.set_index("name")
    assert table["took_ns"].tolist() == [4000, 3000, 2000]
    assert table.loc["one", ["flops", "bytes", "bound", "least_ns"]].tolist() == [
        2000,
        1400,
        "cache",
        1400,
    ]
    families = found.by_family().set_index("family")
    assert families.loc["Dense matmul", "took_ns"] == 3000
    assert families["least_ns"].sum() == pytest.approx(found.floor_ns, abs=1)
    assert found.unknown_share == 0 and not found.exceeded


def test_cpu_time_beside_the_ops():
    untraced = UntracedSteps(steps=9, step_ns=20_000, cpu_ns=24_000)
    found = limit_of(product_trace(untraced=untraced), PEAKS)
    # 0.6 of two cores' 20 µs, of which the ops have 9.
    assert found.beside_ns == 1500
    assert found.parts()["ns"].sum() == found.step_ns
    before = limit_of(product_trace(), PEAKS)
    assert found.idle_ns == before.idle_ns - 1500


def test_a_step_waits_for_its_input():
    trace = make_trace(
        [(0, 6000, 0, 0, 1, 1), (6000, 2000, 0, 1, 1, 1)],
        nodes=[("next", "IteratorGetNext"), ("one", "MatMul")],
        runs=[(0, 1, 0, 8000)],
        cores=1,
        tracks=(("Main step", "step", 0, ""), ("Inter-op 0", "inter_op", 0, "")),
    )
    found = limit_of(with_shapes(trace, {"one": (PRODUCT, "float32[10,5]")}), PEAKS)
    assert (found.waits_ns, found.below_peak_ns, found.floor_ns) == (6000, 600, 1400)


def test_no_op_needs_more_than_all_cores_while_it_ran():
    slow = dataclasses.replace(PEAKS, multiply_adds={"float32": 1e6, "float64": 1e6})
    found = limit_of(product_trace(), slow)
    assert found.exceeded and found.floor_ns <= found.step_ns
    assert found.parts()["ns"].sum() == found.step_ns and (found.parts()["ns"] >= 0).all()


def test_ops_that_no_rule_knows_are_counted():
    trace = product_trace()
    found = limit_of(with_shapes(trace, {"one": (PRODUCT, "float32[10,5]")}), PEAKS)
    assert found.df.set_index("name").loc["two", "bound"] == ""
    assert found.unknown_share == pytest.approx(5 / 9)


def test_staged_work_counts():
    trace = staged_trace()
    found = limit_of(with_shapes(trace, {"dense/MatMul": (PRODUCT, "float32[10,5]")}), PEAKS)
    assert "ids/hash" in found.df["name"].tolist()
    assert found.parts()["ns"].sum() == found.step_ns and found.waits_ns > 0


@given(traces(), st.data())
def test_of_any_trace_the_parts_sum_and_the_floor_is_below_the_step(trace, data):
    ops = data.draw(
        st.lists(
            st.sampled_from(["MatMul", "GatherV2", "Relu", "Sum", "IteratorGetNext"]),
            min_size=len(trace.nodes),
            max_size=len(trace.nodes),
        )
    )
    shapes = [data.draw(SHAPES) for _ in ops]
    nodes = trace.nodes.assign(
        op=ops, inputs=[read for read, _ in shapes], outputs=[made for _, made in shapes]
    )
    cpu_ns = data.draw(st.none() | st.integers(1, 2**34))
    untraced = UntracedSteps(steps=8, step_ns=1 + (cpu_ns or 0) // 3, cpu_ns=cpu_ns)
    meta = dataclasses.replace(
        trace.meta, cores=data.draw(st.none() | st.integers(1, 4)), untraced=untraced
    )
    runs = [(0, 1, 3, 3 + data.draw(st.integers(0, 2**40))), (1, 1, 0, 5)]
    trace = dataclasses.replace(
        trace, nodes=nodes, meta=meta, runs=trace.runs.assign(end_ns=[runs[0][3], 5])
    )
    if not (nodes["outputs"] != "").any():
        return
    found = limit_of(trace, PEAKS)
    parts = found.parts()["ns"]
    assert parts.sum() == found.step_ns and (parts >= 0).all()
    assert 0 <= found.floor_ns <= found.step_ns
    # Nodes tell the same as parts, but for what is rounded off.
    took = found.floor_ns + found.below_peak_ns
    assert found.df["took_ns"].sum() / found.cores == pytest.approx(took, rel=1e-6, abs=3)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (staged_trace(), "does not know the shapes of its tensors"),
        (make_trace(), "has no steps"),
        (product_trace(task="worker 0"), "is of a cluster"),
    ],
)
def test_traces_without_an_answer(trace, words):
    with pytest.raises(TraceError, match=words):
        limit_of(trace, PEAKS)


def test_steps_on_a_gpu():
    trace = product_trace()
    nodes = trace.nodes.assign(device="/job:localhost/device:GPU:0")
    with pytest.raises(TraceError, match="only the CPU's peaks"):
        limit_of(dataclasses.replace(trace, nodes=nodes), PEAKS)


def test_peaks_as_json():
    assert Peaks.from_json(PEAKS.to_json()) == PEAKS
    with pytest.raises(ValueError, match="lines is 0"):
        dataclasses.replace(PEAKS, lines=0.0)
    with pytest.raises(ValueError, match="0 cores"):
        dataclasses.replace(PEAKS, cores=0)
