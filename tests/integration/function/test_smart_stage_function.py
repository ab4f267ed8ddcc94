"""smart_stage of a tf.function: equal results, ends, errors and life cycle, on real datasets."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.core.function.plan import plan_function
from workbench.core.function.rewrite import split
from workbench.core.function.stage import smart_stage_function, takes_components
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, PlanError, UnsupportedError

STAGE = "smart_stage"


@pytest.fixture(autouse=True)
def graph():
    """Functions run eagerly: without the graph of the other tests."""
    assert tf.executing_eagerly()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert not producers()


def producers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(STAGE)]


def values(result):
    """A step's result in NumPy, composites taken apart."""
    flat = tf.nest.flatten(result, expand_composites=True)
    return [None if leaf is None else np.asarray(leaf).tolist() for leaf in flat]


def plain(step, dataset, spread=True) -> list:
    return [step(*x) if spread else step(x) for x in dataset]


def require_same(step, dataset, *, reset=lambda: None, spread=True, options=None):
    """Both loops give the same, step by step, and the staged one twice over."""
    reset()
    wanted = plain(step, dataset, spread)
    stage = smart_stage_function(step, dataset, options)
    for _ in range(2):
        reset()
        found = list(stage)
        for one, other in zip(wanted, found, strict=True):
            tf.nest.assert_same_structure(one, other, expand_composites=True)
            assert values(one) == values(other)
    return stage


def moved(stage) -> list[str]:
    return list(stage.plan.stages[0].moved_ops)


def pairs(count: int = 6) -> tf.data.Dataset:
    """Batches of (words, numbers)."""
    words = tf.constant([["1", "2"], ["3", "4"], ["5", "6"]] * count)[:count]
    return tf.data.Dataset.from_tensor_slices((words, np.arange(2.0 * count).reshape(count, 2)))


