"""Steps and models that make a variable from another one when they are first called."""

from __future__ import annotations

import gc

import keras
import keras_rs
import numpy as np
import pytest
import tensorflow as tf

from workbench.core.function.first_trace import trace
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.function.stage import smart_stage_function
from workbench.errors import UnsupportedError


@pytest.fixture(autouse=True)
def graph():
    """Functions run eagerly: without the graph of the other tests."""
    assert tf.executing_eagerly()
    yield
    gc.collect()


def dataset() -> tf.data.Dataset:
    return tf.data.Dataset.range(5)


class Chain(tf.Module):
    """A weight, a copy of it, and one made from both by chance."""

    def __init__(self, **function):
        super().__init__()
        self.made: list[tf.Variable] = []
        self.step = tf.function(self._step, **function)

    def _step(self, x):
        if not self.made:
            first = tf.Variable(tf.random.stateless_normal([3], [1, 2]), name="first")
            second = tf.Variable(first * 2.0, name="second")
            noise = tf.random.uniform([3], seed=5)
            self.made = [first, second, tf.Variable(first + second + noise, name="third")]
        first, second, third = self.made
        third.assign_add(tf.cast(x, tf.float32) * second)
        return tf.reduce_sum(third) + tf.reduce_sum(first)


class TestFunctions:
    def results(self, staged, **function):
        tf.random.set_seed(7)
        chain = Chain(**function)
        if staged:
            steps = list(smart_stage_function(chain.step, dataset()))
        else:
            steps = [chain.step(x) for x in dataset()]
        return [float(x) for x in steps], [v.numpy().tolist() for v in chain.made]

    def test_a_variable_made_from_another_has_the_value_of_a_plain_first_call(self):
        assert self.results(staged=True) == self.results(staged=False)

    def test_what_was_called_before_keeps_its_values(self):
        chain = Chain()
        chain.step(tf.constant(3, tf.int64))
        before = [v.numpy().tolist() for v in chain.made]
        trace(chain.step, tf.TensorSpec([], tf.int64))
        assert [v.numpy().tolist() for v in chain.made] == before

    def test_a_method_decorated_in_its_class(self):
        class Step(tf.Module):
            weight = copy = None

            @tf.function
            def __call__(self, x):
                if self.weight is None:
                    self.weight = tf.Variable(3.0)
                    self.copy = tf.Variable(self.weight + 1.0)
                return self.copy.assign_add(self.weight)

        step = Step()
        found = [float(x) for x in smart_stage_function(step.__call__, dataset())]
        assert found == [7.0, 10.0, 13.0, 16.0, 19.0]

    def test_a_value_that_depends_on_the_batch_is_refused_by_name(self):
        made = []

        @tf.function
        def step(x):
            if not made:
                made.append(tf.Variable(2.0, name="two"))
                made.append(tf.Variable(made[0] + tf.cast(x, tf.float32), name="seen"))
            return made[1] + 1.0

        stage = smart_stage_function(step, dataset())
        with pytest.raises(
            UnsupportedError,
            match=r"step 'step' makes variable 'seen:0' on its first call.*depends on the batch.*"
            r"call it once with a batch, and stage it then",
        ):
            next(iter(stage))


class Twice(keras.layers.Layer):
    """Its second weight begins as a multiple of its first."""

    def build(self, shape):
        self.first = self.add_weight(shape=(shape[-1], 1), initializer="glorot_uniform")
        self.second = keras.Variable(self.first.value * 2.0, name="second")

    def call(self, x):
        return keras.ops.matmul(x, self.first) + keras.ops.matmul(x, self.second)


class Retrieval(keras.Model):
    """Candidates that are the embeddings of the items, taken when the model is built."""

    def __init__(self):
        super().__init__()
        self.user = keras.layers.Embedding(10, 4)
        self.item = keras.layers.Embedding(20, 4)
        self.retrieval = keras_rs.layers.BruteForceRetrieval(k=3, return_scores=False)
        self.error = keras.losses.MeanSquaredError()

    def build(self, shape):
        self.user.build(shape)
        self.item.build(shape)
        self.retrieval.update_candidates(self.item.embeddings)
        super().build(shape)

    def call(self, ids, training=False):
        user = self.user(ids)
        return user if training else self.retrieval(user)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return self.error(y, keras.ops.sum(y_pred * self.item(x), -1))


class TestModels:
    def trained(self, build, x, staged):
        keras.utils.set_random_seed(3)
        model = build()
        model.compile("sgd", "mse", jit_compile=False)
        if staged:
            smart_stage_model(model)
        history = model.fit(x, np.ones(8, "f4"), batch_size=2, epochs=2, verbose=0).history
        return history, [np.asarray(variable).tolist() for variable in model.variables]

    @pytest.mark.parametrize(
        ("build", "x"),
        [
            (lambda: keras.Sequential([Twice()]), np.ones([8, 4], "f4")),
            (Retrieval, np.arange(8) % 7),
        ],
        ids=["layer", "BruteForceRetrieval"],
    )
    def test_a_weight_made_from_another_trains_as_plainly(self, build, x):
        assert self.trained(build, x, staged=True) == self.trained(build, x, staged=False)
