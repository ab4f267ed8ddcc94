"""The finding about batch normalizations of many ops."""

from __future__ import annotations

from tests.builders.findings import keys, of, plain, with_fusable
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def norm_ops(scope: str) -> dict[str, str]:
    """Ops of a normalization as TensorFlow calls them, and of its gradient."""
    return {
        f"{scope}moments/mean": "Mean",
        f"{scope}moments/SquaredDifference": "SquaredDifference",
        f"{scope}batchnorm/Rsqrt": "Rsqrt",
        f"{scope}batchnorm/add_1": "AddV2",
        f"gradients/{scope}batchnorm/mul_1_grad/Mul": "Mul",
        f"gradient_tape/{scope}moments/truediv": "RealDiv",
    }


def norm_trace(*scopes: str) -> Trace:
    """Normalizations one after the other, then a product; each op takes 10 µs."""
    kinds = {name: op for scope in scopes for name, op in norm_ops(scope).items()}
    kinds["product"] = "MatMul"
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    return step_trace(laid, chain(*kinds), step_us=10 * len(laid))


def test_one_of_many_ops():
    norm = ("batch normalization", *norm_ops("bottom/"))
    found = of(with_fusable(norm_trace("bottom/"), bottom=norm), "many_op_norms")
    assert found.title == "6 ops do 1 batch normalization" and found.toggle == "auto_fused"
    assert found.cost_ns == found.gain_ns == 60 * US
    assert plain(found.evidence) == (
        "With their gradients they take 60 µs of thread time a step, 86 % of all ops, as most of "
        "them go through the whole batch; the critical path runs them, or waits behind them, for "
        "60 µs."
    )
    assert "product" not in found.nodes


def test_several_are_told_apart():
    parts = {scope: ("batch normalization", *norm_ops(scope)) for scope in ("a/", "a/b/")}
    trace = with_fusable(norm_trace("a/", "a/b/"), **parts)
    assert of(trace, "many_op_norms").title == "12 ops do 2 batch normalizations"


def test_one_that_the_rules_refuse_costs_what_it_costs_and_is_none():
    trace = norm_trace("a/", "b/")
    fused = with_fusable(trace, a=("batch normalization", *norm_ops("a/")))
    assert of(fused, "many_op_norms").title == "6 ops do 1 batch normalization"
    assert "many_op_norms" not in keys(with_fusable(trace))


def test_without_the_answer_of_the_rules_is_none():
    assert "many_op_norms" not in keys(norm_trace("bottom/"))
