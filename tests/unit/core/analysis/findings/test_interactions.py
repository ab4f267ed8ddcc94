"""The finding about interactions of vectors of many ops."""

from __future__ import annotations

from tests.builders.findings import keys, of, plain, with_fusable
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace

DOTS = {
    "net/MatMul": "_MklBatchMatMulV2",
    "net/flat": "Reshape",
    "net/GatherV2": "GatherV2",
    "gradients/net/GatherV2_grad/UnsortedSegmentSum": "UnsortedSegmentSum",
    "gradients/net/MatMul_grad/MatMul_1": "BatchMatMulV2",
}
MACHINE = {
    "fm/Sum": "Sum",
    "fm/Square": "Square",
    "fm/Square_1": "Square",
    "fm/Sum_1": "Sum",
    "fm/sub": "Sub",
    "gradients/fm/Sum_1_grad/Tile": "Tile",
    "gradients/fm/Square_grad/Mul": "Mul",
}


def traced(*parts: dict[str, str]) -> Trace:
    """Vectors, then one op after the other, and another product; each op takes 10 µs."""
    kinds = {"x": "Pack"}
    for part in parts:
        kinds |= part
    kinds["gradients/net/MatMul_10_grad/MatMul"] = "MatMul"
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    return step_trace(laid, chain(*kinds), step_us=10 * len(laid))


def test_one_of_many_ops():
    trace = with_fusable(traced(DOTS), net=("dot interaction", *DOTS))
    found = of(trace, "many_op_interactions")
    assert found.title == "5 ops do 1 dot interaction" and found.toggle == "auto_fused"
    assert found.cost_ns == found.gain_ns == 50 * US
    assert plain(found.evidence) == (
        "With their gradients they take 50 µs of thread time a step, 71 % of all ops: all products "
        "of an example's vectors are made and some of them picked, and their gradients spread over "
        "all again; the critical path runs them, or waits behind them, for 50 µs."
    )
    assert set(found.nodes) == set(DOTS)


def test_one_of_a_factorization_machine():
    trace = with_fusable(traced(MACHINE), fm=("FM interaction", *MACHINE))
    found = of(trace, "many_op_interactions")
    assert found.title == "7 ops do 1 FM interaction" and found.toggle == "auto_fused"
    assert "read for their sum, squared and summed again" in plain(found.evidence)


def test_both_kinds_are_one_finding():
    net, machine = ("dot interaction", *DOTS), ("FM interaction", *MACHINE)
    found = of(with_fusable(traced(DOTS, MACHINE), net=net, fm=machine), "many_op_interactions")
    assert found.title == "12 ops do 1 dot interaction and 1 FM interaction"


def test_one_that_the_rules_refuse_is_none():
    trace = traced(DOTS, MACHINE)
    found = of(with_fusable(trace, fm=("FM interaction", *MACHINE)), "many_op_interactions")
    assert found.title == "7 ops do 1 FM interaction"
    assert "many_op_interactions" not in keys(with_fusable(trace))


def test_without_the_answer_of_the_rules_is_none():
    assert "many_op_interactions" not in keys(traced(DOTS, MACHINE))
