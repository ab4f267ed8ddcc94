"""EmbeddingVariables in sessions: they train as a dense variable with the same first rows does."""

from __future__ import annotations

import concurrent.futures

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.examples import few
from tests.builders.intra_op_threads import require_same_bits
from workbench.ops.embedding_variable import optimizers as optimizers
from workbench.ops.embedding_variable.variable import (
    EmbeddingVariableOption,
    InitializerOption,
    get_embedding_variable,
)

v1 = tf.compat.v1

KEYS, DIM = 40, 6


def made(name="emb", dim=DIM, rows=KEYS, **options):
    options.setdefault(
        "ev_option",
        EmbeddingVariableOption(init_option=InitializerOption(default_value_dim=rows)),
    )
    return get_embedding_variable(name, dim, **options)


def parts(count):
    return v1.fixed_size_partitioner(count)


def batches(steps, seed=3, size=60):
    """Keys with many duplicates, and factors of the loss."""
    random = np.random.default_rng(seed)
    for _ in range(steps):
        yield random.integers(0, KEYS, size), random.normal(size=(size, DIM)).astype(np.float32)


def loss_of(rows, factors):
    return tf.reduce_sum(tf.tanh(rows) * factors)


def rows_of(variable, session):
    frame = variable.to_pandas(session)
    return dict(zip(frame["key"], frame.filter(regex="^v").to_numpy(), strict=True))


def defaults_of(session, name="emb"):
    (rows,) = [v for v in v1.global_variables() if v.op.name == f"{name}/default_rows"]
    return session.run(rows)


RULES = [
    ("GradientDescentOptimizer", {}),
    ("AdagradOptimizer", {}),
    ("AdagradOptimizer", {"initial_accumulator_value": 1.5}),
    ("FtrlOptimizer", {}),
    ("FtrlOptimizer", {"l1_regularization_strength": 0.3, "l2_regularization_strength": 0.2}),
    ("FtrlOptimizer", {"l2_shrinkage_regularization_strength": 0.1, "beta": 0.4}),
    ("FtrlOptimizer", {"learning_rate_power": -0.7, "initial_accumulator_value": 0.3}),
]


@pytest.mark.parametrize("count", [None, 3])
@pytest.mark.parametrize(("rule", "given"), RULES)
def test_it_trains_as_a_dense_variable_does(rule, given, count):
    keys, factors = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32, [None, DIM])
    table = made(partitioner=count and parts(count))
    dense = v1.get_variable("dense", [KEYS, DIM])
    rows = table.sparse_read(keys)
    loss, dense_loss = loss_of(rows, factors), loss_of(tf.gather(dense, keys), factors)
    step = getattr(optimizers, rule)(0.1, **given).minimize(loss)
    dense_step = getattr(v1.train, rule)(0.1, **given).minimize(dense_loss)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        dense.load(defaults_of(session), session)
        for at, by in batches(8):
            got, wanted = session.run([loss, dense_loss], {keys: at, factors: by})
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
            session.run([step, dense_step], {keys: at, factors: by})
        values, trained = session.run(dense), rows_of(table, session)
    assert len(trained) > KEYS / 2
    for key, row in trained.items():
        np.testing.assert_allclose(row, values[key], rtol=1e-5, atol=1e-6)


def test_adam_moves_the_rows_of_the_batch_alone():
    keys, factors = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32, [None, DIM])
    table = made()
    rows = table.sparse_read(keys)
    step = optimizers.AdamOptimizer(0.05, beta1=0.8, beta2=0.95).minimize(
        tf.reduce_sum(rows * factors)
    )
    m, v = np.zeros((KEYS, DIM)), np.zeros((KEYS, DIM))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wanted = defaults_of(session).astype(np.float64)
        for t, (at, by) in enumerate(batches(6, size=15), start=1):
            session.run(step, {keys: at, factors: by})
            rate = 0.05 * np.sqrt(1 - 0.95**t) / (1 - 0.8**t)
            for key in set(at):
                grad = by[at == key].sum(axis=0)
                m[key] = 0.8 * m[key] + 0.2 * grad
                v[key] = 0.95 * v[key] + 0.05 * grad**2
                wanted[key] -= rate * m[key] / (np.sqrt(v[key]) + 1e-8)
        for key, row in rows_of(table, session).items():
            np.testing.assert_allclose(row, wanted[key], rtol=1e-4, atol=1e-6)


