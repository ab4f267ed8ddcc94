"""Two traces aligned by node: what changed, and that the differences sum to the whole."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.alignments import staged, unstaged
from tests.builders.examples import few
from tests.builders.traces import (
    MS,
    START_NS,
    make_trace,
    staged_trace,
    timed_trace,
    unstaged_trace,
)
from workbench import WorkbenchError
from workbench.core.analysis.alignment import align
from workbench.core.trace.meta import UntracedSteps
from workbench.errors import OptionError, TraceError


def test_what_moved_to_the_stage_is_the_difference():
    alignment = align(unstaged(), staged())
    assert alignment.basis == "critical path"
    assert alignment.notes == ("Different titles: 'off' and 'stage'.",)
    assert (alignment.a.step_ns, alignment.b.step_ns) == (10 * MS, 6 * MS)
    assert alignment.difference_ns == -4 * MS
    assert alignment.waterfall.to_dict("list") == {
        "kind": ["op", "op", "return of the step"],
        "side": ["", "", "step"],
        "family": ["Input, decode", "Dense matmul", ""],
        "status": ["moved to the stage", "matched", ""],
        "nodes": [1, 1, 0],
        "a_total_ns": [8 * MS, 10 * MS, 2 * MS],
        "b_total_ns": [0, 15 * MS, 3 * MS],
        "a_ns": [4 * MS, 5 * MS, 1 * MS],
        "b_ns": [0, 5 * MS, 1 * MS],
        "difference_ns": [-4 * MS, 0, 0],
    }
    assert repr(alignment) == "Alignment('off' → 'stage', 10.000 → 6.000 ms a step)"


def test_the_table_has_work_and_path_side_by_side():
    table = align(unstaged(), staged()).df
    assert table.columns.tolist() == [
        *("name", "op", "family", "status", "nodes_a", "nodes_b"),
        *("a_ns", "b_ns", "difference_ns"),
        *("path_a_ns", "path_b_ns", "path_difference_ns", "source"),
    ]
    read = table.iloc[0]
    # the stage still reads for 4 ms an item, but no step waits for it
    assert (read["name"], read["status"]) == ("read", "moved to the stage")
    assert (read["a_ns"], read["b_ns"], read["difference_ns"]) == (4 * MS, 4 * MS, 0)
    assert (read["path_a_ns"], read["path_b_ns"]) == (4 * MS, 0)
    assert read["path_difference_ns"] == -4 * MS


def test_by_scope_sums_to_the_same():
    alignment = align(unstaged(), staged())
    scopes = alignment.by_scope()
    assert scopes["scope"].tolist() == ["read", "dense", ""]
    assert scopes["difference_ns"].sum() == alignment.difference_ns


def test_the_source_of_the_later_run_counts():
    a, b = unstaged(), staged()
    with_lines = [
        dataclasses.replace(trace, nodes=trace.nodes.assign(source=lines))
        for trace, lines in ((a, ["a.py:1 f", "a.py:2 f"]), (b, ["b.py:1 g", "", ""]))
    ]
    table = align(*with_lines).df.set_index("name")
    assert table["source"].to_dict() == {"read": "b.py:1 g", "dense": "a.py:2 f"}


def test_an_op_that_another_took_the_place_of():
    a = timed_trace([("m/C1/embedding_lookup/Where", "Where", 1), ("x", "Relu", 1)])
    b = timed_trace(
        [("m/C1/fused_embedding_lookup", "WorkbenchLocalLookUp", 1), ("x", "_FusedMatMul", 1)]
    )
    table = align(a, b).df.set_index("name")
    assert table["op"].to_dict() == {
        "m/C1/embedding_lookup": "Where → WorkbenchLocalLookUp",
        "x": "Relu → _FusedMatMul",
    }
    assert table["status"].to_dict() == {"m/C1/embedding_lookup": "fused", "x": "matched"}


def test_intervals_of_the_steps():
    uneven = timed_trace([[("x", "Relu", 1)], [("x", "Relu", 3)]], steps=2)
    even = timed_trace([("x", "Relu", 2)], steps=2)
    alignment = align(uneven, even)
    # 0.1 ms of the client's own and 1 or 3 of the op; Student's t for one degree of freedom
    low, high = alignment.a.interval_ns
    assert (low, high) == pytest.approx((2.1 * MS - 12.7062 * MS, 2.1 * MS + 12.7062 * MS))
    assert alignment.b.interval_ns == (2.1 * MS, 2.1 * MS)
    assert alignment.difference_interval_ns == pytest.approx((-12.7062 * MS, 12.7062 * MS))
    single = timed_trace([("x", "Relu", 2)], steps=1)
    assert align(single, even).difference_interval_ns is None
    assert align(single, even).a.interval_ns is None


def test_without_edges_op_time_explains_the_step():
    alignment = align(unstaged_trace(), staged_trace())
    assert alignment.basis == "op time"
    assert alignment.notes[0] == (
        "'All off' and 'Stage' do not know which op feeds which, so the step time is taken apart "
        "by op time, not by the critical path: ops that ran at the same time count in full, and "
        "what they exceed or leave of the step is everything else."
    )
    waterfall = alignment.waterfall
    assert waterfall["a_total_ns"].sum() == alignment.a.total_ns == 40 * MS
    assert waterfall["b_total_ns"].sum() == alignment.b.total_ns
    input_row = waterfall[waterfall["family"] == "Input, decode"].iloc[0]
    assert (input_row["a_ns"], input_row["b_ns"]) == (4 * MS, 0)
    (rest,) = waterfall[waterfall["kind"] == "everything else"].to_dict("records")
    # 11.9 ms of ops on two threads in a step of 10 ms
    ops = 4 * MS + MS + 2 * MS + 1_500_000 + 2 * MS + 900_000
    assert rest["a_ns"] == 10 * MS - ops
    assert alignment.df["path_a_ns"].isna().all()


def test_one_trace_without_edges_is_named():
    (first, *_) = align(unstaged(), staged_trace()).notes
    assert first.startswith("The trace of 'Stage' does not know which op feeds which")


def test_circumstances_are_said():
    day = 86_400 * 1_000 * MS
    other = {"cores": 8, "tensorflow": "2.20.0", "source": "step_stats", "inter_op_threads": 4}
    a, b = unstaged(), staged(at=START_NS + 2 * day, title="late", lost_ops=7, **other)
    assert align(a, b).notes == (
        "Captured on different days: 'off' on 2023-11-14, 'late' on 2023-11-16 (UTC).",
        "Another machine, or other cores of it: 'off' had 2, 'late' had 8.",
        "Different versions of TensorFlow: '2.21.0' and '2.20.0'.",
        "Different titles: 'off' and 'late'.",
        "Different tracers: 'executor' and 'step_stats'.",
        "Different inter-op threads: 'off' had one per core, 'late' had 4.",
        "The trace of 'late' lacks 7 ops: its tracer's memory was full.",
    )


def test_unchanged_ops_that_took_longer_are_said():
    a, b = (timed_trace([("x", "Relu", ms)], title=t) for ms, t in ((2, "slow"), (1, "quick")))
    (*_, note) = align(a, b).notes
    assert note == (
        "Matched ops took 2.00 times as long in 'slow' as in 'quick': beside the graph something "
        "else differs, such as a busier machine, cores shared with a stage, or the batch size."
    )


def test_untraced_steps_that_contradict_are_said():
    a = unstaged(untraced=UntracedSteps(steps=9, step_ns=5_000_000), title="x")
    for step_ns, said in ((5_500_000, True), (4_000_000, False)):
        b = staged(untraced=UntracedSteps(steps=9, step_ns=step_ns), title="x")
        assert align(a, b).notes == (
            (
                "Untraced steps of the same runs differ the other way round: 5.0 ms in 'x (a)', "
                "5.5 ms in 'x (b)'. Times of these traces do not say which is faster.",
            )
            if said
            else ()
        )


def test_other_models_are_said():
    a, b = (timed_trace([(n, "Relu", 9), ("x", "Relu", 1)], title=n) for n in ("p", "q"))
    assert align(a, b).notes[-1] == (
        "Only 10 % of the op time is in nodes that both have: these may be different models."
    )


def test_saved_traces_are_opened_and_called_by_their_files(tmp_path):
    for name, trace in (("before", unstaged()), ("after", staged())):
        trace.save(tmp_path / f"{name}.parquet")
    alignment = align(tmp_path / "before.parquet", str(tmp_path / "after.parquet"))
    assert (alignment.a.label, alignment.b.label) == ("before", "after")
    assert alignment.difference_ns == -4 * MS
    with pytest.raises(TraceError, match="none.parquet"):
        align(tmp_path / "none.parquet", unstaged())


def test_labels():
    assert align(unstaged(), unstaged()).a.label == "off (a)"
    assert align(unstaged(title=""), unstaged(title="")).b.label == "(b)"
    named = align(unstaged(), staged(), labels=("before", "after"))
    assert (named.a.label, named.b.label) == ("before", "after")
    for wrong in (("x", "x"), ("x",), ["x", "y"], ("x", "")):
        with pytest.raises(OptionError) as error:
            align(unstaged(), staged(), labels=wrong)
        assert str(error.value) == f"labels is {wrong!r}; expected two different texts"


def test_a_trace_without_steps():
    with pytest.raises(WorkbenchError) as error:
        align(make_trace(title="none"), unstaged())
    assert str(error.value) == "trace 'none' has no step, so nothing of it can be aligned"


ops = st.lists(
    st.tuples(
        st.sampled_from(["x", "m/y", "g/y", "m/_1/z", "s/m/y", "m/fused_embedding_lookup"]),
        st.sampled_from(["MatMul", "Relu", "WorkbenchPreLookUp"]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda op: op[0],
)


@st.composite
def traces(draw):
    each = draw(st.lists(ops, min_size=1, max_size=4))
    kinds = {}
    each = [[(n, kinds.setdefault(n, op), ms) for n, op, ms in step] for step in each]
    ahead = {"s": draw(ops)} if draw(st.booleans()) else None
    trace = timed_trace(each, ahead, steps=len(each))
    if draw(st.booleans()):
        return trace
    count = len(trace.nodes)
    chain = {"source": np.arange(count - 1), "target": np.arange(1, count), "control": 0}
    return dataclasses.replace(trace, edges=pd.DataFrame(chain))


@few(12)
@given(traces(), traces())
def test_differences_sum_and_the_way_back_is_the_negative(a, b):
    there, back = align(a, b), align(b, a)
    for table in (there.waterfall, there.by_scope(1)):
        for side, run in (("a", there.a), ("b", there.b)):
            assert int(table[f"{side}_total_ns"].sum()) == run.total_ns
        exact = sum(
            Fraction(row.b_total_ns, there.b.steps) - Fraction(row.a_total_ns, there.a.steps)
            for row in table.itertuples()
        )
        assert exact == Fraction(there.b.total_ns, there.b.steps) - Fraction(
            there.a.total_ns, there.a.steps
        )
        assert table["difference_ns"].sum() == pytest.approx(there.difference_ns, abs=1)
    assert there.difference_ns == -back.difference_ns
    one, other = (
        alignment.df.sort_values("name", ignore_index=True) for alignment in (there, back)
    )
    assert sorted(one["difference_ns"]) == pytest.approx(sorted(-other["difference_ns"]))
    assert there.waterfall["difference_ns"].abs().sum() == pytest.approx(
        back.waterfall["difference_ns"].abs().sum()
    )


@few(8)
@given(traces())
def test_a_trace_does_not_differ_from_itself(a):
    alignment = align(a, a)
    assert alignment.difference_ns == 0
    assert (alignment.waterfall["difference_ns"] == 0).all()
    assert (alignment.df["difference_ns"] == 0).all()
    assert set(alignment.df["status"]) == {"matched"}
