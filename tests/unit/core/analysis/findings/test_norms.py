"""The finding about batch normalizations of many ops."""

from __future__ import annotations

import pytest

from tests.builders.findings import keys, of, on_gpu, plain
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def norm_trace(*scopes: str, variance: str = "SquaredDifference") -> Trace:
    """Normalizations one after the other, then a product; each op takes 10 µs."""
    kinds: dict[str, str] = {}
    for scope in scopes:
        kinds |= {
            f"{scope}moments/mean": "Mean",
            f"{scope}moments/SquaredDifference": variance,
            f"{scope}batchnorm/Rsqrt": "Rsqrt",
            f"{scope}batchnorm/add_1": "AddV2",
            f"gradients/{scope}batchnorm/mul_1_grad/Mul": "Mul",
            f"gradient_tape/{scope}moments/truediv": "RealDiv",
        }
    kinds["product"] = "MatMul"
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    return step_trace(laid, chain(*kinds), step_us=10 * len(laid))


def test_one_of_many_ops():
    found = of(norm_trace("bottom/"), "many_op_norms")
    assert found.title == "6 ops do 1 batch normalization" and found.toggle == "auto_fused"
    assert found.cost_ns == found.gain_ns == 60 * US
    assert plain(found.evidence) == (
        "With their gradients they take 60 µs of thread time a step, 86 % of all ops, as most of "
        "them go through the whole batch; the critical path runs them, or waits behind them, for "
        "60 µs."
    )
    assert "product" not in found.nodes


@pytest.mark.parametrize("scopes", [("a/", "b/"), ("a/norm/", "a/"), ("", "b/")])
def test_several_are_told_apart(scopes: tuple[str, ...]):
    assert of(norm_trace(*scopes), "many_op_norms").title == "12 ops do 2 batch normalizations"


def test_what_has_no_moments_of_its_own_is_none():
    assert "many_op_norms" not in keys(norm_trace("bottom/", variance="Sub"))


def test_on_a_gpu_is_none_that_fusion_would_do():
    assert "many_op_norms" not in keys(on_gpu(norm_trace("bottom/")))
