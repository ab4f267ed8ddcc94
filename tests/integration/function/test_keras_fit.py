"""fit of a Keras model with a smart stage gives the same history and weights, and ends as it."""

from __future__ import annotations

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.builders.functions import producers
from tests.builders.keras_models import (
    ROWS,
    Data,
    batches,
    compiled_as,
    examples,
    moved,
    number_model,
    numeric,
    require_same,
    rows,
    word_model,
)
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.options import SmartStageOptions


class TestFit:
    @pytest.mark.slow
    def test_with_strings_in_the_model_and_validation(self):
        def fit(model):
            return model.fit(batches(), epochs=3, verbose=0, validation_data=batches())

        stage = require_same(word_model, fit)
        assert {"LookupTableFindV2", "StringToHashBucketFast"} <= moved(stage)
        assert not {"ReadVariableOp", "StatelessRandomUniformV2"} & moved(stage)

    @pytest.mark.slow
    def test_from_numpy_with_class_weights_and_a_part_for_validation(self):
        def fit(model):
            given = {**numeric(), "class_weight": {0: 1.0, 1: 3.0}, "validation_split": 0.2}
            return model.fit(**given, epochs=2, verbose=0)

        assert "Mul" in moved(require_same(number_model, fit))

    def test_with_sample_weights(self):
        def fit(model):
            return model.fit(**numeric(), sample_weight=np.linspace(0, 1, ROWS), verbose=0)

        require_same(number_model, fit)

    @pytest.mark.slow
    def test_with_steps_per_epoch_reads_on_in_the_next_epoch(self):
        def fit(model):
            return model.fit(batches().repeat(), steps_per_epoch=5, epochs=3, verbose=0)

        require_same(word_model, fit)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "steps", [*(pytest.param(other, marks=pytest.mark.slow) for other in (2, 100)), 4]
    )
    def test_with_several_steps_in_an_execution(self, steps):
        seen = []

        def fit(model):
            counts = keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda batch, logs: seen.append((batch, logs["loss"]))
            )
            return model.fit(batches(), epochs=2, verbose=0, callbacks=[counts])

        require_same(lambda: word_model(steps_per_execution=steps), fit)
        half = len(seen) // 2
        assert seen[:half] == seen[half:] and len(seen) >= 4

    @pytest.mark.slow
    def test_of_data_of_unknown_length_is_as_of_known(self):
        odd = examples().filter(lambda x, y: x["numbers"][0] > 0.3).batch(8)
        assert int(odd.cardinality()) == tf.data.UNKNOWN_CARDINALITY
        count = sum(1 for _ in odd)

        def fit(model):
            data = odd
            if "make_train_function" not in model.__dict__:
                # At an end that it did not know of, Keras's own step has effects without a batch.
                data = data.apply(tf.data.experimental.assert_cardinality(count))
            return model.fit(data, epochs=2, verbose=0)

        require_same(word_model, fit)

    @pytest.mark.slow
    def test_of_data_of_unknown_length_counts_no_step_at_its_end(self):
        counted = []
        for staged in (False, True):
            model = number_model()
            if staged:
                smart_stage_model(model)
            _, numbers, labels = rows(80)
            data = tf.data.Dataset.from_tensor_slices((numbers, labels)).batch(8)
            model.fit(data.filter(lambda x, y: True), epochs=3, verbose=0)
            counted.append(int(model.optimizer.iterations))
        assert counted == [33, 30]

    def test_of_a_py_dataset(self):
        require_same(number_model, lambda m: m.fit(Data(), epochs=2, verbose=0))

    def test_of_a_generator_with_parts_missing(self):
        def generate():
            while True:
                yield from ((*Data()[i], None) for i in range(6))

        require_same(number_model, lambda m: m.fit(generate(), steps_per_epoch=4, verbose=0))

    def test_of_a_model_with_a_train_step_of_its_own(self):
        class Model(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(1)
                self.seen = keras.metrics.Mean(name="seen")

            def call(self, x):
                return self.dense(tf.strings.to_number(tf.strings.as_string(x)))

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(x) - tf.cast(y, tf.float32)) ** 2)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply(gradients, self.trainable_variables)
                self.seen.update_state(loss)
                return {"seen": self.seen.result()}

        def build():
            return compiled_as(Model(), metrics=None, jit_compile=False)

        stage = require_same(build, lambda m: m.fit(**numeric(), epochs=2, verbose=0))
        assert "StringToNumber" in moved(stage)

    @pytest.mark.slow
    def test_of_a_model_that_xla_compiles_is_not_cut(self):
        stage = require_same(
            lambda: number_model(jit_compile=True),
            lambda model: model.fit(**numeric(), epochs=2, verbose=0),
        )
        assert moved(stage) == {"Placeholder"}
        assert "XLA compiles the step as one piece" in stage.plan.describe()

    def test_stopped_early_by_a_callback(self):
        def fit(model):
            stop = keras.callbacks.EarlyStopping(monitor="loss", min_delta=9.0, patience=1)
            return model.fit(batches().repeat(), steps_per_epoch=3, epochs=9, callbacks=[stop])

        require_same(word_model, fit)

    def test_with_a_callback_that_trains_and_evaluates_in_between(self):
        class Between(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if batch == 2:
                    (x, y) = next(iter(batches()))
                    self.model.train_on_batch(x, y)
                    self.model.evaluate(batches().take(1), verbose=0)

        def fit(model):
            return model.fit(batches(), epochs=2, verbose=0, callbacks=[Between()])

        require_same(word_model, fit)

    @pytest.mark.slow
    def test_several_times_and_compiled_again(self):
        def fit(model):
            model.fit(batches(), verbose=0)
            model.fit(batches(size=5), verbose=0)
            compiled_as(model, optimizer="sgd")
            return model.fit(batches(), epochs=2, verbose=0)

        require_same(word_model, fit)

    def test_with_several_producers_sees_every_batch(self):
        options = SmartStageOptions(num_threads=3, capacity=2, reorder=True)
        model = compiled_as(word_model(), optimizer=keras.optimizers.SGD(0.0), metrics=["mse"])
        wanted = model.evaluate(batches(10), return_dict=True, verbose=0)["mse"]
        model = compiled_as(keras.Model(model.inputs, model.layers[-1](model.layers[-3].output)))
        compiled_as(model, optimizer=keras.optimizers.SGD(0.0), metrics=["mse"])
        smart_stage_model(model, options)
        found = model.fit(batches(10), verbose=0).history["mse"][0]
        assert found == pytest.approx(wanted, rel=1e-5)


class TestErrors:
    def test_of_the_data_end_fit_with_what_they_said(self):
        def generate():
            yield from (row for row in zip(*rows(20)[1:], strict=True))
            raise RuntimeError("the disk is gone")

        spec = (tf.TensorSpec([4]), tf.TensorSpec([1], tf.int64))
        data = tf.data.Dataset.from_generator(generate, output_signature=spec).batch(4)
        model = number_model()
        smart_stage_model(model)
        with pytest.raises(tf.errors.OpError, match="RuntimeError: the disk is gone"):
            model.fit(data, verbose=0)
        assert not producers()

    def test_in_a_callback_end_the_producers_with_the_iterator(self):
        class Fails(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                raise ZeroDivisionError

        model = word_model()
        smart_stage_model(model)
        with pytest.raises(ZeroDivisionError):
            model.fit(batches().repeat(), steps_per_epoch=4, verbose=0, callbacks=[Fails()])
        gc.collect()
        assert not producers()
        model.fit(batches(), verbose=0)
