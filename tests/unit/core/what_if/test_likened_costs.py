"""Fused batch normalizations and interactions → the nodes that tell what they take."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.graphs import graph
from workbench.core.prediction.node_costs import Costs
from workbench.core.what_if.costs.graph_costs import costs_in
from workbench.core.what_if.costs.likened_costs import like_results, stock_ops

FUSED = """
x = Placeholder float32
gamma = VariableV2 float32_ref
beta = VariableV2 float32_ref
norm = WorkbenchBatchNorm(x, gamma, beta) float32 float32 float32
y = Identity(norm) float32
mean = Identity(norm:1) float32
given = Neg(y) float32
back = WorkbenchBatchNormGrad(given, x, gamma, norm:1, norm:2) float32 float32 float32
alone = WorkbenchBatchNormGrad(given, x, gamma, mean, mean) float32 float32 float32
"""


def test_an_op_and_its_gradient_are_like_what_gives_the_normalized_matrix():
    view = graph(FUSED)
    found = like_results(view)
    assert {view.names[node]: name for node, name in found.items()} == {"norm": "y", "back": "y"}


INTERACTION = """
x = Placeholder float32
z = Placeholder float32
made = Workbench{kind}Interaction(x) float32
y = Identity(made) float32
given = Neg(y) float32
back = Workbench{kind}InteractionGrad(given, x) float32
alone = Workbench{kind}InteractionGrad(given, z) float32
"""


@pytest.mark.parametrize("kind", ["Dot", "Fm"])
def test_an_interaction_and_its_gradient_are_like_what_gives_the_result(kind):
    view = graph(INTERACTION.format(kind=kind))
    found = like_results(view)
    assert {view.names[node]: name for node, name in found.items()} == {"made": "y", "back": "y"}


def test_gradients_of_two_interactions_of_the_same_vectors_are_their_own():
    both = (
        INTERACTION.format(kind="Dot")
        + """
sums = WorkbenchFmInteraction(x) float32
total = Identity(sums) float32
of_sums = WorkbenchFmInteractionGrad(given, x) float32
"""
    )
    view = graph(both)
    found = {view.names[node]: name for node, name in like_results(view).items()}
    assert (found["back"], found["of_sums"]) == ("y", "total")


def test_a_product_is_like_the_stock_one_of_its_name():
    view = graph("x = Placeholder float32\ny = WorkbenchMatMul(x, x) float32")
    assert like_results(view) == {view.index["y"]: "y"}


def test_lines_are_like_the_stock_op_of_their_name_and_columns_like_as_many_as_they_are():
    view = graph(
        """
lines = Placeholder string
columns = WorkbenchDecodeCsv(lines) string string
ids = WorkbenchHashColumns(columns, columns:1) int64 int64 int64 int64
first = Identity(ids) int64
second = Identity(ids:1) int64
where = Identity(ids:2) int64
"""
    )
    found = like_results(view)
    named = {view.names[node]: (name, stock_ops(view, node)) for node, name in found.items()}
    assert named == {"columns": ("columns", 1), "ids": ("first", 2)}


def test_other_graphs_have_none():
    assert like_results(graph("x = Placeholder float32\ny = Neg(x) float32")) == {}


STOCK = """
x = Placeholder float32
y = AddV2(x, x) float32
term = Mul(y, y) float32
x_sum = AddN(term, x) float32
of_relu = ReluGrad(x_sum, x) float32
of_bias = BiasAddGrad(of_relu) float32
train = Sub(of_relu, of_bias) float32
"""
OF_RELU = """
x = Placeholder float32
norm = WorkbenchBatchNorm(x, x, x) float32 float32 float32
y = Identity(norm) float32
term = Mul(y, y) float32
x_sum = AddN(term, x) float32
back = WorkbenchBatchNormGrad(y, x, x, norm:1, norm:2) float32 float32 float32 float32
of_relu = Identity(back) float32
of_bias = Identity(back:3) float32
train = Sub(of_relu, of_bias) float32
"""


def test_the_gradient_of_a_relu_is_part_of_that_of_the_norm():
    stock, fused = graph(STOCK), graph(OF_RELU)
    costs = Costs(
        span_ns=np.full(len(stock), 10.0), runs=np.ones(len(stock)), inputs={}, between_ns=0.0
    )
    likened = {node: (name, 2.0) for node, name in like_results(fused).items()}
    spans = costs_in(costs, stock, fused, {}, likened).span_ns
    taken = {name: ns for name, ns in zip(fused.names, spans.tolist(), strict=True) if ns}
    assert taken == {"x": 10, "norm": 20, "back": 20, "train": 10}


PRODUCTS = """
x = Placeholder float32
y = MatMul(x, x) float32
idle = MatMul(x, x) float32
"""


def test_a_product_by_another_kernel_takes_some_times_as_long_and_runs_as_often():
    traced, target = graph(PRODUCTS), graph(PRODUCTS)
    costs = Costs(
        span_ns=np.array([10.0, 12.0, 0.0]),
        runs=np.array([1.0, 1.0, 0.0]),
        inputs={},
        between_ns=2.0,
    )
    likened = {target.index[name]: (name, 0.5) for name in ("y", "idle")}
    found = costs_in(costs, traced, target, {}, likened)
    spans, runs = (
        {name: each[target.index[name]] for name in target.names}
        for each in (found.span_ns, found.runs)
    )
    assert (spans["x"], spans["y"]) == (10.0, 0.5 * 10 + 2)
    assert runs == {"x": 1.0, "y": 1.0, "idle": 0.0}