class TestResults:
    def test_a_training_step_learns_the_same(self):
        weight, steps = tf.Variable([[1.0], [2.0]]), tf.Variable(0)
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["1", "4", "6"], [7, 8, 9]), 0
        )

        @tf.function
        def number(words):
            return tf.strings.to_number(words)

        @tf.function
        def step(words, label):
            ids = table.lookup(words)
            tf.debugging.assert_less(ids, 10)
            features = tf.stack([tf.cast(ids, tf.float32), number(words)], axis=1)
            steps.assign_add(1)
            with tf.GradientTape() as tape:
                error = tf.matmul(features, weight)[:, 0] - tf.cast(label, tf.float32)
                loss = tf.reduce_mean(error**2)
            weight.assign_sub(0.01 * tape.gradient(loss, weight))
            return {"loss": loss, "steps": steps.read_value(), "seen": (words, None, ids)}

        def reset():
            weight.assign([[1.0], [2.0]])
            steps.assign(0)

        stage = require_same(step, pairs(), reset=reset)
        assert {"LookupTableFindV2", "PartitionedCall", "Assert"} <= set(moved(stage))
        assert int(steps) == 6

    def test_composites_dicts_nests_and_none_go_through(self):
        def element(i):
            dense = tf.one_hot([i % 3, 1], 3)
            return {
                "ragged": tf.RaggedTensor.from_row_lengths(tf.range(i), [i]),
                "inner": (tf.sparse.from_dense(dense), None, (tf.strings.as_string(i),)),
            }

        scale = tf.Variable(2.0)

        @tf.function
        def step(batch):
            sparse, nothing, (text,) = batch["inner"]
            total = tf.reduce_sum(tf.cast(batch["ragged"], tf.float32)) * scale
            twice = tf.RaggedTensor.from_row_splits(
                batch["ragged"].values * 2, batch["ragged"].row_splits
            )
            return total, sparse, nothing, {"text": text, "twice": twice}

        require_same(step, tf.data.Dataset.range(1, 5).map(element), spread=False)

    def test_what_is_returned_as_it_came_travels(self):
        @tf.function
        def step(words, numbers):
            return words, tf.SparseTensor([[0]], numbers[:1], dense_shape=[9])

        require_same(step, pairs())

    def test_a_function_that_was_wrapped_is_cut_as_well(self):
        scale = tf.Variable(2.0)

        def body(words, numbers):
            # Returned without any op in between, unlike in a tf.function.
            return tf.strings.to_number(words) * scale, words

        step = tf.compat.v1.wrap_function(body, list(pairs().element_spec))
        stage = smart_stage_function(step, pairs())
        assert values(list(stage)) == values(plain(step, pairs()))
        assert "StringToNumber" in moved(stage)

    def test_what_has_no_known_rank_travels(self):
        unknown = pairs().map(
            lambda words, numbers: (words, tf.numpy_function(np.sum, [numbers], tf.float64))
        )
        scale = tf.Variable(2.0, dtype=tf.float64)

        @tf.function
        def step(words, number):
            return tf.sqrt(number) * scale

        assert "Sqrt" in moved(require_same(step, unknown))

    def test_unused_arguments_do_not_travel(self):
        scale = tf.Variable(2.0, dtype=tf.float64)

        @tf.function
        def step(words, numbers):
            return numbers * scale

        stage = require_same(step, pairs())
        assert stage.plan.stages[0].dtypes == (("float64",),)

    def test_a_step_that_ignores_its_batch_still_runs_once_for_each(self):
        steps = tf.Variable(0)

        @tf.function
        def step(words, numbers):
            return steps.assign_add(1)

        require_same(step, pairs(), reset=lambda: steps.assign(0))
        assert int(steps) == 6

    def test_control_flow_and_nested_functions_stay_what_they_are(self):
        total = tf.Variable(0.0, dtype=tf.float64)

        @tf.function
        def add(x):
            total.assign_add(x)
            return total.read_value()

        @tf.function
        def step(words, numbers):
            depth = tf.constant(0)
            value = tf.reduce_sum(numbers)
            while depth < 3:
                value, depth = value * 1.5 + 1.0, depth + 1
            if value > 100.0:
                value = add(value)
            else:
                total.assign(value)
            return value, total.read_value()

        stage = require_same(step, pairs(), reset=lambda: total.assign(0.0))
        assert {"While", "StatelessWhile"} & set(moved(stage))

    def test_effects_happen_once_for_each_step_and_none_without_one(self, capfd, tmp_path):
        writer = tf.summary.create_file_writer(str(tmp_path))
        count = tf.Variable(0, dtype=tf.int64)
        seen = []

        @tf.function
        def step(words, numbers):
            count.assign_add(1)
            tf.print("step", count, words)
            tf.numpy_function(lambda n: seen.append(int(n)), [count], [])
            with writer.as_default():
                tf.summary.write("sum", tf.reduce_sum(numbers), step=count)
            return count.read_value()

        assert values(list(smart_stage_function(step, pairs(3)))) == [1, 2, 3]
        writer.close()
        assert seen == [1, 2, 3]
        lines = [line for line in capfd.readouterr().err.splitlines() if "step" in line]
        assert lines == ['step 1 ["1" "2"]', 'step 2 ["3" "4"]', 'step 3 ["5" "6"]']
        records = tf.data.TFRecordDataset([str(p) for p in tmp_path.glob("events*")])
        events = [tf.compat.v1.Event.FromString(record.numpy()) for record in records]
        assert [event.step for event in events if event.summary.value] == [1, 2, 3]

    def test_random_ops_with_state_stay_and_give_the_same(self):
        generator = tf.random.Generator.from_seed(5)

        @tf.function
        def step(words, numbers):
            return numbers + generator.uniform([2], dtype=tf.float64)

        stage = require_same(step, pairs(), reset=lambda: generator.reset_from_seed(5))
        assert set(moved(stage)) == {"Placeholder"}

    def test_a_table_that_may_change_stays(self):
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)

        @tf.function
        def step(words, numbers):
            known = table.lookup(words)
            table.insert(words, tf.cast(numbers, tf.int64))
            return known

        stage = require_same(step, pairs(), reset=lambda: table.remove(table.export()[0]))
        assert "LookupTableFindV2" not in moved(stage)
        found = next(r for r in stage.plan.boundary.refusals() if r.op == "LookupTableFindV2")
        assert "captured resource that may change" in found.detail

    def test_variables_made_in_the_first_call_are_made_once(self):
        class Model(tf.Module):
            weight = None

            @tf.function
            def step(self, words, numbers):
                if self.weight is None:
                    self.weight = tf.Variable(3.0, dtype=tf.float64)
                self.weight.assign_add(1.0)
                return numbers * self.weight

        one, other = Model(), Model()
        found = list(smart_stage_function(other.step, pairs()))
        assert values(found) == values(plain(one.step, pairs()))

    def test_several_producers_give_the_same_batches_in_any_order(self):
        scale = tf.Variable(2.0, dtype=tf.float64)

        @tf.function
        def step(words, numbers):
            return tf.strings.to_number(words, tf.float64) * 0 + numbers * scale

        options = SmartStageOptions(num_threads=3, capacity=2, reorder=True)
        found = values(list(smart_stage_function(step, pairs(40), options)))
        assert sorted(found) == sorted(values(plain(step, pairs(40))))

    def test_a_gradient_outside_the_loop_sees_the_variables(self):
        scale = tf.Variable(3.0, dtype=tf.float64)

        @tf.function
        def step(words, numbers):
            return tf.reduce_sum(numbers) * scale

        with tf.GradientTape() as tape:
            total = sum(smart_stage_function(step, pairs(3)))
        assert float(tape.gradient(total, scale)) == 15.0

    def test_a_concrete_function_is_taken_as_it_is(self):
        @tf.function
        def step(words, numbers):
            return tf.strings.length(words)

        function = step.get_concrete_function(*pairs().element_spec)
        assert values(list(smart_stage_function(function, pairs()))) == values(plain(step, pairs()))


