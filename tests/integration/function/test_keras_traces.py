"""A fused Keras model is traced as often as Keras itself traces it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.builders.grids import rest_slow
from tests.builders.keras_lookups import dense_data, dense_model


class Counting(keras.Model):
    """Counts the traces of its steps."""

    traces = 0

    def train_step(self, data: Any) -> Any:
        Counting.traces += 1
        return super().train_step(data)

    def test_step(self, data: Any) -> Any:
        Counting.traces += 1
        return super().test_step(data)


def model_of(*, has_tables: bool, steps: int) -> tuple[keras.Model, Any]:
    """A model and its data; nothing of the one without tables is fused."""
    data = dense_data()
    if has_tables:
        inputs, outputs = (plain := dense_model()).inputs, plain.outputs
    else:
        data = data.map(lambda ids, labels: (labels, labels))
        inputs = keras.Input((1,))
        outputs = keras.layers.Dense(1)(keras.layers.Dense(4, activation="relu")(inputs))
    model = Counting(inputs, outputs)
    model.compile("adam", "mse", jit_compile=False, steps_per_execution=steps)
    return model, data


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("has_tables", rest_slow([True, False], True))
def test_a_step_is_traced_as_often_as_keras_does(has_tables: bool, steps: int) -> None:
    (plain, data), (fused, _) = (model_of(has_tables=has_tables, steps=steps) for _ in "ab")
    fused.set_weights(plain.get_weights())
    fusion = wb.fuse_model(fused)
    counts = []
    for model in (plain, fused):
        Counting.traces = 0
        model.fit(data, verbose=0)
        trained = Counting.traces
        model.evaluate(data, verbose=0)
        counts.append((trained, Counting.traces - trained))
    assert counts == [(2, 1), (2, 1)]
    assert bool(fusion.plan.count) == has_tables
    for found, expected in zip(fused.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
