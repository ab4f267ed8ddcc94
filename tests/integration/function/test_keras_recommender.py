"""Recommenders of layers from keras-rs train the same with a smart stage."""

from __future__ import annotations

import keras
import keras_rs
import numpy as np
import pytest
import tensorflow as tf

from tests.builders.functions import wait_for
from tests.builders.keras_models import (
    ROWS,
    WORDS,
    compiled_as,
    moved,
    require_same,
)
from workbench.core.function.keras_fit import smart_stage_model


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

    @pytest.mark.slow
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

    @pytest.mark.slow
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
