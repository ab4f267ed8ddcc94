"""Every executor policy gives, to the bit, what stock TensorFlow's own executor gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

import workbench as wb
from tests.builders.executors import (
    CONFIGS,
    STEPS,
    bits,
    config_of,
    each_config,
    each_policy,
    plain,
    same,
    with_threads,
)
from workbench.core.session.staged import staged

v1 = tf.compat.v1


@each_policy
@each_config
def test_dense_graphs_with_feeds(policy, config):
    x = v1.placeholder(tf.float32, [8, 8], name="x")
    layers = [x]
    for i in range(12):
        layers.append(tf.tanh(tf.matmul(layers[i // 2], layers[-1]) + float(i)))
    fetches = {"sum": tf.add_n(layers), "parts": tf.unstack(layers[-1]), "fed": x}
    rng = np.random.default_rng(0)
    batches = rng.normal(size=(STEPS, 8, 8)).astype(np.float32)
    found = same(policy, fetches, lambda i: {x: batches[i]}, config=CONFIGS[config]())
    assert found[0] != found[1]


@each_policy
def test_feeds_and_fetches_of_every_kind(policy):
    x = v1.placeholder_with_default([1.0, 2.0], [None])
    text = tf.strings.join(["a", tf.strings.as_string(x[0])])
    constant = tf.constant(3, name="constant")
    fetches = [x, x, text, constant, constant, tf.no_op(), tf.zeros([0, 3]), tf.identity(text)]
    same(policy, [f for f in fetches if tf.is_tensor(f)], config=plain())
    same(policy, fetches[:1], lambda i: {x: [float(i)] * i}, config=plain())
    same(policy, x + 1.0, lambda i: {x: [float(i)] * i})
    with v1.Session(config=config_of(policy)) as session:
        assert session.run(fetches[5]) is None
        assert session.run([]) == []


@each_policy
@each_config
def test_ref_variables(policy, config):
    w = v1.get_variable("w", [4], initializer=v1.ones_initializer(), use_resource=False)
    rows = v1.get_variable("rows", [5, 2], initializer=v1.zeros_initializer(), use_resource=False)
    # What is read may be the variable's own memory: it is used before the next update.
    read = -w.read_value()
    with tf.control_dependencies([read]):
        added = v1.assign_add(w, [1.0, 2.0, 3.0, 4.0])
    with tf.control_dependencies([added]):
        after = w.read_value() * 3.0
        scattered = v1.scatter_add(rows, [0, 3, 3], tf.stack([after[:2]] * 3))
    with tf.control_dependencies([scattered]):
        updated = v1.scatter_update(rows, [1], [[7.0, 8.0]])
        sparse = tf.gather(updated, [3, 1])
    with tf.control_dependencies([sparse]):
        set_again = v1.assign(w, after * 0.5)
        same_ref = set_again * 2.0
    fetches = [read, after, sparse, same_ref]
    found = same(
        policy, fetches, before=v1.global_variables_initializer(), config=CONFIGS[config]()
    )
    assert found[1] != found[2]


@each_policy
def test_ref_variables_through_ref_inputs_and_conditions(policy):
    w = v1.get_variable("w", [2], initializer=v1.ones_initializer(), use_resource=False)
    on = v1.placeholder(tf.bool, [])
    off_ref, on_ref = v1.raw_ops.RefSwitch(data=w._ref(), pred=on)
    merged = v1.raw_ops.RefMerge(
        inputs=[
            v1.raw_ops.AssignAdd(ref=on_ref, value=[1.0, 1.0], use_locking=True),
            v1.raw_ops.AssignSub(ref=off_ref, value=[3.0, 5.0], use_locking=True),
        ]
    )
    total = tf.identity(merged.output) * 2.0
    initialized = v1.is_variable_initialized(w)
    with tf.control_dependencies([total]):
        counted = v1.count_up_to(
            v1.get_variable("n", [], tf.int64, v1.zeros_initializer(), use_resource=False), 100
        )
    same(
        policy,
        [total, merged.value_index, initialized, counted],
        lambda i: {on: i % 3 == 0},
        before=v1.global_variables_initializer(),
        config=plain(),
    )


@each_policy
@each_config
def test_resource_variables_and_optimizers(policy, config):
    v1.set_random_seed(5)
    x = v1.placeholder(tf.float32, [16, 4])
    losses = []
    for name, resource in (("ref", False), ("resource", True)):
        with v1.variable_scope(name, use_resource=resource):
            w = v1.get_variable("w", [4, 3], initializer=v1.glorot_uniform_initializer(seed=3))
            table = v1.get_variable("t", [20, 3], initializer=v1.glorot_uniform_initializer(seed=4))
            ids = tf.cast(tf.abs(x[:, 0]) * 6.0, tf.int32) % 20
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + tf.gather(table, ids) - 1.0))
            train = v1.train.AdamOptimizer(0.05).minimize(loss)
            with tf.control_dependencies([loss, train]):
                losses.append(tf.identity(loss))
    batches = np.random.default_rng(1).normal(size=(STEPS, 16, 4)).astype(np.float32)
    same(
        policy,
        losses,
        lambda i: {x: batches[i]},
        before=v1.global_variables_initializer(),
        config=CONFIGS[config](),
    )


@each_policy
@each_config
def test_seeded_random_ops_draw_alike(policy, config):
    v1.set_random_seed(11)
    drawn = [tf.random.normal([3]), tf.random.uniform([2]), tf.random.shuffle(tf.range(9))]
    drawn.append(tf.nn.dropout(tf.ones([20]), rate=0.5, seed=2))
    found = same(policy, drawn, config=CONFIGS[config]())
    assert found[0] != found[1]


@each_policy
@each_config
def test_queues_and_their_runners(policy, config):
    numbers = v1.train.range_input_producer(12, shuffle=False, capacity=4, num_epochs=2)
    doubled = tf.cast(numbers.dequeue(), tf.float32) * 2.0
    batches = v1.train.batch([doubled], batch_size=3, num_threads=1, capacity=6)
    graph = v1.get_default_graph()
    found = {}
    for each in ("stock", policy):
        config_ = config_of(each, CONFIGS[config]())
        with v1.Session(graph=graph, config=config_) as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            found[each] = []
            with pytest.raises(tf.errors.OutOfRangeError, match="has insufficient elements"):
                while True:
                    found[each].append(bits(session.run(batches)))
            coordinator.request_stop()
            coordinator.join(threads)
    assert found["stock"] == found[policy]
    assert len(found["stock"]) == 8


@each_policy
def test_an_enqueue_and_the_dequeue_that_waits_for_it_in_one_run(policy):
    """The dequeue must not keep the enqueue from running, whichever is built first."""
    queue = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    x = v1.placeholder(tf.float32, [])
    taken = queue.dequeue()
    behind = tf.sqrt(taken) + 1.0
    put = queue.enqueue(tf.exp(x))
    same(policy, [behind, put], lambda i: {x: float(i)}, config=plain())


@each_policy
@pytest.mark.parametrize("first", ["put", "take"])
def test_a_constant_passes_on_what_it_waits_for(policy, first):
    """The variable changes once the item is taken, by a constant; the item is what it was."""
    w = v1.get_variable("w", [2], initializer=v1.ones_initializer(), use_resource=False)
    queue = v1.FIFOQueue(10, [tf.float32], shapes=[[2]])

    def take():
        taken = queue.dequeue()
        with tf.control_dependencies([taken]):
            one = tf.constant([1.0, 1.0])
        return taken * 2.0, v1.assign_add(w, one) * 3.0

    if first == "take":
        taken, changed = take()
        put = queue.enqueue(w.read_value() * 1.25)
    else:
        put = queue.enqueue(w.read_value() * 1.25)
        taken, changed = take()
    found = same(
        policy, [taken, changed, put], before=v1.global_variables_initializer(), config=plain()
    )
    assert found[0] == bits([np.full(2, 2.5, np.float32), np.full(2, 6.0, np.float32), None])


@each_policy
def test_readers_read_files(policy, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{name}{i},{i}\n" for i in range(30)))
    files = v1.FIFOQueue(10, [tf.string], shapes=[[]])
    reader = v1.TextLineReader()
    key, value = reader.read(files)
    name, number = v1.decode_csv(value, [["x"], [0]])
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    found = same(policy, [name, number], before=files.enqueue_many([names]), steps=40)
    assert found[0] != found[35]
    with_key = [tf.strings.length(key), value]
    same(policy, with_key, before=files.enqueue_many([names]))


@each_policy
@each_config
@pytest.mark.parametrize("kind", ["area", "map"])
def test_a_staging_area_filled_and_emptied_in_one_run(policy, config, kind):
    x = v1.placeholder(tf.float32, [2])
    if kind == "area":
        area = data_flow_ops.StagingArea([tf.float32], shapes=[[2]])
        taken, put = area.get(), area.put([x * 3.0])
    else:
        area = data_flow_ops.MapStagingArea([tf.float32], shapes=[[2]])
        key = tf.cast(x[0], tf.int64)
        taken, put = area.get(key), area.put(key, [x * 3.0], [0])
    # the kernels that take block their thread until the same run has put
    own = with_threads(CONFIGS[config](), 4)
    found = same(policy, [taken, put], lambda i: {x: [i, 1]}, config=own)
    assert found[0] != found[1]


@each_policy
@each_config
def test_our_own_stage(policy, config):
    data = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
    number, square = staged([data, data * data])
    fetches = tf.stack([number + 1, square])
    found = {}
    for each in ("stock", policy):
        with v1.train.SingularMonitoredSession(
            hooks=[wb.make_prefetch_hook()], config=config_of(each, CONFIGS[config]())
        ) as session:
            found[each] = [bits(session.run(fetches)) for _ in range(30)]
    assert found["stock"] == found[policy]


@each_policy
def test_python_functions(policy):
    x = v1.placeholder(tf.float32, [3])
    counter = itertools.count()

    def called(value):
        next(counter)
        return value.sum(), np.array([b"a", b"bc"], dtype=object)

    total, texts = v1.py_func(called, [x * 2.0], [tf.float32, tf.string])
    eager = tf.py_function(lambda value: value * value, [total], tf.float32)
    same(policy, [total + 1.0, tf.strings.length(texts), eager], lambda i: {x: [i, 1, 2]})
    assert next(counter) == 2 * STEPS


@each_policy
@each_config
def test_values_go_between_two_devices(policy, config):
    x = v1.placeholder(tf.float32, [4, 4])
    with tf.device("/cpu:0"):
        w = v1.get_variable("w", [4, 4], initializer=v1.ones_initializer(), use_resource=False)
        a = tf.matmul(x, x) + 1.0
    values = [a]
    for i in range(8):
        with tf.device(f"/cpu:{(i + 1) % 2}"):
            values.append(tf.sin(values[-1]) + values[i // 2])
    with tf.device("/cpu:1"):
        b = tf.add_n([tf.reduce_sum(v) for v in values])
        with tf.control_dependencies([b]):
            text = tf.strings.as_string(b)
    with tf.device("/cpu:0"), tf.control_dependencies([text, *values]):
        added = v1.assign_add(w, values[-1])
        done = tf.identity(added)
    devices = CONFIGS[config]()
    devices.device_count["CPU"] = 2
    same(
        policy,
        [b, text, done, values[3]],
        lambda i: {x: np.arange(16).reshape(4, 4) * (i + 1)},
        before=v1.global_variables_initializer(),
        config=devices,
    )


@each_policy
def test_both_devices_wait_for_each_other(policy):
    """A blocking kernel on one device waits for what another device puts."""
    area = data_flow_ops.StagingArea([tf.float32], shapes=[[]], shared_name="between")
    queue = v1.FIFOQueue(4, [tf.float32], shapes=[[]], shared_name="between_too")
    with tf.device("/cpu:0"):
        taken = queue.dequeue() + 1.0
        put_back = area.put([taken])
    with tf.device("/cpu:1"):
        x = tf.square(tf.constant(3.0))
        moved = tf.identity(taken) * x
    with tf.device("/cpu:0"):
        put = queue.enqueue(tf.identity(x))
        got = area.get()
    devices = with_threads(plain(device_count={"CPU": 2}), 4)
    same(policy, [moved, put, put_back], config=devices, steps=7)
    same(policy, [got, put, put_back], config=devices, steps=7)


@each_policy
@each_config
def test_datasets_and_their_iterators(policy, config):
    data = (
        tf.data.Dataset.range(200)
        .map(lambda i: (i, tf.cast(i, tf.float32) * 0.5), num_parallel_calls=2)
        .shuffle(20, seed=3)
        .filter(lambda i, x: i % 3 != 0)
        .interleave(lambda i, x: tf.data.Dataset.from_tensors((i, x)).repeat(2), cycle_length=2)
        .batch(4)
        .prefetch(2)
    )
    iterator = v1.data.make_initializable_iterator(data)
    numbers, halves = iterator.get_next()
    fetches = [numbers, tf.reduce_sum(halves), iterator.get_next_as_optional().has_value()]
    same(policy, fetches[:2], before=iterator.initializer, config=CONFIGS[config](), steps=20)
    same(policy, fetches[2], before=iterator.initializer, config=CONFIGS[config]())