def test_the_rows_of_deeprecs_example():
    table = get_embedding_variable("emb", 3, initializer=v1.ones_initializer())
    rows = table.sparse_read([0, 1, 2, 3, 4])
    loss = tf.reduce_sum(rows * 2.0)
    step = optimizers.FtrlOptimizer(
        0.1, l1_regularization_strength=2.0, l2_regularization_strength=0.00001
    ).minimize(loss)
    seen = []
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            seen.append((session.run(rows)[0, 0], session.run(loss)))
            session.run(step)
    np.testing.assert_allclose(
        seen, [(1.0, 30.0), (0.6462797, 19.38839), (0.5760069, 17.28021)], rtol=2e-6
    )


def test_one_optimizer_trains_tables_and_variables():
    table, dense = made(), v1.get_variable("dense", [KEYS, DIM])
    read = [table.sparse_read([1, 2, 1]), tf.gather(dense, [1, 2, 1])]
    weight = v1.get_variable("weight", [DIM], initializer=v1.ones_initializer())
    loss = tf.add_n([tf.reduce_sum(tf.square(rows) * weight) for rows in read])
    for name in ("Adam", "Adagrad", "Ftrl", "GradientDescent"):
        optimizer = getattr(optimizers, f"{name}Optimizer")(0.01)
        with v1.Session() as session:
            step = optimizer.minimize(loss)
            session.run(v1.global_variables_initializer())
            before = session.run([loss, weight, read[0]])
            session.run(step)
            after = session.run([loss, weight, read[0]])
        assert after[0] < before[0]
        assert np.all(after[1] != before[1]) and np.all(after[2] != before[2])
        if name == "Adam":
            assert optimizer.get_slot(table, "v").name == "Adam_1"
            assert optimizer.get_slot(dense, "v").op.name == "dense/Adam_1"


def test_the_stock_gradient_descent_trains_it_too():
    table = made()
    rows = table.sparse_read([7, 7, 9])
    step = v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = session.run(rows)
        session.run(step)
        np.testing.assert_allclose(session.run(rows), before - [[1.0], [1.0], [0.5]], rtol=1e-6)


def test_stock_lookups_read_it():
    table = made()
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([3, 4, 3], tf.int64), [3, 2])
    dense = table.sparse_read(tf.range(KEYS))
    fetched = [
        (tf.nn.embedding_lookup(table, [[3], [4]]), tf.gather(dense, [[3], [4]])),
        (tf.gather(table, [5]), tf.gather(dense, [5])),
        *(
            (look(table, ids, combiner="mean"), look(dense, ids, combiner="mean"))
            for look in (v1.nn.safe_embedding_lookup_sparse, tf.nn.safe_embedding_lookup_sparse)
        ),
        *(
            (lookup(table), lookup(dense))
            for lookup in [lambda t: tf.nn.embedding_lookup_sparse(t, ids, None, combiner="sum")]
        ),
    ]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for got, wanted in session.run(fetched):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_any_int_is_a_key_and_keys_have_any_shape():
    lowest, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    table = made(rows=5)
    rows = table.sparse_read(tf.constant([[lowest, -1, 0], [4, most, -1]], tf.int64))
    assert rows.shape == [2, 3, DIM]
    small = table.sparse_read(tf.constant([-1, 0], tf.int32))
    empty = table.sparse_read(tf.zeros([0, 2], tf.int64))
    (gradient,) = tf.gradients(empty, [table.handle])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        defaults = defaults_of(session)
        wanted = defaults[[[lowest % 5, 4, 0], [4, most % 5, 4]]]
        np.testing.assert_array_equal(session.run(rows), wanted)
        np.testing.assert_array_equal(session.run(small), defaults[[4, 0]])
        assert session.run(empty).shape == (0, 2, DIM)
        assert session.run(gradient).values.shape == (0, DIM)
        assert session.run(table.total_count()) == 5


_OPS = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3))),
    max_size=6,
)


