"""smart_stage of a tf.function: its arguments, what it refuses, and generated steps."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders.examples import few
from tests.builders.functions import pairs, parse, require_same
from workbench.core.function.plan import plan_function
from workbench.core.function.stage import smart_stage_function, takes_components
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, UnsupportedError


class TestArguments:
    def signature(self, function):
        return tf.function(function)

    @pytest.mark.parametrize(
        ("function", "count", "spread"),
        [
            (lambda a, b: a, 2, True),
            (lambda batch: batch, 2, False),
            (lambda a: a, 1, True),
            (lambda *all: all, 2, True),
            (lambda a, *rest: a, 3, True),
            (lambda a, b, scale=2.0: a, 2, True),
            (lambda batch: batch, None, False),
            (lambda batch, scale=2.0: batch, None, False),
        ],
    )
    def test_are_the_components_or_the_element(self, function, count, spread):
        spec = tf.TensorSpec([])
        element = spec if count is None else (spec,) * count
        assert takes_components(tf.function(function), element) is spread

    def test_that_could_be_either_are_asked_about(self):
        spec = (tf.TensorSpec([]),) * 2
        with pytest.raises(OptionError, match="leave open whether it wants the components"):
            takes_components(tf.function(lambda batch, scale=2.0: batch), spec)

    @pytest.mark.parametrize(
        ("function", "count"), [(lambda a, b, c: a, 2), (lambda a, b, *, c: a, 2), (lambda: 1, 2)]
    )
    def test_that_do_not_fit_are_refused(self, function, count):
        with pytest.raises(OptionError, match="expected one argument for each component"):
            takes_components(tf.function(function), (tf.TensorSpec([]),) * count)

    def test_of_another_dtype_are_refused(self):
        function = parse.get_concrete_function(*pairs().element_spec)
        other = pairs().map(lambda words, numbers: (words, tf.cast(numbers, tf.float32)))
        with pytest.raises(OptionError, match=r"takes tensors of .*float64.* has .*float32"):
            iter(smart_stage_function(function, other))


class TestRefused:
    def test_a_python_function(self):
        with pytest.raises(OptionError, match="decorate it with @tf.function"):
            smart_stage_function(lambda x: x, pairs())

    def test_data_that_is_no_dataset(self):
        with pytest.raises(OptionError, match=r"dataset is of type list; .*from_generator"):
            smart_stage_function(parse, [1, 2])

    def test_inside_a_graph(self):
        with tf.Graph().as_default(), pytest.raises(UnsupportedError, match="runs eagerly"):
            smart_stage_function(parse, pairs())

    def test_a_dataset_as_element(self):
        @tf.function
        def step(window):
            return window.reduce(0.0, lambda a, b: a + b)

        windows = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).window(1)
        with pytest.raises(UnsupportedError, match="is a variant, which cannot go through"):
            iter(smart_stage_function(step, windows))

    def test_a_pool_of_its_own(self):
        options = SmartStageOptions(use_stage_subgraph_thread_pool=True)
        with pytest.raises(UnsupportedError, match="no thread pools of its own"):
            iter(smart_stage_function(parse, pairs(), options))

    def test_a_function_of_no_tensors(self):
        function = tf.function(lambda: tf.constant(1)).get_concrete_function()
        with pytest.raises(OptionError, match="takes no tensors; expected a function of a batch"):
            plan_function(function, SmartStageOptions())


# Instructions of random steps: how many operands each has.
BINARY = ("add", "mul", "where")
UNARY = ("log", "parse", "table", "nested", "branch", "loop", "shift", "weigh", "count", "noise")
instructions = st.lists(
    st.tuples(st.sampled_from(BINARY + UNARY), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=8,
)


class RandomStep:
    """A small step made of instructions on vectors; some read or write variables."""

    def __init__(self, program, returned):
        self.program, self.returned = program, returned
        self.weight = tf.Variable([0.5])
        self.total = tf.Variable(1.0)
        self.generator = tf.random.Generator.from_seed(1)
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer([0, 1, 2, 3], [5.0, 6.0, 7.0, 8.0], tf.int32), -1.0
        )
        self.step = tf.function(self._step)

    def reset(self):
        self.weight.assign([0.5])
        self.total.assign(1.0)
        self.generator.reset_from_seed(1)

    def _step(self, numbers, words):
        with tf.GradientTape() as tape:
            pool = [numbers, tf.strings.to_number(words)]
            for name, one, other in self.program:
                operands = [pool[one % len(pool)], pool[other % len(pool)]]
                made = getattr(self, f"_{name}")(*operands)
                pool.append(tf.clip_by_value(made, -1e3, 1e3))
            loss = tf.reduce_mean(pool[-1] * self.weight + pool[-2])
        gradient = tape.gradient(loss, self.weight)
        if gradient is not None:
            self.weight.assign_sub(0.1 * gradient)
        return loss, {str(i): pool[i % len(pool)] for i in self.returned}, self.total.read_value()

    def _add(self, x, y):
        return x + y

    def _mul(self, x, y):
        return x * y

    def _where(self, x, y):
        return tf.where(x > y, x, -y)

    def _log(self, x, _):
        return tf.math.log1p(tf.abs(x))

    def _parse(self, x, _):
        return tf.strings.to_number(tf.strings.as_string(x, precision=3))

    def _table(self, x, _):
        found = self.table.lookup(tf.cast(x, tf.int32) % 5)
        tf.debugging.assert_less(found, 9.0)
        return found

    def _nested(self, x, y):
        @tf.function
        def inside(a, b):
            return tf.sin(a) + self.table.lookup(tf.cast(b, tf.int32) % 3)

        return inside(x, y)

    def _branch(self, x, y):
        def note():
            self.total.assign_add(1.0)
            return x + self.total

        return tf.cond(tf.reduce_sum(x) > 3.0, note, lambda: tf.nn.relu(y))

    def _loop(self, x, y):
        return tf.while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, z * 0.5 + y), (0, x))[1]

    def _shift(self, x, _):
        return x + self.total.assign_add(0.5)

    def _weigh(self, x, _):
        return x * self.weight

    def _count(self, x, _):
        self.total.assign_add(tf.reduce_sum(tf.cast(x > 0, tf.float32)))
        return x

    def _noise(self, x, _):
        return x + self.generator.normal(tf.shape(x))


@contextlib.contextmanager
def sums_as_written():
    """TensorFlow takes a factor out of a sum that it sees whole, and so rounds it otherwise."""
    rewrites = ("arithmetic_optimization", "constant_folding")
    tf.config.optimizer.set_experimental_options(dict.fromkeys(rewrites, False))
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options(dict.fromkeys(rewrites, True))


@few(8)
@example(
    program=[
        *(("weigh", 0, 0), ("where", 0, 0), ("add", 0, 0), ("add", 0, 0)),
        *(("add", 0, 0), ("add", 0, 0), ("weigh", 2, 0), ("mul", 1, 3)),
    ],
    returned=[],
    capacity=1,
    batch=1,
)
@given(
    program=instructions,
    returned=st.lists(st.integers(0, 12), max_size=3),
    capacity=st.integers(1, 3),
    batch=st.integers(1, 3),
)
def test_random_steps_give_the_same(program, returned, capacity, batch):
    made = RandomStep(program, returned)
    numbers = np.linspace(-4, 9, 7, dtype=np.float32)
    words = np.array([f"{x:.2f}" for x in np.linspace(5, -3, 7)])
    # Of known shapes: with others TensorFlow itself rounds in another order.
    dataset = tf.data.Dataset.from_tensor_slices((numbers, words)).batch(batch, drop_remainder=True)
    options = SmartStageOptions(capacity=capacity)
    with sums_as_written():
        require_same(made.step, dataset, reset=made.reset, options=options)


def test_the_facade_takes_a_function_or_a_model_and_says_what_else_it_wants():
    import workbench as wb

    weight = tf.Variable(2.0)

    @tf.function
    def train_step(x):
        doubled = tf.multiply(x, 2.0, name="doubled")
        return doubled * weight

    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
    assert [float(y) for y in wb.smart_stage(train_step, data)] == [4.0, 8.0, 12.0]
    concrete = train_step.get_concrete_function(tf.TensorSpec([], tf.float32))
    boundary = wb.find_boundary(concrete)
    assert boundary.explain("doubled").startswith("'doubled' (Mul) may run ahead")
    with pytest.raises(OptionError, match="was given 3 of type int alone; expected a tf.function"):
        wb.smart_stage(3)
    with pytest.raises(OptionError, match="a model and a dataset; give the data to model.fit"):
        wb.smart_stage(tf.keras.Sequential(), data)
