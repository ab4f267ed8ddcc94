"""smart_stage of a Keras model: `fit` gives the same history and weights, and can be given back."""

from __future__ import annotations

import copy
import gc
import importlib.metadata
import inspect

import keras
import keras_rs
import numpy as np
import pytest
import tensorflow as tf

from tests.builders.functions import producers, wait_for
from workbench.core.function import keras_fit
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, UnsupportedError

ROWS = 70
WORDS = list("abcdef")


def rows(count: int = ROWS):
    """Words, numbers and labels."""
    chance = np.random.RandomState(0)
    words = chance.choice([*WORDS, "other"], (count, 1))
    return words, chance.rand(count, 4).astype("float32"), chance.randint(0, 2, (count, 1))


def examples() -> tf.data.Dataset:
    words, numbers, labels = rows()
    return tf.data.Dataset.from_tensor_slices(({"word": words, "numbers": numbers}, labels))


def batches(size: int = 8) -> tf.data.Dataset:
    return examples().shuffle(20, seed=1).batch(size).prefetch(1)


def numeric() -> dict:
    """Arguments of fit for NumPy input."""
    _, numbers, labels = rows()
    return {"x": numbers, "y": labels, "batch_size": 8}


class Data(keras.utils.PyDataset):
    """Six batches."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        given = numeric()
        return given["x"][8 * i : 8 * i + 8], given["y"][8 * i : 8 * i + 8]


def word_model(**compiled) -> keras.Model:
    """Strings are looked up and hashed in the model; dropout has a state of its own."""
    word = keras.Input((1,), dtype="string", name="word")
    numbers = keras.Input((4,), name="numbers")
    ids = keras.layers.StringLookup(vocabulary=WORDS)(word)
    hashed = keras.layers.Hashing(7)(word)
    parts = [keras.layers.Flatten()(keras.layers.Embedding(8, 3)(x)) for x in (ids, hashed)]
    together = keras.layers.Concatenate()([*parts, keras.layers.Rescaling(0.5)(numbers)])
    hidden = keras.layers.Dropout(0.3)(keras.layers.Dense(8, activation="relu")(together))
    model = keras.Model([word, numbers], keras.layers.Dense(1, activation="sigmoid")(hidden))
    return compiled_as(model, **compiled)


def number_model(**compiled) -> keras.Model:
    layers = [
        keras.layers.Rescaling(2.0),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
    return compiled_as(keras.Sequential(layers), **{"jit_compile": False, **compiled})


def compiled_as(model: keras.Model, **compiled) -> keras.Model:
    said = {"optimizer": "adam", "loss": "binary_crossentropy", "metrics": ["accuracy"]}
    model.compile(**{**said, **compiled})
    return model


def weights(model) -> list:
    return [np.asarray(w).tolist() for w in [*model.variables, *model.optimizer.variables]]


def require_same(build, fit, *, options=None):
    """Trains twice from the same seed, plain and staged: history and all variables are equal."""
    trained = []
    for staged in (False, True):
        keras.utils.set_random_seed(3)
        model = build()
        stage = smart_stage_model(model, options) if staged else None
        trained.append((model, fit(model).history))
        assert not producers()
    (plain, wanted), (model, found) = trained
    assert found == wanted and list(found) == list(wanted)
    assert weights(model) == weights(plain)
    assert stage is not None
    return stage


def moved(stage) -> set[str]:
    return set(stage.plan.stages[0].moved_ops)


class TestFit:
    def test_with_strings_in_the_model_and_validation(self):
        def fit(model):
            return model.fit(batches(), epochs=3, verbose=0, validation_data=batches())

        stage = require_same(word_model, fit)
        assert {"LookupTableFindV2", "StringToHashBucketFast"} <= moved(stage)
        assert not {"ReadVariableOp", "StatelessRandomUniformV2"} & moved(stage)

    def test_from_numpy_with_class_weights_and_a_part_for_validation(self):
        def fit(model):
            given = {**numeric(), "class_weight": {0: 1.0, 1: 3.0}, "validation_split": 0.2}
            return model.fit(**given, epochs=2, verbose=0)

        assert "Mul" in moved(require_same(number_model, fit))

    def test_with_sample_weights(self):
        def fit(model):
            return model.fit(**numeric(), sample_weight=np.linspace(0, 1, ROWS), verbose=0)

        require_same(number_model, fit)

    def test_with_steps_per_epoch_reads_on_in_the_next_epoch(self):
        def fit(model):
            return model.fit(batches().repeat(), steps_per_epoch=5, epochs=3, verbose=0)

        require_same(word_model, fit)

    @pytest.mark.parametrize("steps", [2, 4, 100])
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


class TestRefused:
    def test_what_is_no_model(self):
        with pytest.raises(OptionError, match=r"of type Dense; expected a keras.Model"):
            smart_stage_model(keras.layers.Dense(1))

    def test_a_model_that_makes_its_own_train_function(self):
        class Model(keras.Model):
            def make_train_function(self, force=False):
                raise NotImplementedError

        with pytest.raises(UnsupportedError, match="takes its make_train_function from 'Model'"):
            smart_stage_model(Model())

    def test_another_backend(self):
        trainer = type("JaxTrainer", (), {"make_train_function": lambda self, force: None})
        trainer.__module__ = "keras.src.backend.jax.trainer"
        with pytest.raises(UnsupportedError, match="but the backend is jax"):
            smart_stage_model(trainer())

    def test_an_eager_model(self):
        model = number_model(run_eagerly=True)
        smart_stage_model(model)
        with pytest.raises(UnsupportedError, match=r"run_eagerly=True.* or remove\(\) its stage"):
            model.fit(**numeric(), verbose=0)

    def test_a_distribution_strategy(self):
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            model = number_model()
        smart_stage_model(model)
        with pytest.raises(UnsupportedError, match="trains under OneDeviceStrategy"):
            model.fit(**numeric(), verbose=0)

    def test_a_trainer_that_looks_different(self, monkeypatch):
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

        monkeypatch.setattr(
            TensorFlowTrainer, "make_train_function", lambda self, force, more: None
        )
        with pytest.raises(UnsupportedError, match=r"takes \['self', 'force', 'more'\], expected"):
            smart_stage_model(number_model())

    def test_an_unknown_version_is_said_so(self, monkeypatch, caplog):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.99.1")
        smart_stage_model(number_model())
        assert "Keras 3.99.1 was not tried with a smart stage (tried: 3.15)" in caplog.text

    def test_this_version_is_known(self, caplog):
        smart_stage_model(number_model())
        assert not caplog.text
        assert int(keras.__version__.split(".")[1]) in keras_fit._KNOWN


class TestRecommender:
    """A recommender of layers from keras-rs, with its pre-processing in the model."""

    def columns(self, count: int = ROWS) -> tf.data.Dataset:
        chance = np.random.RandomState(1)
        lengths = chance.randint(1, 4, count)
        tags = [chance.choice(WORDS, n).tolist() for n in lengths]
        rows = {
            "user": chance.choice([f"user {i}" for i in range(20)], (count,)),
            "tags": tf.ragged.constant(tags),
            "age": chance.choice(["17", "35", "62"], (count,)),
            "price": chance.lognormal(size=(count, 2)).astype("float32"),
        }
        labels = chance.randint(0, 2, (count, 1)).astype("float32")
        data = tf.data.Dataset.from_tensor_slices((rows, labels))
        return data.shuffle(20, seed=4).batch(8).prefetch(1)

    class Ranking(keras.Model):
        def __init__(self):
            super().__init__()
            self.users = keras.layers.Hashing(50)
            self.tags = keras.layers.StringLookup(vocabulary=WORDS)
            self.ages = keras.layers.Discretization(bin_boundaries=[18.0, 40.0])
            self.user_vectors = keras_rs.layers.EmbedReduce(50, 8, combiner="mean")
            self.tag_vectors = keras_rs.layers.EmbedReduce(8, 8, combiner="sum")
            self.age_vectors = keras.layers.Embedding(3, 8)
            self.bottom = keras.Sequential(
                [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(8)]
            )
            self.dots = keras_rs.layers.DotInteraction()
            self.cross = keras_rs.layers.FeatureCross()
            self.top = keras.Sequential(
                [
                    keras.layers.Dense(16, activation="relu"),
                    keras.layers.Dropout(0.2),
                    keras.layers.Dense(1, activation="sigmoid"),
                ]
            )

        def call(self, inputs, training=False):
            tags = self.tags(inputs["tags"]).to_tensor()
            ages = self.ages(tf.strings.to_number(inputs["age"]))
            vectors = [
                self.user_vectors(tf.expand_dims(self.users(inputs["user"]), 1)),
                self.tag_vectors(tags),
                self.age_vectors(ages),
                self.bottom(tf.math.log1p(inputs["price"])),
            ]
            crossed = self.cross(tf.concat(vectors, axis=1))
            together = tf.concat([self.dots(vectors), crossed], axis=1)
            return self.top(together, training=training)

    def test_trains_the_same(self):
        def build():
            return compiled_as(
                self.Ranking(), metrics=[keras.metrics.AUC(name="auc")], jit_compile=False
            )

        def fit(model):
            given = {"validation_data": self.columns(24), "verbose": 0}
            return model.fit(self.columns(), epochs=2, **given)

        stage = require_same(build, fit)
        expected = {
            *("LookupTableFindV2", "StringToHashBucketFast", "StringToNumber", "Bucketize"),
            *("Log1p", "RaggedTensorToTensor"),
        }
        assert expected <= moved(stage)
        assert "data" not in stage.plan.stages[0].carried

    def test_reads_on_while_fit_is_busy_with_a_step(self):
        read = []

        def note(label):
            read.append(1)
            return label

        def noted(x, y):
            label = tf.numpy_function(note, [y], tf.float32)
            label.set_shape([None, 1])
            return x, label

        class Busy(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                # One in the buffer and one that waits for room.
                wait_for(lambda: len(read) >= min(batch + 3, 5))

        model = compiled_as(self.Ranking(), jit_compile=False)
        smart_stage_model(model)
        model.fit(self.columns(40).map(noted), verbose=0, callbacks=[Busy()])
        assert len(read) == 5


def test_two_towers_retrieve_the_same():
    """keras-rs's retrieval with sampled negatives, as its guide trains it."""

    class Towers(keras.Model):
        def __init__(self):
            super().__init__()
            self.lookup = keras.layers.StringLookup(vocabulary=WORDS)
            self.query = keras.layers.Embedding(8, 6)
            self.item = keras.layers.Embedding(20, 6)
            self.accidents = keras_rs.layers.RemoveAccidentalHits()
            self.retrieval = keras_rs.layers.BruteForceRetrieval(k=3, return_scores=False)

        def call(self, words, training=False):
            return self.query(self.lookup(words))

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            scores = tf.matmul(y_pred, self.item(y), transpose_b=True)
            labels = tf.eye(tf.shape(scores)[0])
            scores = self.accidents(scores, labels, y)
            losses = tf.nn.softmax_cross_entropy_with_logits(labels, scores)
            return tf.reduce_mean(losses)

    chance = np.random.RandomState(2)
    words, items = chance.choice(WORDS, (64,)), chance.randint(0, 20, (64,))
    data = tf.data.Dataset.from_tensor_slices((words, items)).batch(16)

    def build():
        model = Towers()
        model.compile(optimizer=keras.optimizers.Adagrad(0.1), jit_compile=False)
        return model

    stage = require_same(build, lambda model: model.fit(data, epochs=3, verbose=0))
    assert {"LookupTableFindV2", "Equal"} & moved(stage)