@few(10)
@given(calls=_OPS, count=st.sampled_from([None, 1, 4]))
def test_it_does_what_a_dict_does(calls, count):
    with tf.Graph().as_default(), v1.Session() as session:
        table = made(rows=3, dim=2, partitioner=count and parts(count))
        keys, grads = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32, [None, 2])
        rows = table.sparse_read(keys)
        step = v1.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows * grads))
        session.run(v1.global_variables_initializer())
        defaults = defaults_of(session)
        model: dict[int, np.ndarray] = {}
        for train, batch in calls:
            for key in batch:
                model.setdefault(key, defaults[key % 3].copy())
            feed = {keys: np.array(batch, np.int64), grads: np.ones((len(batch), 2))}
            np.testing.assert_array_equal(
                session.run(rows, feed), np.reshape([model[key] for key in batch], (-1, 2))
            )
            if train:
                session.run(step, feed)
                for key in set(batch):
                    model[key] = model[key] - np.float32(batch.count(key))
        found = rows_of(table, session)
        assert found.keys() == model.keys()
        assert all(np.array_equal(found[key], model[key]) for key in model)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_partitions_change_no_bit(count):
    def trained(partitions):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(5)
            table = made(partitioner=partitions and parts(partitions))
            keys, factors = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32)
            loss = loss_of(table.sparse_read(keys * 613 - 5000), factors)
            step = optimizers.AdagradOptimizer(0.1).minimize(loss)
            session.run(v1.global_variables_initializer())
            for at, by in batches(5):
                session.run(step, {keys: at, factors: by})
            return table.to_pandas(session)

    one, several = trained(None), trained(count)
    assert one.equals(several)
    assert len(one) > 20


def trained_by_many_keys():
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(5)
        table = made(dim=16, rows=64)
        keys, factors = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32)
        loss = loss_of(table.sparse_read(keys), factors)
        step = optimizers.FtrlOptimizer(0.1).minimize(loss)
        session.run(v1.global_variables_initializer())
        random = np.random.default_rng(1)
        for _ in range(3):
            at = random.zipf(1.2, 30_000)
            by = random.normal(size=(30_000, 16)).astype(np.float32)
            session.run(step, {keys: at, factors: by})
        contents = session.run(table.export(table.slots.all())._asdict())
        return [contents["keys"], contents["values"], *contents["slots"]]


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit():
    require_same_bits(trained_by_many_keys)


def test_a_seed_gives_the_same_rows_in_any_order_of_keys():
    def rows(keys):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(11)
            table = get_embedding_variable("emb", DIM)
            read = table.sparse_read(tf.constant(keys, tf.int64))
            session.run(v1.global_variables_initializer())
            session.run(read)
            return table.to_pandas(session)

    some = [5, 4096 + 5, -9, 123456789012]
    first = rows(some)
    assert first.equals(rows(some[::-1]))
    values = first.set_index("key")
    assert values.loc[5].equals(values.loc[4101].rename(5))
    assert values.loc[5].std() > 0


def test_a_million_keys_from_eight_threads_each_get_one_row():
    each, size = 125_000, 5_000
    table = made(rows=1, dim=16, initializer=v1.ones_initializer())
    keys = v1.placeholder(tf.int64, [None])
    read = table.sparse_read(keys).op
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())

        def insert(thread):
            # Half of every thread's keys are the next thread's too.
            for at in range(0, each, size):
                batch = np.arange(at, at + size) + thread * each // 2
                session.run(read, {keys: batch * 104_729})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(insert, range(8)))
        rows, waiting, size_now = session.run(table.sizes())
        found = table.to_pandas(session)["key"].to_numpy()
    np.testing.assert_array_equal(found, np.arange(each * 9 // 2) * 104_729)
    assert (rows, waiting) == (len(found), 0)
    assert size_now / rows <= 1.3 * (8 + 4 * 16)


def test_lookups_that_only_read_make_no_rows():
    table, fixed = made(), made("fixed", trainable=False)
    read = table.sparse_read([1, 2], read_only=True)
    untrained = fixed.sparse_read([1, 2])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(read), defaults_of(session)[[1, 2]])
        session.run(untrained)
        assert session.run([table.total_count(), fixed.total_count()]) == [0, 0]
    assert v1.trainable_variables() == [table]


def test_to_initialize_is_to_begin_anew():
    table = made()
    read = table.sparse_read([1])
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="emb/default_rows"):
            session.run(read)
        session.run(v1.global_variables_initializer())
        session.run(read)
        assert session.run(table.total_count()) == 1
        session.run(v1.global_variables_initializer())
        assert session.run(table.total_count()) == 0


def test_it_lies_in_the_hosts_memory():
    with tf.device("/job:worker/gpu:0"):
        table = made()
    for op in (table.op, table.sparse_read([1]).op, table.sizes().op):
        assert tf.DeviceSpec.from_string(op.device).device_type == "CPU"
        assert tf.DeviceSpec.from_string(op.device).job == "worker"
