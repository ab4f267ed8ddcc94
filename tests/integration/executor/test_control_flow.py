"""Loops, branches and calls under every executor policy, old and new, nested and across devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.executors import (
    CONFIGS,
    COUNTED,
    START,
    STEPS,
    STOP,
    bits,
    config_of,
    control_flow,
    each_config,
    each_policy,
    each_version,
    plain,
    same,
)
from tests.builders.scripts import run_script
from workbench.core.capture.op_events import Recording

v1 = tf.compat.v1


def has_op(*types: str) -> bool:
    return any(op.type in types for op in v1.get_default_graph().get_operations())


@each_policy
@each_config
@each_version
@pytest.mark.parametrize("parallel", [1, 10])
def test_nested_loops_with_branches_inside(policy, config, version, parallel):
    n = v1.placeholder(tf.int32, [])
    x = v1.placeholder(tf.float32, [3])
    with control_flow(version):

        def inner(j, b):
            grown = tf.cond(
                tf.equal(j % 2, 0), lambda: b * 1.5 + x, lambda: tf.sin(b) - tf.reduce_sum(x)
            )
            return j + 1, grown

        def outer(i, a):
            return i + 1, tf.while_loop(
                lambda j, b: j < i, inner, [0, a + 1.0], parallel_iterations=parallel
            )[1]

        result = tf.while_loop(lambda i, a: i < n, outer, [0, x], parallel_iterations=parallel)
    assert has_op("Enter") == (version == 1)
    same(policy, result, lambda i: {n: i, x: [0.1, i, 2]}, config=CONFIGS[config]())


@each_policy
@each_config
@each_version
def test_branches_that_are_not_taken_stay_dead(policy, config, version):
    on, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [4])
    w = v1.get_variable("w", [4], initializer=v1.zeros_initializer(), use_resource=version == 2)
    with control_flow(version):

        def update():
            with tf.control_dependencies([v1.assign_add(w, x)]):
                return tf.identity(x) * 2.0

        first = tf.cond(on, update, lambda: x - 1.0)
        with tf.control_dependencies([first]):
            second = tf.cond(on, lambda: tf.cond(x[0] > 3.0, lambda: x, lambda: -x), lambda: x * x)
            case = tf.case(
                [(x[0] > 5.0, lambda: x + 5.0), (x[0] > 2.0, lambda: x + 2.0)], lambda: x
            )
        with tf.control_dependencies([first, second, case]):
            after = w.read_value() * 2.0
    same(
        policy,
        [first, second, case, after],
        lambda i: {on: i % 3 != 1, x: [i, 1, 2, 3]},
        before=v1.global_variables_initializer(),
        config=CONFIGS[config](),
    )


@each_policy
def test_switch_and_merge_by_hand(policy):
    """Dead tensors meet: a Merge of dead inputs only, and a control edge from a dead node."""
    on, other = v1.placeholder(tf.bool, []), v1.placeholder(tf.bool, [])
    off_side, on_side = v1.raw_ops.Switch(data=tf.constant([1.0, 2.0]), pred=on)
    deeper_off, deeper_on = v1.raw_ops.Switch(data=on_side + 1.0, pred=other)
    inside = v1.raw_ops.Merge(inputs=[tf.sin(deeper_off), tf.cos(deeper_on)])
    merged = v1.raw_ops.Merge(inputs=[off_side * 3.0, inside.output])
    with tf.control_dependencies([inside.output]):
        tied = v1.raw_ops.Merge(inputs=[tf.constant([9.0]), tf.identity(off_side)])
    chosen = v1.raw_ops.Merge(inputs=[tied.output, tf.identity(merged.output)])
    fetches = [merged.output, merged.value_index, chosen.output[0]]
    found = same(policy, fetches[:2], lambda i: {on: i % 2, other: i % 3 == 0}, config=plain())
    assert found[0] != found[1]
    # one branch only, so that the second Merge has one input that lives
    same(policy, fetches, lambda i: {on: False, other: i % 3 == 0}, config=plain())


@each_policy
@each_config
@each_version
def test_tensor_arrays_in_loops_and_their_gradients(policy, config, version):
    x = v1.placeholder(tf.float32, [5, 3])
    with control_flow(version):
        read = tf.TensorArray(tf.float32, 5).unstack(x)
        written = tf.TensorArray(tf.float32, 5, clear_after_read=False)

        def body(i, state, out):
            state = tf.tanh(state * 0.5 + read.read(i))
            return i + 1, state, out.write(i, state)

        states = tf.while_loop(lambda i, *_: i < 5, body, [0, tf.zeros([3]), written])[2].stack()
        mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
        scanned = tf.scan(lambda a, b: a * 0.5 + b, x)
        gradient = tf.gradients(
            tf.reduce_sum(states) + tf.reduce_sum(mapped) + tf.reduce_sum(scanned), x
        )
    rng = np.random.default_rng(4)
    batches = rng.normal(size=(STEPS, 5, 3)).astype(np.float32)
    same(
        policy,
        [states, mapped, scanned, gradient],
        lambda i: {x: batches[i]},
        config=CONFIGS[config](),
    )


@each_policy
@each_version
def test_a_variable_is_changed_in_a_loop(policy, version):
    w = v1.get_variable("w", [2], initializer=v1.ones_initializer(), use_resource=version == 2)
    with control_flow(version):

        def body(i):
            with tf.control_dependencies([v1.assign_add(w, tf.cast([i, 1], tf.float32))]):
                return (i + 1,)

        last = tf.while_loop(lambda i: i < 7, body, [0], parallel_iterations=1)
    with tf.control_dependencies(tf.nest.flatten(last)):
        after = w.read_value() * 2.0
    same(policy, [last, after], before=v1.global_variables_initializer())


@each_policy
@each_version
def test_a_loop_whose_body_waits(policy, version):
    """The items that the body takes are put by the same run."""
    queue = v1.FIFOQueue(50, [tf.float32], shapes=[[]])
    put = queue.enqueue_many([tf.range(6, dtype=tf.float32)])
    with control_flow(version):

        def body(i, a):
            return i + 1, a * 2.0 + queue.dequeue()

        with tf.control_dependencies([put] if version == 2 else []):
            start = tf.constant(0.0)
        total = tf.while_loop(lambda i, a: i < 6, body, [0, start], parallel_iterations=1)[1]
    same(policy, [total, put])


@each_policy
@each_version
@pytest.mark.parametrize("config", ["plain", "optimized"])
def test_a_branch_and_a_loop_across_two_devices(policy, version, config):
    on, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [2])
    with control_flow(version):

        def there():
            with tf.device("/cpu:1"):
                return tf.sin(x) + 1.0

        def here():
            with tf.device("/cpu:0"):
                return x * 2.0

        branch = tf.cond(on, there, here)

        def body(i, a):
            with tf.device("/cpu:1"):
                moved = a * 0.5 + branch
            with tf.device("/cpu:0"):
                return i + 1, tf.cos(moved) + tf.cast(i, tf.float32)

        with tf.device("/cpu:0"):
            loop = tf.while_loop(lambda i, a: i < 5, body, [0, x])[1]
    devices = CONFIGS[config]()
    devices.device_count["CPU"] = 2
    same(policy, [branch, loop], lambda i: {on: i % 2 == 0, x: [i, 3]}, config=devices)


@each_policy
@each_version
def test_thousands_of_iterations(policy, version):
    """Deep enough to end any recursion from iteration to iteration."""
    with control_flow(version):
        total = tf.while_loop(lambda i, a: i < 20_000, lambda i, a: (i + 1, a + i), [0, 0])[1]
    if policy == "cost_model" and version == 1:  # nine times, so that it has learned
        same(policy, total, config=plain())
    else:
        same(policy, total, config=plain(), steps=2)


@each_policy
@each_config
@pytest.mark.parametrize("inlined", [True, False])
def test_functions_call_functions(policy, config, inlined):
    @tf.function(experimental_attributes=None if inlined else {"_noinline": True})
    def inner(x, y):
        return tf.sin(x) * y, x - y

    @tf.function(experimental_attributes=None if inlined else {"_noinline": True})
    def outer(x):
        a, b = inner(x, x + 1.0)
        for _ in tf.range(3):
            a, b = inner(a, b)
        if tf.reduce_sum(a) > 0.0:
            a = a * 2.0
        return a + b

    x = v1.placeholder(tf.float32, [3])
    w = v1.get_variable("w", [3], initializer=v1.ones_initializer(), use_resource=True)
    made = outer(x * w)
    gradient = tf.gradients(made, x)
    with tf.control_dependencies([made, *gradient]):
        changed = w.assign_add(made)
    same(
        policy,
        [made, gradient, changed],
        lambda i: {x: [i, 1, -2]},
        before=v1.global_variables_initializer(),
        config=CONFIGS[config](),
    )


@each_policy
def test_functions_of_the_old_kind_and_symbolic_gradients(policy):
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32)
    def product(a, b):
        return tf.matmul(a, b), tf.reduce_sum(a) + tf.reduce_sum(b)

    x = v1.placeholder(tf.float32, [3, 3])
    result, total = product(x, x + 1.0)
    gradient = tf.gradients([result, total], x)
    same(policy, [result, total, gradient], lambda i: {x: np.full((3, 3), i)}, config=plain())


@each_policy
@each_config
def test_a_function_spans_two_devices(policy, config):
    @tf.function
    def both(x):
        with tf.device("/cpu:1"):
            y = tf.sin(x)
        with tf.device("/cpu:0"):
            z = tf.cos(y) + x
        with tf.device("/cpu:1"):
            return z * y

    x = v1.placeholder(tf.float32, [3])
    devices = CONFIGS[config]()
    devices.device_count["CPU"] = 2
    same(policy, both(x) + 1.0, lambda i: {x: [i, 1, 2]}, config=devices)


@each_policy
def test_a_dead_fetch_fails_as_in_stock(policy):
    on = v1.placeholder(tf.bool, [])
    off_side, on_side = v1.raw_ops.Switch(data=tf.constant(1.0), pred=on)
    messages = []
    for each in ("stock", policy):
        with v1.Session(config=config_of(each, plain())) as session:
            for _ in range(STEPS):
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    session.run(off_side + 1.0, {on: True})
            messages.append(caught.value.message)
            assert session.run(on_side, {on: True}) == 1.0
    assert messages[0] == messages[1]


@contextlib.contextmanager
def eagerly(policy: str):
    """TensorFlow 2, with the calls of functions on the policy; the cost model learns at once."""
    with context.eager_mode(), contextlib.ExitStack() as stack:
        if policy != "stock":
            stack.enter_context(wb.executor(policy, start_step=START, stop_step=STOP))
        yield


def calls(policy: str, made: Callable[[], Callable[[int], Any]]) -> list:
    """What nine calls gave, or how each of them failed."""
    found: list[Any] = []
    with eagerly(policy):
        call = made()
        for i in range(STEPS):
            try:
                found.append(bits(call(i)))
            except tf.errors.OpError as error:
                # without the stack, which names the line of this call too
                text = error.message.rpartition("\n\n")[2]
                found.append((type(error), COUNTED.sub("#", text)))
    return found


def same_calls(policy: str, made: Callable[[], Callable[[int], Any]]) -> list:
    expected = calls("stock", made)
    assert calls(policy, made) == expected
    return expected


@each_policy
def test_eager_functions_with_loops_branches_and_nested_functions(policy):
    def made():
        @tf.function
        def inner(x, n):
            for i in tf.range(n):
                if tf.equal(i % 2, 0):
                    x = tf.sin(x) + tf.cast(i, tf.float32)
                else:
                    x = x * 0.5
            return x

        @tf.function
        def outer(x, n):
            out = tf.TensorArray(tf.float32, 0, dynamic_size=True)
            while out.size() < n:
                x = inner(x, n) + 1.0
                out = out.write(out.size(), x)
            return out.stack(), tf.map_fn(lambda y: inner(y, 2), x)

        return lambda i: outer(tf.range(3, dtype=tf.float32) + float(i), tf.constant(i))

    same_calls(policy, made)


@each_policy
def test_eager_training_with_gradients_through_loops(policy):
    def made():
        w = tf.Variable(tf.ones([4, 4]) * 0.1)
        steps = tf.Variable(0)
        generator = tf.random.Generator.from_seed(3)

        @tf.function(experimental_attributes={"_noinline": True})
        def layer(x):
            return tf.tanh(tf.matmul(x, w))

        @tf.function
        def train(x):
            with tf.GradientTape() as tape:
                y = x + generator.normal([2, 4]) * 0.01
                for _ in tf.range(3):
                    y = layer(y)
                loss = tf.reduce_mean(tf.square(y - 1.0))
            gradient = tape.gradient(loss, w)
            w.assign_sub(gradient * 0.5)
            steps.assign_add(1)
            return loss, w.read_value(), steps.read_value()

        return lambda i: train(tf.fill([2, 4], float(i)))

    found = same_calls(policy, made)
    assert found[0] != found[1]


@each_policy
def test_errors_of_eager_functions(policy):
    def made():
        @tf.function(experimental_attributes={"_noinline": True})
        def inner(x, n):
            return tf.reshape(x, [n, -1], name="reshaped")

        @tf.function
        def outer(x, n):
            for _ in range(2):
                x = tf.reshape(inner(x, n), [-1])
            tf.debugging.assert_less(tf.reduce_sum(x), 60.0, message="too much")
            return x * 2.0

        return lambda i: outer(tf.fill([12], float(i)), tf.constant(4 if i % 2 else 5))

    found = same_calls(policy, made)
    kinds = [type(made) for made in found]
    assert kinds == [tuple, list, tuple, list, tuple, tuple, tuple, tuple, tuple]
    assert "reshaped" in found[0][1]
    assert "too much" in found[5][1]


@each_policy
def test_eager_functions_with_python_data_and_files(policy, tmp_path):
    name = str(tmp_path / "saved")

    def made():
        counted = []
        w = tf.Variable([1.0, 2.0])
        checkpoint = tf.train.Checkpoint(w=w)
        data = iter(tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32)).batch(2))

        def note(value):
            counted.append(float(value))
            return np.float32(len(counted))

        @tf.function
        def step():
            batch = next(data)
            number = tf.numpy_function(note, [batch[0]], tf.float32)
            w.assign_add(batch * tf.ensure_shape(number, []))
            return w.read_value()

        def call(i):
            made = step()
            path = checkpoint.write(name)
            w.assign([0.0, 0.0])
            checkpoint.read(path)
            return made, w

        return call

    same_calls(policy, made)


@pytest.mark.slow
@each_policy
def test_eager_functions_across_two_devices(policy, tmp_path):
    """In a process of its own, as eager devices are made once."""
    code = f"""
        import numpy as np, tensorflow as tf, workbench as wb
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)

        @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])
        def both(x, n):
            for _ in tf.range(n):
                with tf.device("/cpu:1"):
                    y = tf.sin(x)
                with tf.device("/cpu:0"):
                    x = tf.cos(y) + x
            with tf.device("/cpu:1"):
                return tf.reshape(x * y, [3, -1])

        def told(size):
            try:
                return both(tf.ones([size]), 3).numpy().tobytes()
            except tf.errors.InvalidArgumentError as error:
                return "3" in error.message and "Reshape" in error.message

        expected = [told(3), told(6), told(7)]
        with wb.executor("{policy}", start_step={START}, stop_step={STOP}):
            found = [[told(3), told(6), told(7)] for _ in range({STEPS})]
        assert expected[2] is True, expected
        assert found == [expected] * {STEPS}, found
        print("equal")
    """
    done = run_script(code, tmp_path)
    assert done.stdout == "equal\n", done.stderr[-2000:]


@each_policy
def test_nested_functions_go_on_the_policy_too(policy):
    """The tracer records our executors only: the inner function's must be one of them."""
    with eagerly(policy):
        w = tf.Variable(1.0)

        @tf.function(experimental_attributes={"_noinline": True})
        def inner(x):
            return tf.sin(x, name="inner_sin") * w

        @tf.function
        def outer(x):
            for _ in tf.range(2):
                x = inner(x)
            return x

        outer(tf.constant(1.0))
        recording = Recording()
        outer(tf.constant(1.0))
        events = recording.stop()
    ran = events.nodes["name"].iloc[events.node]
    assert ran.str.endswith("inner_sin").sum() == 2
