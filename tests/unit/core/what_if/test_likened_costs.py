"""Fused batch normalizations and dot interactions → the nodes that tell what they take."""

from __future__ import annotations

from tests.builders.graphs import graph
from workbench.core.what_if.costs.likened_costs import like_results

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
dots = WorkbenchDotInteraction(x) float32
y = Identity(dots) float32
given = Neg(y) float32
back = WorkbenchDotInteractionGrad(given, x) float32
alone = WorkbenchDotInteractionGrad(given, z) float32
"""


def test_an_interaction_and_its_gradient_are_like_what_gives_the_dots():
    view = graph(INTERACTION)
    found = like_results(view)
    assert {view.names[node]: name for node, name in found.items()} == {"dots": "y", "back": "y"}


def test_other_graphs_have_none():
    assert like_results(graph("x = Placeholder float32\ny = Neg(x) float32")) == {}
