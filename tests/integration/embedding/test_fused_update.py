"""`fused_update` against the optimizers that it is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tests.builders.grids import every_value
from workbench import ops
from workbench.errors import OptionError, UnsupportedError
from workbench.ops import fused_update, grouped_embedding_lookup

v1 = tf.compat.v1
ROWS, STEPS, EXAMPLES, EACH = 24, 40, 16, 4
DIMS = (16, 40)
WEIGHTS = np.array([0.1, 0.4, 0.3, 0.2], np.float32)
V1 = {
    "GradientDescent": lambda: v1.train.GradientDescentOptimizer(0.02),
    "Adagrad": lambda: v1.train.AdagradOptimizer(0.05),
    "Adam": lambda: v1.train.AdamOptimizer(0.01),
    "Ftrl": lambda: v1.train.FtrlOptimizer(
        *(0.05, -0.5, 0.1, 0.01, 0.02), l2_shrinkage_regularization_strength=0.03, beta=0.1
    ),
}
KERAS = {
    "SGD": lambda: tf.keras.optimizers.SGD(0.02),
    "Adagrad": lambda: tf.keras.optimizers.Adagrad(0.05),
    "Adam": lambda: tf.keras.optimizers.Adam(0.01),
    "Ftrl": lambda: tf.keras.optimizers.Ftrl(
        *(0.05, -0.5, 0.1, 0.01, 0.02), l2_shrinkage_regularization_strength=0.03, beta=0.1
    ),
}
LOOKUPS = ("separate", "concatenated", "gathered")
# Of these a step changes all rows, so that each must have a gradient for results to be equal.
MOVE_ALL = ("Adam", "Ftrl")


def drawn_ids(every_row: bool) -> np.ndarray:
    """[steps, 3, examples * each] ids, few of them often."""
    random = np.random.default_rng(5)
    ids = random.zipf(1.5, size=(STEPS, 3, EXAMPLES * EACH)) % ROWS
    if every_row:
        ids[:, :2, :ROWS] = np.arange(ROWS)
    return ids.astype(np.int64)


def values_of(table: int) -> np.ndarray:
    return np.random.default_rng(table).normal(size=(ROWS, DIMS[table])).astype(np.float32)


def look_up(how: str, tables: list[Any], ids: list[tf.Tensor]) -> tf.Tensor:
    """Three features, the first and the last of one table, beside each other."""
    at = np.stack([np.arange(EXAMPLES * EACH) // EACH, np.arange(EXAMPLES * EACH) % EACH], 1)
    sparse = [tf.SparseTensor(at, each, [EXAMPLES, EACH]) for each in ids]
    read = [tables[0], tables[1], tables[0]]
    # The last feature is weighted; WEIGHTS sum to 1.
    weights = tf.SparseTensor(at, tf.tile(WEIGHTS, [EXAMPLES]), [EXAMPLES, EACH])
    if how != "gathered":
        joined = how == "concatenated"
        found = grouped_embedding_lookup(read, sparse, [None, None, weights], concatenate=joined)
        return found if joined else tf.concat(found, 1)
    by_row = [tf.reshape(each, [EXAMPLES, EACH]) for each in ids]
    found = [tf.gather(table, each) for table, each in zip(read, by_row, strict=True)]
    means = [tf.reduce_mean(each, 1) for each in found[:2]]
    return tf.concat([*means, tf.einsum("bed,e->bd", found[2], tf.constant(WEIGHTS))], 1)


def loss_of(found: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.square(found - 1.0))


def train_v1(make: Callable[[], Any], how: str, resource: bool, ids: np.ndarray) -> list[Any]:
    """Tables and slots after all steps in a session."""
    with tf.Graph().as_default():
        step = v1.placeholder(tf.int32, [])
        tables = [
            v1.get_variable(f"table_{i}", initializer=values_of(i), use_resource=resource)
            for i in range(len(DIMS))
        ]
        optimizer = make()
        given = [tf.gather(tf.constant(ids[:, feature]), step) for feature in range(3)]
        train_op = optimizer.minimize(loss_of(look_up(how, tables, given)))
        slots = [
            optimizer.get_slot(table, name)
            for table in tables
            for name in optimizer.get_slot_names()
        ]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for number in range(STEPS):
                session.run(train_op, {step: number})
            made: list[Any] = session.run([*tables, *slots])
    return made


def train_keras(
    make: Callable[[], Any],
    how: str,
    ids: np.ndarray,
    *,
    dense: bool = False,
    compiled: bool = True,
) -> list[Any]:
    """Tables and slots after all steps; `dense` sums the gradients of a row as a tensor."""
    with context.eager_mode():
        tables = [tf.Variable(values_of(i)) for i in range(len(DIMS))]
        optimizer = make()
        optimizer.build(tables)

        def step(given: tf.Tensor) -> None:
            with tf.GradientTape() as tape:
                loss = loss_of(look_up(how, tables, tf.unstack(given)))
            grads = tape.gradient(loss, tables)
            if dense:
                grads = [tf.convert_to_tensor(each) for each in grads]
            optimizer.apply(grads, tables)

        run = tf.function(step) if compiled else step
        for batch in ids:
            run(tf.constant(batch))
        slots = [each for each in optimizer.variables if tuple(each.shape)[:1] == (ROWS,)]
        return [tf.convert_to_tensor(each).numpy() for each in (*tables, *slots)]


def assert_close(ours: list[Any], stock: list[Any]) -> None:
    assert len(ours) == len(stock)
    for mine, theirs in zip(ours, stock, strict=True):
        # A value near 0 is the difference of larger ones.
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


def with_lookups(kinds: dict[str, Any], quick: dict[str, tuple[str, ...]]) -> list[Any]:
    """Each kind of optimizer with each kind of lookup; slow but for those in `quick`."""
    return [
        pytest.param(kind, how, marks=() if how in quick[kind] else pytest.mark.slow)
        for kind in kinds
        for how in LOOKUPS
    ]


class TestEqualsTheOptimizer:
    @pytest.mark.parametrize("resource", [False, True])
    @pytest.mark.parametrize(
        ("kind", "how"),
        with_lookups(
            V1,
            {
                "GradientDescent": ("separate",),
                "Adagrad": LOOKUPS,
                "Adam": ("gathered",),
                "Ftrl": ("concatenated",),
            },
        ),
    )
    def test_of_a_session(self, kind: str, resource: bool, how: str) -> None:
        ids = drawn_ids(kind in MOVE_ALL)
        ours = train_v1(lambda: fused_update(V1[kind]()), how, resource, ids)
        assert_close(ours, train_v1(V1[kind], how, resource, ids))

    @pytest.mark.parametrize(
        ("kind", "how"),
        with_lookups(
            KERAS,
            {
                "SGD": ("gathered",),
                "Adagrad": ("separate",),
                "Adam": ("concatenated",),
                "Ftrl": ("concatenated",),
            },
        ),
    )
    def test_of_keras(self, kind: str, how: str) -> None:
        ids = drawn_ids(kind in MOVE_ALL)
        ours = train_keras(lambda: fused_update(KERAS[kind]()), how, ids)
        assert_close(ours, train_keras(KERAS[kind], how, ids, dense=True))

    def test_eagerly(self) -> None:
        ids = drawn_ids(every_row=True)[:10]
        ours = train_keras(lambda: fused_update(KERAS["Adam"]()), "separate", ids, compiled=False)
        assert_close(ours, train_keras(KERAS["Adam"], "separate", ids, dense=True))

    @pytest.mark.parametrize("kind", V1)
    def test_to_the_bit_every_time(self, kind: str) -> None:
        ids = drawn_ids(every_row=False)
        made = [
            train_v1(lambda: fused_update(V1[kind]()), "concatenated", True, ids) for _ in range(3)
        ]
        for again in made[1:]:
            for one, other in zip(made[0], again, strict=True):
                np.testing.assert_array_equal(one, other)


class TestRows:
    @pytest.mark.parametrize("kind", ["Adam", "Ftrl"])
    def test_that_a_batch_did_not_ask_for_stay(self, kind: str) -> None:
        ids = np.full([STEPS, 3, EXAMPLES * EACH], 3, np.int64)
        made = train_v1(lambda: fused_update(V1[kind]()), "concatenated", True, ids)
        others = np.arange(ROWS) != 3
        for table in range(len(DIMS)):
            np.testing.assert_array_equal(made[table][others], values_of(table)[others])
            assert (made[table][3] != values_of(table)[3]).all()
        for slot in made[len(DIMS) :]:
            assert len(np.unique(slot[others])) == 1

    def test_gradients_that_were_changed_since_are_applied_as_they_are(self) -> None:
        with tf.Graph().as_default():
            table = v1.get_variable("table", initializer=values_of(0), use_resource=True)
            other = v1.get_variable("other", initializer=values_of(1), use_resource=True)
            ids = [tf.constant(each) for each in drawn_ids(every_row=False)[0]]
            optimizer = fused_update(v1.train.GradientDescentOptimizer(1.0))
            loss = loss_of(look_up("concatenated", [table, other], ids))
            ((slices, _),) = optimizer.compute_gradients(loss, [table])
            half = tf.IndexedSlices(slices.values / 2, slices.indices, slices.dense_shape)
            with tf.control_dependencies([tf.identity(table)]):
                wanted = table - tf.convert_to_tensor(half)
            with tf.control_dependencies([wanted]):
                train_op = optimizer.apply_gradients([(half, table)])
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                expected, _ = session.run([wanted, train_op])
                np.testing.assert_allclose(session.run(table), expected, rtol=1e-6, atol=1e-6)


class TestOneOp:
    @pytest.mark.parametrize("resource", [False, True])
    @pytest.mark.parametrize("make", [*V1.values(), lambda: ops.AdagradOptimizer(0.1)])
    def test_takes_the_lookups_gradient_to_the_table(
        self, make: Callable[[], Any], resource: bool
    ) -> None:
        with tf.Graph().as_default():
            tables = [
                v1.get_variable(f"table_{i}", initializer=values_of(i), use_resource=resource)
                for i in range(len(DIMS))
            ]
            ids = [tf.constant(each) for each in drawn_ids(every_row=False)[0]]
            loss = loss_of(look_up("concatenated", tables, ids))
            train_op = fused_update(make()).minimize(loss)
            needed, waiting = {train_op}, [train_op]
            while waiting:
                op = waiting.pop()
                before = {*(each.op for each in op.inputs), *op.control_inputs} - needed
                needed |= before
                waiting += before
        kinds = [op.type for op in needed]
        op_type = f"Workbench{'Resource' if resource else ''}GroupedApply"
        assert kinds.count(op_type) == len(DIMS)
        assert not {"WorkbenchGroupedLookUpGrad", "Unique", "UnsortedSegmentSum"} & set(kinds)


class TestCheckpoints:
    def test_are_those_of_the_optimizer(self, tmp_path: Path) -> None:
        with context.eager_mode():
            ids = tf.constant(drawn_ids(every_row=False)[0])

            def trained(optimizer: Any, steps: int) -> tuple[list[tf.Variable], Any]:
                tables = [tf.Variable(values_of(i)) for i in range(len(DIMS))]
                optimizer.build(tables)
                for _ in range(steps):
                    with tf.GradientTape() as tape:
                        loss = loss_of(look_up("separate", tables, tf.unstack(ids)))
                    optimizer.apply(tape.gradient(loss, tables), tables)
                return tables, optimizer

            tables, optimizer = trained(fused_update(KERAS["Adam"]()), 3)
            kept = tf.train.Checkpoint(tables=tables, optimizer=optimizer)
            path = kept.save(str(tmp_path / "fused"))
            others, plain = trained(KERAS["Adam"](), 1)
            tf.train.Checkpoint(tables=others, optimizer=plain).restore(path).assert_consumed()
            assert len(plain.variables) == len(optimizer.variables)
            for mine, theirs in zip(optimizer.variables, plain.variables, strict=True):
                np.testing.assert_array_equal(*map(tf.convert_to_tensor, (mine, theirs)))
            own, stock = optimizer.get_config(), plain.get_config()
            assert {**own, "name": ""} == {**stock, "name": ""}


class TestRefuses:
    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9), "SGD with momentum=0.9"),
            (lambda: tf.keras.optimizers.Adam(0.1, amsgrad=True), "Adam with amsgrad=True"),
            (lambda: tf.keras.optimizers.AdamW(0.1), r"AdamW; expected one of SGD, Adagrad"),
            (lambda: tf.keras.optimizers.RMSprop(0.1), "RMSprop"),
            (lambda: v1.train.MomentumOptimizer(0.1, 0.9), "MomentumOptimizer"),
            (lambda: "adam", r"builtins.str"),
        ],
    )
    def test_what_it_does_not_know(self, make: Callable[[], Any], said: str) -> None:
        with context.eager_mode(), pytest.raises(UnsupportedError, match=said):
            fused_update(make())

    @pytest.mark.parametrize("make", [ops.RowWiseAdagrad, ops.RowWiseAdagradOptimizer])
    def test_an_accumulator_below_0(self, make: Any) -> None:
        with (
            context.eager_mode(),
            pytest.raises(OptionError, match="initial_accumulator_value is -1"),
        ):
            make(0.1, -1)


class TestRowWiseAdagrad:
    @staticmethod
    def expected(ids: np.ndarray) -> list[np.ndarray]:
        tables = [tf.Variable(values_of(i)) for i in range(len(DIMS))]
        sums = [np.full(ROWS, 0.1) for _ in DIMS]
        for batch in ids:
            with tf.GradientTape() as tape:
                loss = loss_of(look_up("gathered", tables, tf.unstack(batch)))
            for table, total, slices in zip(tables, sums, tape.gradient(loss, tables), strict=True):
                grad = tf.convert_to_tensor(slices).numpy()
                total += np.mean(np.square(grad), 1)
                table.assign_sub(0.05 * grad / (np.sqrt(total) + 1e-8)[:, None])
        return [*(table.numpy() for table in tables), *sums]

    @every_value(dense=[False, True], how=["separate", "gathered"])
    def test_of_keras(self, how: str, dense: bool) -> None:
        ids = drawn_ids(every_row=False)
        with context.eager_mode():
            expected = self.expected(ids)
        made = train_keras(lambda: ops.RowWiseAdagrad(0.05, 0.1), how, ids, dense=dense)
        assert_close(made, expected)

    def test_is_made_anew_from_its_configuration(self) -> None:
        with context.eager_mode():
            optimizer = fused_update(ops.RowWiseAdagrad(0.05, 0.1))
            again = ops.RowWiseAdagrad.from_config(optimizer.get_config())
            assert again.get_config() == optimizer.get_config()

    @every_value(resource=[False, True], how=["separate", "gathered"])
    def test_of_a_session(self, how: str, resource: bool) -> None:
        ids = drawn_ids(every_row=False)
        with context.eager_mode():
            expected = self.expected(ids)
        made = train_v1(lambda: ops.RowWiseAdagradOptimizer(0.05, 0.1), how, resource, ids)
        assert_close(made, expected)

    def test_of_variables_that_are_no_tables(self) -> None:
        with context.eager_mode():
            scale, bias = tf.Variable(2.0), tf.Variable([1.0, 2.0])
            optimizer = ops.RowWiseAdagrad(0.1, 0.0)
            optimizer.build([scale, bias])
            optimizer.apply([tf.constant(4.0), tf.constant([3.0, -3.0])], [scale, bias])
            np.testing.assert_allclose(scale, 1.9)
            np.testing.assert_allclose(bias, [0.9, 2.1])


def test_embedding_variables_are_updated_as_without_it() -> None:
    found = {}
    for fused in (False, True):
        with tf.Graph().as_default():
            v1.set_random_seed(4)
            table = ops.get_embedding_variable("keys", 4)
            ids = tf.sparse.from_dense(tf.constant([[1, 2], [1, 7]], tf.int64))
            (vectors,) = grouped_embedding_lookup([table], [ids])
            optimizer = ops.AdagradOptimizer(0.1)
            if fused:
                optimizer = fused_update(optimizer)
            train_op = optimizer.minimize(tf.reduce_sum(tf.square(vectors)))
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                for _ in range(3):
                    session.run(train_op)
                found[fused] = table.to_pandas(session)
    assert found[True].equals(found[False])
