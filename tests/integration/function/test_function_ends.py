"""smart_stage of a tf.function: ends, errors, and what is left behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import weakref

import pytest
import tensorflow as tf

from tests.builders.functions import (
    moved,
    pairs,
    parse,
    plain,
    producers,
    values,
    wait_for,
    with_known_runner,
)
from workbench.core.function.stage import smart_stage_function
from workbench.core.options import SmartStageOptions


class TestEnds:
    def test_each_loop_is_an_epoch(self):
        stage = smart_stage_function(parse, pairs(3))
        assert [len(list(stage)) for _ in range(3)] == [3, 3, 3]
        assert not producers()

    def test_an_ended_iterator_stays_ended(self):
        iterator = iter(smart_stage_function(parse, pairs(1)))
        next(iterator)
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(iterator)

    def test_leaving_the_loop_stops_the_producers(self):
        for _ in smart_stage_function(parse, pairs().repeat()):
            assert producers()
            break
        assert not producers()

    def test_an_exception_in_the_loop_stops_the_producers(self):
        with pytest.raises(ZeroDivisionError):
            for _ in smart_stage_function(parse, pairs().repeat()):
                1 / 0  # noqa: B018
        assert not producers()

    def test_forgetting_the_iterator_stops_the_producers(self):
        iterator = iter(smart_stage_function(parse, pairs().repeat()))
        next(iterator)
        cycle = [iterator]
        cycle.append(cycle)
        del iterator, cycle
        gc.collect()
        assert not producers()

    def test_closing_stops_the_producers(self):
        iterator = iter(smart_stage_function(parse, pairs().repeat()))
        next(iterator)
        iterator.close()
        assert not producers()
        with pytest.raises(StopIteration):
            next(iterator)

    def test_two_epochs_at_once_do_not_disturb_each_other(self):
        stage = smart_stage_function(parse, pairs(30))
        one, other = iter(stage), iter(stage)
        found = [(values(a), values(b)) for a, b in zip(one, other, strict=True)]
        assert found == [(values(x), values(x)) for x in plain(parse, pairs(30))]

    def test_stopping_does_not_wait_for_a_batch_that_is_not_there(self):
        queue = tf.queue.FIFOQueue(9, [tf.float32], shapes=[[]])
        queue.enqueue(1.0)
        slow = tf.data.Dataset.range(9).map(lambda i: queue.dequeue())
        iterator = iter(smart_stage_function(tf.function(tf.square), slow))
        next(iterator)
        time.sleep(0.05)
        began = time.monotonic()
        iterator.close()
        assert not producers()
        assert time.monotonic() - began < 4

    @pytest.mark.slow
    def test_the_interpreter_ends_although_producers_run(self):
        program = (
            "import tensorflow as tf\n"
            "from workbench.core.function.stage import smart_stage_function\n"
            "step = tf.function(lambda x: x + 1)\n"
            "steps = iter(smart_stage_function(step, tf.data.Dataset.range(10**9)))\n"
            "print(int(next(steps)))\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, b"1\n"), done.stderr.decode()[-2000:]

    def test_a_stopped_stage_holds_no_batch(self):
        stage = smart_stage_function(parse, pairs().repeat(), SmartStageOptions(capacity=4))
        runner = with_known_runner(stage)
        iterator = iter(stage)
        wait_for(lambda: int(runner.buffer.size()) == 4)
        iterator.close()
        assert int(runner.buffer.size()) == 0

    def test_a_dropped_stage_gives_its_buffer_to_the_next(self):
        @tf.function
        def other_step(x, y):
            return tf.strings.length(x) + tf.cast(y, tf.int32)

        def runner_of_a_new_stage():
            stage = smart_stage_function(parse, pairs(3), SmartStageOptions(capacity=7))
            runner = with_known_runner(stage)
            list(stage)
            return runner

        first, second = runner_of_a_new_stage(), runner_of_a_new_stage()
        names = {first.buffer.shared_name, second.buffer.shared_name}
        assert len(names) == 2
        buffers = [weakref.ref(first.buffer), weakref.ref(second.buffer)]
        del first, second
        # A function's destructor leaves what only the next collection frees; what other threads
        # leave to be collected is not waited for.
        wait_for(lambda: gc.collect() >= 0 and not any(buffer() for buffer in buffers))
        other = smart_stage_function(other_step, pairs(3), SmartStageOptions(capacity=7))
        assert with_known_runner(other).buffer.shared_name not in names
        assert list(other)
        assert runner_of_a_new_stage().buffer.shared_name in names

    def test_a_put_without_room_waits_on_and_says_so(self, caplog):
        stage = smart_stage_function(parse, pairs(4), SmartStageOptions(timeout_millis=30))
        iterator = iter(stage)
        wait_for(lambda: "found no room for 30 ms" in caplog.text)
        assert values(list(iterator)) == values(plain(parse, pairs(4)))


class TestErrors:
    def run(self, results):
        """Results up to the error, the error's type and what it says first."""
        found = []
        try:
            for result in results:
                found.append(values(result))
        except tf.errors.OpError as error:
            return found, type(error), error.message
        return found, None, ""

    def both(self, step, dataset):
        return self.run(step(x) for x in dataset), self.run(smart_stage_function(step, dataset))

    def test_of_the_staged_half_come_in_their_place_as_they_were(self):
        words = tf.data.Dataset.from_tensor_slices(["1", "2", "x", "4"])
        scale = tf.Variable(2.0)

        @tf.function
        def step(word):
            return tf.strings.to_number(word) * scale

        (wanted, kind, text), (found, found_kind, found_text) = self.both(step, words)
        assert (found, found_kind) == (wanted, kind)
        assert "Detected at node StringToNumber" in found_text and "in step" in found_text
        last = text.splitlines()[-2:]
        assert found_text.splitlines()[-2:] == last
        assert not producers()

    def test_of_an_assertion_come_before_the_step_that_it_guards(self):
        applied = tf.Variable(0.0)
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer([1, 2, 3], [1.0, 2.0, 3.0], tf.int32), 0.0
        )

        @tf.function
        def guard(number):
            # Slow enough to end after everything else of the batch.
            known = table.lookup(tf.cast(number, tf.int32))
            slow = tf.while_loop(lambda i, x: i < 3000, lambda i, x: (i + 1, x), (0, known))[1]
            tf.debugging.assert_less(slow, 3.0, message="too large")

        @tf.function
        def step(number):
            guard(number)
            return applied.assign_add(number)

        numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0])
        stage = smart_stage_function(step, numbers, SmartStageOptions(capacity=9))
        assert "StatefulPartitionedCall" in moved(stage)
        found, kind, text = self.run(stage)
        assert found == [[1.0], [3.0]]
        assert kind is tf.errors.InvalidArgumentError and "too large" in text
        assert float(applied) == 3.0

    def test_of_the_compute_half_come_before_one_of_a_later_batch(self):
        words = tf.data.Dataset.from_tensor_slices(["1", "5", "x"])
        scale = tf.Variable(2.0)

        @tf.function
        def step(word):
            scaled = tf.strings.to_number(word) * scale
            tf.debugging.assert_less(scaled, 9.0, message="exploded")
            return scaled

        iterator = iter(smart_stage_function(step, words, SmartStageOptions(capacity=9)))
        wait_for(lambda: not producers())
        assert float(next(iterator)) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="exploded"):
            next(iterator)

    def test_of_the_dataset_come_as_they_were(self):
        def generate():
            yield 1.0
            raise RuntimeError("the disk is gone")

        numbers = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([]))
        scale = tf.Variable(2.0)

        @tf.function
        def step(number):
            return number * scale

        (wanted, kind, _), (found, found_kind, text) = self.both(step, numbers)
        assert (found, found_kind) == (wanted, kind)
        assert "RuntimeError: the disk is gone" in text

    def test_of_the_compute_half_come_as_they_were(self):
        scale = tf.Variable(2.0)

        @tf.function
        def step(number):
            tf.debugging.assert_less(number * scale, 5.0, message="exploded")
            return number * scale

        numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0])
        one, other = self.both(step, numbers)
        assert other[:2] == one[:2]
        assert other[2].splitlines()[-1] == one[2].splitlines()[-1]
        assert not producers()

    def test_an_end_of_range_of_the_compute_half_is_no_end_of_data(self):
        numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])

        def step():
            weights = iter(numbers.take(2))
            return tf.function(lambda number: number * next(weights))

        wanted, kind, _ = self.run(map(step(), numbers))
        found, found_kind, _ = self.run(smart_stage_function(step(), numbers))
        assert (found, found_kind) == (wanted, kind) == ([[1.0], [4.0]], tf.errors.OutOfRangeError)

    def test_ignored_ones_skip_a_batch(self, caplog):
        words = tf.data.Dataset.from_tensor_slices(["1", "x", "3", "y", "5"])
        scale = tf.Variable(2.0)

        @tf.function
        def step(word):
            return tf.strings.to_number(word) * scale

        options = SmartStageOptions(ignored_exception_types=(tf.errors.InvalidArgumentError,))
        assert values(list(smart_stage_function(step, words, options))) == [2.0, 6.0, 10.0]
        assert "skipped a batch (2 so far)" in caplog.text

    def test_closing_ones_end_the_epoch(self):
        words = tf.data.Dataset.from_tensor_slices(["1", "x", "3"])
        scale = tf.Variable(2.0)

        @tf.function
        def step(word):
            return tf.strings.to_number(word) * scale

        closing = (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)
        options = SmartStageOptions(closed_exception_types=closing)
        assert values(list(smart_stage_function(step, words, options))) == [2.0]