class TestPlan:
    def test_the_plan_says_what_runs_ahead_and_why_the_rest_stays(self):
        scale = tf.Variable(2.0)

        @tf.function
        def step(words, numbers):
            return tf.strings.to_number(words, name="parse") * scale

        plan = smart_stage_function(step, pairs()).plan
        assert "new stage: everything that may run ahead does" in plan.describe()
        assert "'parse' runs ahead in stage 'smart_stage'" in plan.explain("parse")
        assert "'mul' (Mul) stays" in plan.explain("mul")

    def test_where_nothing_can_move_the_batch_itself_is_ahead(self):
        scale = tf.Variable(2.0, dtype=tf.float64)

        @tf.function
        def step(words, numbers):
            return words, numbers * scale

        stage = require_same(step, pairs())
        assert set(moved(stage)) == {"Placeholder"}

    def test_a_kept_node_stays(self):
        scale = tf.Variable(2.0)

        @tf.function
        def step(words, numbers):
            return tf.strings.to_number(words, name="parse") * scale

        stage = require_same(step, pairs(), options=SmartStageOptions(keep=("parse",)))
        assert "StringToNumber" not in moved(stage)

    def test_a_step_that_xla_compiles_is_not_cut(self):
        scale = tf.Variable(2.0, dtype=tf.float64)

        @tf.function(jit_compile=True)
        def step(numbers):
            scale.assign_add(1.0)
            return tf.math.log(numbers + 1.0) * scale

        numbers = pairs().map(lambda words, numbers: numbers)
        stage = require_same(step, numbers, spread=False, reset=lambda: scale.assign(2.0))
        assert "XLA compiles the step as one piece" in stage.plan.describe()

    def test_several_producers_need_leave_to_reorder(self):
        stage = smart_stage_function(parse, pairs(), SmartStageOptions(num_threads=2))
        with pytest.raises(OptionError, match="num_threads=2 .* say reorder=True"):
            iter(stage)

    def test_a_start_must_be_an_argument(self):
        stage = smart_stage_function(parse, pairs(), SmartStageOptions(starts=("parse",)))
        with pytest.raises(OptionError, match=r"'parse', which is no argument .* 'words'"):
            iter(stage)

    def test_a_plan_fits_its_own_function_only(self):
        @tf.function
        def other(words, numbers):
            return tf.strings.length(words) * int(1e3)

        functions = [f.get_concrete_function(*pairs().element_spec) for f in (parse, other)]
        plan = plan_function(functions[0], SmartStageOptions())
        with pytest.raises(PlanError, match="another graph|no node"):
            split(functions[1], plan)

    def test_the_buffer_is_as_large_as_asked(self):
        stage = smart_stage_function(parse, pairs(), SmartStageOptions(capacity=3))
        runner = with_known_runner(stage)
        iterator = iter(stage)
        wait_for(lambda: int(runner.buffer.size()) == 3)
        time.sleep(0.05)
        assert int(runner.buffer.size()) == 3
        assert values(list(iterator)) == values(plain(parse, pairs()))


@tf.function
def parse(words, numbers):
    return tf.strings.to_number(words, name="parse")


def with_known_runner(stage):
    """The runner that the stage's next epoch takes."""
    runner = stage._build()
    stage._runners._idle.append(runner)
    return runner


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert condition()


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
        del first, second
        gc.collect()
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
        with pytest.raises(UnsupportedError, match="no inter-op pool of its own"):
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


@settings(max_examples=25, deadline=None)
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
    require_same(made.step, dataset, reset=made.reset, options=SmartStageOptions(capacity=capacity))


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
