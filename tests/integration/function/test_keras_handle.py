"""The handle of a Keras model's smart stage: given back, taken again, copied."""

from __future__ import annotations

import copy
import inspect

import keras
import numpy as np

from tests.builders.functions import producers
from tests.builders.keras_models import (
    batches,
    word_model,
)
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.options import SmartStageOptions


class TestHandle:
    def test_removing_gives_the_model_back(self):
        model = word_model()
        stage = smart_stage_model(model)
        assert stage.plan is None
        model.fit(batches(), verbose=0)
        assert stage.plan is not None
        stage.remove()
        stage.remove()
        assert "make_train_function" not in model.__dict__
        assert model.train_function is None
        model.fit(batches(), verbose=0)
        assert inspect.isfunction(model.train_function)

    def test_the_end_of_a_with_block_removes(self):
        model = word_model()
        with smart_stage_model(model) as stage:
            model.fit(batches(), verbose=0)
            assert stage.plan is not None
        assert "make_train_function" not in model.__dict__

    def test_staging_twice_gives_the_same_handle(self):
        model = word_model()
        stage = smart_stage_model(model)
        model.fit(batches(), verbose=0)
        made = model.train_function
        assert smart_stage_model(model) is stage
        assert model.train_function is made

    def test_staging_again_with_other_options_takes_them(self):
        model = word_model()
        stage = smart_stage_model(model)
        model.fit(batches(), verbose=0)
        assert smart_stage_model(model, SmartStageOptions(capacity=3)) is stage
        model.fit(batches(), verbose=0)
        assert stage.plan.stages[0].options.capacity == 3

    def test_a_copy_of_a_staged_model_is_a_plain_model(self, tmp_path):
        model = word_model()
        smart_stage_model(model)
        model.fit(batches(), verbose=0)
        model.save(tmp_path / "m.keras")
        for other in (copy.deepcopy(model), keras.models.load_model(tmp_path / "m.keras")):
            assert "make_train_function" not in other.__dict__
            x, _ = next(iter(batches()))
            np.testing.assert_array_equal(model.predict(x, verbose=0), other.predict(x, verbose=0))

    def test_threads_wait_for_room_and_go_with_the_iterator(self):
        model = word_model()
        smart_stage_model(model)
        seen = []
        watch = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append(len(producers()))
        )
        data = batches().repeat()
        model.fit(data, steps_per_epoch=3, epochs=2, verbose=0, callbacks=[watch])
        assert seen == [1, 1]
        assert not producers()
