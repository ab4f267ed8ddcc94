"""Data that is told of an epoch's end is not read beyond it; its fit is plain Keras's."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.builders.functions import producers
from tests.builders.grids import rest_slow
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.options import SmartStageOptions

EPOCHS = 3


class Data(keras.utils.PyDataset):
    """Batches by number, endless or not; notes the ends of epochs that it hears of."""

    def __init__(self, count: int | None, **workers):
        super().__init__(**workers)
        self.count, self.ends = count, 0

    @property
    def num_batches(self):
        return self.count

    def __getitem__(self, i):
        return np.full((4, 3), i % 5, "float32"), np.full((4, 1), i % 3, "float32")

    def on_epoch_end(self):
        self.ends += 1


def trained(data: Data, options: SmartStageOptions | None, calls_of: int, **fit) -> tuple:
    """Losses and weights; a stage where it has options."""
    keras.utils.set_random_seed(3)
    layers = [keras.Input((3,)), keras.layers.Rescaling(0.5), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", jit_compile=False, steps_per_execution=calls_of)
    if options is not None:
        smart_stage_model(model, options)
    history = model.fit(data, epochs=EPOCHS, verbose=0, shuffle=False, **fit)
    assert not producers()
    return history.history["loss"], [w.tolist() for w in model.get_weights()], data.ends


@pytest.mark.parametrize(
    ("count", "steps", "calls_of"),
    [(None, 3, 1), (None, 3, 2), (20, 4, 1), (6, None, 1)],
    ids=["endless", "two steps a call", "part of it an epoch", "all of it an epoch"],
)
@pytest.mark.parametrize("workers", rest_slow([1, 2], 2))
def test_a_py_dataset_trains_as_plain(count, steps, calls_of, workers):
    def fit(options):
        data = Data(count, workers=workers, use_multiprocessing=False)
        return trained(data, options, calls_of, steps_per_epoch=steps)

    assert fit(SmartStageOptions(capacity=3)) == fit(None)


def test_several_producers_end_with_fit_though_they_wait_for_an_epoch():
    data = Data(None, workers=2, use_multiprocessing=False)
    options = SmartStageOptions(num_threads=2, capacity=2, reorder=True)
    losses, _, ends = trained(data, options, 1, steps_per_epoch=3)
    assert len(losses) == EPOCHS and ends >= EPOCHS
