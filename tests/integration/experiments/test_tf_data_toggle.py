"""The toggle tf_data on real pipelines: TensorFlow's own assertions say what became of them."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from workbench.core.toggles.pipeline import kept_bytes
from workbench.errors import UnsupportedError
from workbench.toggles import TF_DATA, Training

v1 = tf.compat.v1
KINDS = ("one_shot", "initializable", "eager")
IN_GRAPHS = KINDS[:2]


@tf.autograph.experimental.do_not_convert
def doubled(x):
    return tf.cast(x, tf.float32) * 2.0


@tf.autograph.experimental.do_not_convert
def noisy(x):
    return tf.cast(x, tf.float32) + tf.random.uniform([])


def source(*expected, count=10):
    """Numbers, whose reading ends with an error unless these transformations come next."""
    numbers = tf.data.Dataset.range(count)
    if not expected:
        return numbers
    variant = tf.raw_ops.AssertNextDataset(
        input_dataset=numbers._variant_tensor,
        transformations=tf.constant(expected),
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


@contextlib.contextmanager
def reading(make, kind, choice=None):
    """What reads the next element of a dataset, as a choice changes it."""
    if kind == "eager":
        with context.eager_mode():
            dataset = make()
            if choice:
                _, dataset = TF_DATA.arrange(choice, None, dataset)
            # A training begins its data anew at each end.
            elements = itertools.chain.from_iterable(itertools.repeat(dataset))
            yield lambda: next(elements).numpy()
        return
    with tf.Graph().as_default() as graph:
        dataset = make()
        if kind == "one_shot":
            iterator = v1.data.make_one_shot_iterator(dataset)
        else:
            iterator = v1.data.make_initializable_iterator(dataset)
        batch = iterator.get_next()
        if choice:
            TF_DATA.rewrite(choice, graph)
        with v1.Session() as session:
            if kind == "initializable":
                session.run(iterator.initializer)
            yield lambda: session.run(batch)


def read(make, kind, choice=None, count=6):
    """The first elements of a dataset, as a choice changes it."""
    with reading(make, kind, choice) as element:
        return [element() for _ in range(count)]


def options(deterministic=None, autotune=None, threads=None, **optimization):
    chosen = tf.data.Options()
    if deterministic is not None:
        chosen.deterministic = deterministic
    if autotune is not None:
        chosen.autotune.enabled = autotune
    if threads is not None:
        chosen.threading.private_threadpool_size = threads
    for name, value in optimization.items():
        setattr(chosen.experimental_optimization, name, value)
    return chosen


NO_PREFETCH = {"inject_prefetch": False}


@pytest.mark.parametrize("kind", KINDS)
class TestThePipelineIsAnotherOne:
    @pytest.mark.parametrize(
        ("choice", "expected", "stock", "behind"),
        [
            (
                "parallel_map",
                ("ParallelMapV2", "BatchV2"),
                "MapAndBatch",
                lambda data: data.map(doubled).batch(4).repeat(),
            ),
            (
                "parallel_map",
                ("ParallelMapV2", "Filter"),
                "Map",
                lambda data: (
                    data.map(doubled)
                    .filter(lambda x: x >= 0.0)
                    .with_options(options(map_parallelization=False))
                ),
            ),
            (
                "prefetch",
                ("BatchV2", "Prefetch"),
                "Root",
                lambda data: data.batch(1).with_options(options(**NO_PREFETCH)),
            ),
            # Tuning comes with the prefetch; the maps stay as written.
            (
                "prefetch",
                ("Map", "FiniteTake", "Prefetch"),
                "Root",
                lambda data: data.map(doubled).take(9).with_options(options(autotune=False)),
            ),
            (
                "prefetch",
                ("Map", "BatchV2", "Prefetch"),
                "Root",
                lambda data: (
                    data.map(doubled)
                    .batch(1)
                    .with_options(options(apply_default_optimizations=False))
                ),
            ),
        ],
    )
    def test_with_options(self, kind, choice, expected, stock, behind):
        def make():
            return behind(source(*expected))

        with pytest.raises(tf.errors.InvalidArgumentError, match=f"encountered {stock}"):
            read(make, kind)
        assert len(read(make, kind, choice)) == 6

    def test_with_a_cache(self, kind, tmp_path):
        file = tmp_path / "lines"

        def make():
            return tf.data.TextLineDataset(str(file)).map(tf.strings.length).shuffle(2).repeat()

        if kind == "eager":
            make_shuffled = make
            with pytest.raises(UnsupportedError, match="has to stand before its Shuffle"):
                read(make_shuffled, kind, "cache")

            def make():
                return (
                    tf.data.TextLineDataset(str(file)).map(tf.strings.length).repeat().prefetch(1)
                )

        lengths = {}
        for choice in (None, "cache"):
            file.write_text("a\nbb\nccc\n")
            with reading(make, kind, choice) as element:
                before = {int(element()) for _ in range(30)}
                file.write_text("aaaa\n")
                lengths[choice] = before | {int(element()) for _ in range(300)}
        assert lengths == {None: {1, 2, 3, 4}, "cache": {1, 2, 3}}


@pytest.mark.parametrize("kind", KINDS)
def test_private_threads_are_as_many_as_cores(kind, monkeypatch):
    cores = 4 * len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))

    def elements(choice, seconds):
        barrier = threading.Barrier(cores)

        def meet(x):
            # All threads have to be here at the same time.
            barrier.wait(seconds)
            return x

        def make():
            data = tf.data.Dataset.range(cores)
            return data.map(lambda x: tf.numpy_function(meet, [x], tf.int64), cores)

        return read(make, kind, choice, cores)

    assert elements("private_threads", 30.0) == list(range(cores))
    with pytest.raises(tf.errors.OpError, match="BrokenBarrierError"):
        elements(None, 0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", ["prefetch", "parallel_map", "private_threads", "cache"])
def test_elements_are_the_same(kind, choice, tmp_path):
    file = tmp_path / "lines"
    file.write_text("".join("x" * n + "\n" for n in range(1, 30)))

    def make():
        data = tf.data.TextLineDataset(str(file)).map(tf.strings.length).batch(4)
        if choice != "cache" or kind != "eager":
            data = data.shuffle(4, seed=3)
        return data.repeat().with_options(options(**NO_PREFETCH))

    np.testing.assert_equal(read(make, kind, choice, 30), read(make, kind, count=30))


@pytest.mark.parametrize("kind", KINDS)
def test_elements_come_in_any_order(kind):
    second = threading.Event()

    def hold_back(x):
        """The first element is computed once the second was read, or not at all."""
        if x == 0 and not second.wait(20.0):
            raise ValueError("the first element was waited for")
        return x

    def make():
        data = tf.data.Dataset.range(50)
        return data.map(lambda x: tf.numpy_function(hold_back, [x], tf.int64), 2)

    with reading(make, kind, "not_deterministic") as element:
        assert element() == 1
        second.set()
        assert 0 in [element() for _ in range(49)]


class TestRefusals:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("choice", "behind", "words"),
        [
            ("prefetch", lambda data: data.prefetch(2), "prefetches already"),
            ("prefetch", lambda data: data.batch(2), "by its option inject_prefetch"),
            ("prefetch", lambda data: data.map(doubled, 2), "ends with ParallelMap which runs"),
            ("prefetch", lambda data: data.map(doubled).batch(2), "fused with the Map before it"),
            ("parallel_map", lambda data: data.batch(2), "no map that runs one element"),
            ("parallel_map", lambda data: data.map(noisy).batch(2), "state, so they stay as"),
            ("parallel_map", lambda data: data.map(doubled), "by its option map_parallelization"),
            (
                "private_threads",
                lambda data: data.with_options(options(threads=3)),
                "private threads already: 3",
            ),
            ("not_deterministic", lambda data: data.map(doubled).batch(2), "have one order"),
            (
                "not_deterministic",
                lambda data: data.map(doubled, 2).with_options(options(deterministic=False)),
                "in any order already",
            ),
            ("cache", lambda data: data.map(doubled).cache().repeat(), "has a cache already"),
            ("cache", lambda data: data.map(noisy).batch(2).repeat(), "lies in memory"),
            ("cache", lambda data: data.repeat().map(doubled).repeat(), "may be without an end"),
            ("cache", lambda data: data.repeat(), "lies in memory already"),
        ],
    )
    def test_say_what_is_there_already(self, kind, choice, behind, words):
        with pytest.raises(UnsupportedError, match=words):
            read(lambda: behind(tf.data.Dataset.range(10)), kind, choice)

    @pytest.mark.parametrize("kind", IN_GRAPHS)
    def test_of_a_cache_that_is_read_once(self, kind):
        with pytest.raises(UnsupportedError, match="has no repeat"):
            read(lambda: source().map(doubled), kind, "cache")

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("counted", [True, False])
    def test_of_a_cache_that_does_not_fit(self, kind, counted, monkeypatch):
        monkeypatch.setattr(kept_bytes, "free_bytes", lambda: 1000.0)

        def make():
            data = tf.data.Dataset.range(60).map(doubled)
            if not counted:
                data = data.filter(lambda x: x >= 0.0)
            return data.repeat()

        with pytest.raises(UnsupportedError, match="a fifth of the free memory is 200"):
            read(make, kind, "cache")

    def test_of_a_cache_of_data_that_needs_a_variable(self):
        def make():
            count = v1.get_variable("count", initializer=tf.constant(9, tf.int64))
            return tf.data.Dataset.range(count).map(doubled).repeat()

        with pytest.raises(UnsupportedError, match="variables or tables of the program"):
            read(make, "initializable", "cache")

    def test_of_what_reads_no_dataset(self):
        with tf.Graph().as_default() as graph:
            tf.random.uniform([])
            with pytest.raises(UnsupportedError, match="no tf.data pipeline"):
                TF_DATA.rewrite("prefetch", graph)


def test_one_choice_alone_trains_another_way():
    trains = {choice: TF_DATA.at(choice).training for choice in TF_DATA.choices}
    assert trains.pop("not_deterministic") == Training.ANOTHER
    assert set(trains.values()) == {Training.SAME}
