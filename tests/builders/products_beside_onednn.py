"""A program that trains dense layers beside oneDNN, with a plan of another machine.

Prints how many products the plan made here has, how many the other one, and whether both train
alike.
"""

from __future__ import annotations

from unittest import mock

import tensorflow as tf

import workbench as wb
from tests.builders.batch_norms import built, layer, loss_of, matrix
from tests.builders.fused_graphs import OPTIMIZERS, require_trains_alike
from tests.builders.fused_parts import names_of
from workbench.core.fusion.rules import dense_layer


def main() -> None:
    with built() as graph:
        y = layer(tf.tanh(layer(matrix(40, 64), 48, "a")), 64, "b")
        train_op = OPTIMIZERS["descent"]().minimize(loss_of(y))
    here = wb.plan_fusion(graph)
    with mock.patch.object(dense_layer, "kernel_is_faster", new=lambda *, transposed: transposed):
        elsewhere = wb.plan_fusion(graph)
    require_trains_alike(graph, elsewhere, y, train_op, rtol=1e-4, atol=1e-5, steps=1)
    print(
        len(names_of(here, "matrix product")), len(names_of(elsewhere, "matrix product")), "alike"
    )


if __name__ == "__main__":
    main()
