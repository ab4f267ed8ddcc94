"""smart_stage of a tf.function: the same results, and a plan that says what moves."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.functions import (
    moved,
    pairs,
    parse,
    plain,
    require_same,
    values,
    wait_for,
    with_known_runner,
)
from workbench.core.function.plan import plan_function
from workbench.core.function.rewrite import split
from workbench.core.function.stage import smart_stage_function
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1


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
