"""What a stage held is free when it ends, without the garbage collector, as in plain TensorFlow."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable, Iterator

import keras
import psutil
import pytest
import tensorflow as tf

from tests.builders.functions import producers, wait_for
from tests.builders.keras_models import word_model
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.function.keras_fusion import fuse_model
from workbench.core.function.stage import FunctionStage, smart_stage_function
from workbench.core.options import SmartStageOptions
from workbench.core.staging import end_at_exit

EPOCHS = 6
BUFFER_BYTES = 40 << 20


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Input:
    """Numbers from a generator, which ends when its iterator is free; `open` says how many run."""

    def __init__(self, fails_at: int = -1, count: int = 10**6) -> None:
        self.open = 0
        self._fails_at, self._count = fails_at, count

    def dataset(self) -> tf.data.Dataset:
        return tf.data.Dataset.from_generator(
            self._generate, output_signature=(tf.TensorSpec([1]), tf.TensorSpec([1]))
        )

    def _generate(self) -> Iterator[tuple[list[float], list[float]]]:
        self.open += 1
        try:
            for i in range(self._count):
                if i == self._fails_at:
                    raise RuntimeError("the disk is gone")
                yield [i % 7.0], [i % 3.0]
        finally:
            self.open -= 1


@tf.function
def number(x, y):
    words = tf.strings.as_string(x)
    return tf.reduce_sum(tf.strings.to_number(words) * y)


@tf.function
def exploding(x, y):
    tf.debugging.assert_less(tf.reduce_sum(y), 2.0, message="exploded")
    return number(x, y)


def ends(stage: FunctionStage) -> None:
    for _ in stage:
        pass


def breaks(stage: FunctionStage) -> None:
    for _ in stage:
        break


def raises_in_the_loop(stage: FunctionStage) -> None:
    with pytest.raises(ZeroDivisionError):
        for _ in stage:
            1 / 0  # noqa: B018


def closes_and_keeps_the_iterator(stage: FunctionStage) -> object:
    steps = iter(stage)
    next(steps)
    steps.close()
    return steps


def keeps_the_error(stage: FunctionStage) -> object:
    try:
        ends(stage)
    except tf.errors.OpError as error:
        return error
    raise AssertionError("there was no error")


def never_steps(stage: FunctionStage) -> None:
    iter(stage)


ENDS = (ends, breaks, raises_in_the_loop, closes_and_keeps_the_iterator, never_steps)


def require_released(given: Input) -> None:
    wait_for(lambda: not given.open)
    assert not producers()
    assert not [run for run in end_at_exit._RUNS if run.threads[0].name.startswith("smart_stage")]


class TestLoops:
    @pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
    def test_the_end_of_a_loop_frees_its_input(self, end: Callable[[FunctionStage], object]):
        given = Input(count=4 if end is ends else 10**6)
        stage = smart_stage_function(
            number, given.dataset(), SmartStageOptions(num_threads=2, reorder=True)
        )
        for _ in range(2):
            kept = end(stage)
            wait_for(lambda: not given.open)
            assert not producers()
            del kept
            require_released(given)

    @pytest.mark.parametrize("step", [number, exploding], ids=["ahead", "compute"])
    def test_an_error_that_is_kept_keeps_no_input(self, step):
        given = Input(fails_at=3)
        error = keeps_the_error(smart_stage_function(step, given.dataset()))
        wait_for(lambda: not given.open)
        del error
        require_released(given)

    def test_a_file_cache_is_begun_again_after_a_loop_that_was_left(self, tmp_path):
        numbers = tf.data.Dataset.range(12).map(lambda i: (tf.cast(i, tf.float32), 1.0))
        stage = smart_stage_function(number, numbers.cache(str(tmp_path / "cache")).batch(4))
        breaks(stage)
        assert [len(list(stage)) for _ in range(2)] == [3, 3]


def small_model() -> keras.Model:
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


class TestFit:
    def test_a_fit_of_some_steps_frees_its_input(self):
        given, model = Input(), small_model()
        smart_stage_model(model)
        for _ in range(3):
            model.fit(given.dataset().batch(4), steps_per_epoch=3, epochs=2, verbose=0)
            require_released(given)

    def test_a_file_cache_is_begun_again_by_the_next_fit(self, tmp_path):
        given, model = Input(count=24), small_model()
        smart_stage_model(model)
        data = given.dataset().cache(str(tmp_path / "cache")).batch(4)
        model.fit(data, steps_per_epoch=2, verbose=0)
        model.fit(data, epochs=2, verbose=0)
        require_released(given)

    def test_epochs_left_early_keep_no_shuffle_buffer(self):
        wide = BUFFER_BYTES // 4 // 40
        rows = tf.data.Dataset.range(10**6).map(
            lambda i: (tf.fill([wide], 1.0 * tf.cast(i, tf.float32)), 1.0)
        )
        data = rows.shuffle(40).batch(2).repeat()
        model = keras.Sequential(
            [keras.Input((wide,)), keras.layers.Lambda(lambda x: x[:, :1]), keras.layers.Dense(1)]
        )
        model.compile("sgd", "mse", jit_compile=False)
        smart_stage_model(model)
        sizes = []
        for _ in range(EPOCHS):
            model.fit(data, steps_per_epoch=2, verbose=0)
            ctypes.CDLL(None).malloc_trim(0)
            sizes.append(psutil.Process().memory_info().rss)
        # The first epoch traces. One buffer that stays is more than this.
        assert sizes[-1] - sizes[1] < BUFFER_BYTES / 2, [size >> 20 for size in sizes]


class TestHandles:
    @pytest.mark.parametrize("take", [smart_stage_model, fuse_model])
    def test_a_removed_handle_holds_no_model(self, take):
        model = word_model()
        handle = take(model)
        handle.remove()
        handle.remove()
        known = weakref.ref(model)
        gc.enable()
        del model
        gc.collect()
        assert known() is None
        handle.remove()
