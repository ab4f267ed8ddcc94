"""The finding about interactions of vectors of many ops."""

from __future__ import annotations

import pytest

from tests.builders.findings import keys, of, on_gpu, plain
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def dot_trace(other: str = "x", flat: str = "Reshape", product: str = "BatchMatMulV2") -> Trace:
    """Products of vectors with others, picked, and their gradients; each op takes 10 µs."""
    kinds = {
        "x": "Pack",
        "net/MatMul": product,
        "net/flat": flat,
        "net/GatherV2": "GatherV2",
        "gradients/net/GatherV2_grad/UnsortedSegmentSum": "UnsortedSegmentSum",
        "gradients/net/MatMul_grad/MatMul_1": "BatchMatMulV2",
        "gradients/net/MatMul_10_grad/MatMul": "MatMul",
    }
    return traced(kinds, [("x", "net/MatMul"), (other, "net/MatMul"), *chain(*list(kinds)[1:])])


def fm_trace(square: str = "Square", other: str = "x") -> Trace:
    """The square of a sum of vectors less the sum of their squares, and of the gradients two."""
    kinds = {
        "x": "Pack",
        "fm/Sum": "Sum",
        "fm/Square": square,
        "fm/Square_1": square,
        "fm/Sum_1": "Sum",
        "fm/sub": "Sub",
        "gradients/fm/Sum_1_grad/Tile": "Tile",
        "gradients/fm/Square_grad/Mul": "Mul",
    }
    edges = [
        *chain("x", "fm/Sum", "fm/Square", "fm/sub", *list(kinds)[-2:]),
        *chain(other, "fm/Square_1", "fm/Sum_1", "fm/sub"),
    ]
    return traced(kinds, edges)


def traced(kinds: dict[str, str], edges: list[tuple[str, str]]) -> Trace:
    """One op after the other."""
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    also = [("y", "VariableV2")]
    return step_trace(laid, list(dict.fromkeys(edges)), step_us=10 * len(laid), also=also)


def test_one_whose_product_onednn_makes_is_one_too():
    found = of(dot_trace(product="_MklBatchMatMulV2"), "many_op_interactions")
    assert found.title == "5 ops do 1 dot interaction"


def test_one_of_many_ops():
    found = of(dot_trace(), "many_op_interactions")
    assert found.title == "5 ops do 1 dot interaction" and found.toggle == "auto_fused"
    assert found.cost_ns == found.gain_ns == 50 * US
    assert plain(found.evidence) == (
        "With their gradients they take 50 µs of thread time a step, 71 % of all ops: all products "
        "of an example's vectors are made and some of them picked, and their gradients spread over "
        "all again; the critical path runs them, or waits behind them, for 50 µs."
    )
    assert "gradients/net/MatMul_10_grad/MatMul" not in found.nodes


def test_other_products_are_none():
    assert "many_op_interactions" not in keys(dot_trace(other="y"))
    assert "many_op_interactions" not in keys(dot_trace(flat="Neg"))


@pytest.mark.parametrize("square", ["Square", "Pow", "Mul"])
def test_one_of_a_factorization_machine(square):
    found = of(fm_trace(square), "many_op_interactions")
    assert found.title == "7 ops do 1 FM interaction" and found.toggle == "auto_fused"
    assert "read for their sum, squared and summed again" in plain(found.evidence)


def test_squares_of_other_vectors_are_none():
    assert "many_op_interactions" not in keys(fm_trace(other="y"))
    assert "many_op_interactions" not in keys(fm_trace(square="Neg"))


def test_on_a_gpu_is_none_that_fusion_would_do():
    for trace in (dot_trace(), fm_trace()):
        assert "many_op_interactions" not in keys(on_gpu(trace))
