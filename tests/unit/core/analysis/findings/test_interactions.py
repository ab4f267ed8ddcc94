"""The finding about dot interactions of many ops."""

from __future__ import annotations

from tests.builders.findings import keys, of, plain
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def interaction_trace(other: str = "x", flat: str = "Reshape") -> Trace:
    """Products of vectors with others, picked, and their gradients; each op takes 10 µs."""
    kinds = {
        "x": "Pack",
        "net/MatMul": "BatchMatMulV2",
        "net/flat": flat,
        "net/GatherV2": "GatherV2",
        "gradients/net/GatherV2_grad/UnsortedSegmentSum": "UnsortedSegmentSum",
        "gradients/net/MatMul_grad/MatMul_1": "BatchMatMulV2",
        "gradients/net/MatMul_10_grad/MatMul": "MatMul",
    }
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    names = list(kinds)
    edges = [
        ("x", "net/MatMul"),
        (other, "net/MatMul"),
        *chain(*names[1:]),
    ]
    also = [("y", "VariableV2")]
    return step_trace(laid, list(dict.fromkeys(edges)), step_us=10 * len(laid), also=also)


def test_one_of_many_ops():
    found = of(interaction_trace(), "many_op_interactions")
    assert found.title == "5 ops do 1 dot interaction" and found.toggle == "auto_fused"
    assert found.cost_ns == found.gain_ns == 50 * US
    assert plain(found.evidence) == (
        "With their gradients they take 50 µs of thread time a step, 71 % of all ops: all products "
        "of an example's vectors are made and some of them picked, and their gradients spread over "
        "all again; the critical path runs them, or waits behind them, for 50 µs."
    )
    assert "gradients/net/MatMul_10_grad/MatMul" not in found.nodes


def test_other_products_are_none():
    assert "many_op_interactions" not in keys(interaction_trace(other="y"))
    assert "many_op_interactions" not in keys(interaction_trace(flat="Neg"))
