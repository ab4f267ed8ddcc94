"""Keras models whose stock lookups grouped ops do: they train, and say what was done."""

from __future__ import annotations

import copy
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.functions import producers
from tests.builders.grids import every_pair, rest_slow
from tests.builders.keras_lookups import (
    ROWS,
    Bag,
    columns_data,
    columns_model,
    dense_data,
    dense_model,
    require_alike,
    sparse_data,
    sparse_model,
    trained,
    values,
)
from tests.builders.keras_models import number_model, numeric
from workbench.ops import fused_update


def step_of(model: keras.Model) -> tf.Graph:
    """The graph of a training step of `dense_model`, as it is now."""
    ids = tuple(tf.TensorSpec([None, 3], tf.int32) for _ in range(3))
    step = tf.function(model.train_step, autograph=False)
    return step.get_concrete_function((ids, tf.TensorSpec([None, 1]))).graph


def ops_of(model: keras.Model) -> list[str]:
    return [op.type for op in step_of(model).get_operations()]


class TestTraining:
    def test_all_lookups_and_updates_are_an_op_each(self) -> None:
        model, fusion = require_alike(dense_model, dense_data())
        assert len(fusion.plan.of("lookup")) == 3 and not fusion.plan.refusals
        assert all(each.updates for each in fusion.plan.of("lookup"))
        ops = ops_of(model)
        assert ops.count("WorkbenchResourceGroupedLookUp") == 1
        assert ops.count("WorkbenchResourceGroupedApply") == 1
        assert "ResourceScatterSub" not in ops

    @pytest.mark.parametrize(
        ("optimizer", "op"),
        [
            (keras.optimizers.Adagrad, "WorkbenchResourceGroupedApply"),
            (keras.optimizers.Adam, "WorkbenchResourceGroupedApplyAll"),
        ],
    )
    def test_adagrad_and_adam_as_keras_has_them(self, optimizer: Any, op: str) -> None:
        model, fusion = require_alike(lambda: dense_model(optimizer(0.05)), dense_data(), rtol=5e-6)
        assert all(each.updates for each in fusion.plan.of("lookup"))
        assert ops_of(model).count(op) == 1

    @pytest.mark.parametrize(
        ("optimizer", "by_value"),
        [
            (keras.optimizers.Adagrad, True),
            (keras.optimizers.Adam, False),
            pytest.param(keras.optimizers.Adagrad, False, marks=pytest.mark.slow),
            pytest.param(keras.optimizers.Adam, True, marks=pytest.mark.slow),
        ],
    )
    def test_adagrad_and_adam_of_sparse_ids(self, optimizer: Any, by_value: bool) -> None:
        _, fusion = require_alike(
            lambda: sparse_model(optimizer(0.05), by_value=by_value), sparse_data(), rtol=5e-6
        )
        assert all(each.updates for each in fusion.plan.of("lookup"))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "optimizer",
        [
            lambda: keras.optimizers.Adagrad(0.05, epsilon=0.0),
            pytest.param(lambda: keras.optimizers.Adam(0.05, amsgrad=True), marks=pytest.mark.slow),
        ],
    )
    def test_what_could_differ_stays(self, optimizer: Any) -> None:
        _, fusion = require_alike(lambda: dense_model(optimizer()), dense_data(), rtol=5e-6)
        assert all(each.note for each in fusion.plan.of("lookup"))

    def test_tables_are_not_read_as_a_whole(self) -> None:
        model, _, _ = trained(dense_model, dense_data(), fused=True)
        reads = [op for op in step_of(model).get_operations() if op.type == "ReadVariableOp"]
        assert not [op.name for op in reads if op.outputs[0].shape[:1] == [ROWS]]

    @every_pair(safe=[True, False], by_value=[True, False], combiner=["mean", "sum"])
    def test_sparse_ids(self, safe: bool, by_value: bool, combiner: str) -> None:
        _, fusion = require_alike(
            lambda: sparse_model(safe=safe, by_value=by_value, combiner=combiner),
            sparse_data(empty_rows=safe),
        )
        (lookup,) = fusion.plan.of("lookup")
        assert lookup.updates and not fusion.plan.refusals

    def test_negative_ids_count_from_the_end_as_keras_has_it(self) -> None:
        data = dense_data().map(lambda ids, labels: (tuple(each - 4 for each in ids), labels))
        require_alike(dense_model, data)

    @pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
    def test_one_op_prepares_the_columns_of_a_matrix(self, dtype: str) -> None:
        model, fusion = require_alike(lambda: columns_model(dtype=dtype), columns_data(dtype))
        assert len(fusion.plan.of("lookup")) == len(fusion.plan.of("id column")) == 5
        step = tf.function(model.train_step, autograph=False)
        batch = tf.TensorSpec([None, 5], dtype), tf.TensorSpec([None, 1])
        ops = [op.type for op in step.get_concrete_function(batch).graph.get_operations()]
        assert ops.count("WorkbenchIdColumns") == 1 and "SelectV2" not in ops

    @pytest.mark.parametrize("id_", [-ROWS - 1, ROWS])
    def test_an_id_outside_its_table_fails_as_in_keras(self, id_: int) -> None:
        for fused in (False, True):
            model = columns_model()
            if fused:
                wb.fuse_model(model)
            with pytest.raises(tf.errors.InvalidArgumentError):
                model.train_on_batch(tf.fill([2, 5], id_), tf.zeros([2, 1]))

    @pytest.mark.parametrize(
        "options",
        [
            {"weight_decay": 0.01},
            {"global_clipnorm": 0.5},
            {"gradient_accumulation_steps": 2},
            # Others of gradients and of weights.
            pytest.param({"clipnorm": 0.1}, marks=pytest.mark.slow),
            pytest.param({"clipvalue": 0.01}, marks=pytest.mark.slow),
            pytest.param({"use_ema": True, "ema_momentum": 0.9}, marks=pytest.mark.slow),
            pytest.param({"momentum": 0.9}, marks=pytest.mark.slow),
            pytest.param({"momentum": 0.9, "nesterov": True}, marks=pytest.mark.slow),
        ],
    )
    def test_optimizers_with_options(self, options: dict[str, Any]) -> None:
        require_alike(lambda: dense_model(keras.optimizers.SGD(0.1, **options)), dense_data())

    def test_a_learning_rate_that_follows_the_steps(self) -> None:
        schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)
        _, fusion = require_alike(lambda: dense_model(keras.optimizers.SGD(schedule)), dense_data())
        assert len({each.op for each in fusion.plan.of("lookup") if each.updates}) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "optimizer", rest_slow(["rmsprop", "adamax", "nadam", "ftrl", "lion"], "ftrl")
    )
    def test_another_optimizer_keeps_its_updates_and_the_plan_says_so(self, optimizer: str) -> None:
        _, fusion = require_alike(lambda: dense_model(optimizer), dense_data())
        assert not any(each.updates for each in fusion.plan.of("lookup"))
        assert all(each.note for each in fusion.plan.of("lookup"))
        assert "updates 3 tables as before" in fusion.describe()
        assert "workbench.ops.fused_update(optimizer)" in fusion.describe()

    @pytest.mark.slow
    @pytest.mark.parametrize("optimizer", rest_slow(["SGD", "Adagrad", "Adam"], "Adam"))
    def test_an_optimizer_that_updates_natively(self, optimizer: str) -> None:
        def build() -> keras.Model:
            return dense_model(fused_update(getattr(keras.optimizers, optimizer)(0.05)))

        model, fusion = require_alike(build, dense_data(), rtol=5e-6)
        assert all(each.updates for each in fusion.plan.of("lookup"))
        ops = ops_of(model)
        assert ops.count("WorkbenchResourceGroupedApply") == 1
        assert "WorkbenchResourceRowsApply" not in ops

    @pytest.mark.parametrize(
        ("optimizer", "op"),
        [
            pytest.param(
                keras.optimizers.SGD, "WorkbenchResourceGroupedApply", marks=pytest.mark.slow
            ),
            (keras.optimizers.Adagrad, "WorkbenchResourceGroupedApply"),
            (keras.optimizers.Adam, "WorkbenchResourceGroupedApplyAll"),
        ],
    )
    def test_a_table_of_several_features_is_looked_up_and_updated_at_once(
        self, optimizer: Any, op: str
    ) -> None:
        """Keras's Adagrad and Adam count the square of each gradient of a row."""

        def build() -> keras.Model:
            given = [keras.Input((3,), dtype="int32") for _ in range(3)]
            table = keras.layers.Embedding(ROWS, 4)
            found = [keras.layers.Flatten()(table(each)) for each in given]
            model = keras.Model(given, keras.layers.Dense(1)(keras.layers.Concatenate()(found)))
            model.compile(optimizer(0.05), "mse", jit_compile=False)
            return model

        model, fusion = require_alike(build, dense_data(), rtol=5e-6)
        assert len({each.op for each in fusion.plan.of("lookup")}) == 1
        assert all(each.updates for each in fusion.plan.of("lookup"))
        assert ops_of(model).count(op) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "optimizer",
        rest_slow([keras.optimizers.Adagrad, keras.optimizers.Adam], keras.optimizers.Adagrad),
    )
    def test_a_table_of_several_features_of_sparse_ids_keeps_such_updates(
        self, optimizer: Any
    ) -> None:
        """They count the square of what each feature has for a row."""

        def build() -> keras.Model:
            given = [keras.Input((5,), dtype="int32", sparse=True) for _ in range(2)]
            bag = Bag()
            found = keras.layers.Concatenate()([bag(each) for each in given])
            model = keras.Model(given, keras.layers.Dense(1)(found))
            model.compile(optimizer(0.05), "mse", jit_compile=False)
            return model

        data = sparse_data().map(lambda ids, labels: ((ids, ids), labels))
        _, fusion = require_alike(build, data, rtol=5e-6)
        assert len(fusion.plan.of("lookup")) == 2
        assert not any(each.updates for each in fusion.plan.of("lookup"))

    def test_masks_and_regularizers(self) -> None:
        def build() -> keras.Model:
            given = keras.Input((3,), dtype="int32")
            table = keras.layers.Embedding(
                ROWS, 4, mask_zero=True, embeddings_regularizer=keras.regularizers.L2(0.01)
            )
            pooled = keras.layers.GlobalAveragePooling1D()(table(given))
            model = keras.Model(given, keras.layers.Dense(1)(pooled))
            model.compile("sgd", "mse", jit_compile=False)
            return model

        data = dense_data(1).map(lambda ids, labels: (ids[0], labels))
        _, fusion = require_alike(build, data)
        assert len(fusion.plan.of("lookup")) == 1

    @pytest.mark.parametrize(
        "policy", rest_slow(["mixed_bfloat16", "mixed_float16"], "mixed_bfloat16")
    )
    def test_mixed_precision(self, policy: str) -> None:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            _, fusion = require_alike(dense_model, dense_data(), rtol=2e-5)
        finally:
            keras.config.set_dtype_policy(before)
        assert len(fusion.plan.of("lookup")) == 3

    @pytest.mark.slow
    @pytest.mark.parametrize("steps", rest_slow([2, 4], 4))
    def test_several_steps_an_execution(self, steps: int) -> None:
        model, _ = require_alike(lambda: dense_model(steps_per_execution=steps), dense_data())
        assert model.predict(dense_data(), verbose=0).shape == (44, 1)

    def test_sample_and_class_weights(self) -> None:
        data = dense_data().map(lambda ids, labels: (ids, labels, tf.abs(labels)))
        require_alike(dense_model, data)

    def test_a_step_of_the_users_own(self) -> None:
        class Model(keras.Model):
            def train_step(self, data: Any) -> dict[str, tf.Tensor]:
                ids, labels = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(ids, training=True) - labels) ** 4)
                found = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply(found, self.trainable_variables)
                return {"loss": loss, "largest": tf.reduce_max(found[-1])}

        def build() -> keras.Model:
            plain = dense_model()
            model = Model(plain.inputs, plain.outputs)
            model.compile("sgd", jit_compile=False)
            return model

        _, fusion = require_alike(build, dense_data())
        assert all(each.updates for each in fusion.plan.of("lookup"))

    def test_a_subclassed_model_that_is_built_by_its_first_batch(self) -> None:
        class Model(keras.Model):
            def __init__(self) -> None:
                super().__init__()
                self.tables = [keras.layers.Embedding(ROWS, 4) for _ in range(3)]
                self.out = keras.layers.Dense(1)

            def call(self, ids: Any) -> tf.Tensor:
                found = [table(each) for table, each in zip(self.tables, ids, strict=True)]
                return self.out(tf.concat([tf.reduce_sum(each, 1) for each in found], -1))

        def build() -> keras.Model:
            model = Model()
            model.compile("sgd", "mse", jit_compile=False)
            return model

        _, fusion = require_alike(build, dense_data())
        assert len(fusion.plan.of("lookup")) == 3

    def test_with_a_smart_stage(self) -> None:
        def build() -> keras.Model:
            model = dense_model()
            wb.smart_stage(model)
            return model

        data, results = dense_data().prefetch(1), []
        for each in (dense_model, build):
            model, fusion, history = trained(each, data, fused=True)
            assert len(fusion.plan.of("lookup")) == 3
            results.append((history, values(model)))
        (plain, weights), (found, staged_weights) = results
        assert found == plain
        for name, expected in weights.items():
            np.testing.assert_array_equal(staged_weights[name], expected)
        assert not producers()


class TestOtherSteps:
    def test_evaluate_and_predict_give_the_same_bits(self) -> None:
        keras.utils.set_random_seed(1)
        model, data = dense_model(), dense_data()
        wanted = model.evaluate(data, verbose=0), model.predict(data, verbose=0)
        fusion = wb.fuse_model(model)
        found = model.evaluate(data, verbose=0), model.predict(data, verbose=0)
        assert found[0] == wanted[0]
        np.testing.assert_array_equal(found[1], wanted[1])
        assert fusion.plan is None and set(fusion.plans) == {"test", "predict"}
        assert all(len(plan.of("lookup")) == 3 for plan in fusion.plans.values())

    def test_single_batches(self) -> None:
        ids, labels = next(iter(dense_data()))
        results = []
        for fused in (False, True):
            keras.utils.set_random_seed(1)
            model = dense_model()
            fusion = wb.fuse_model(model) if fused else None
            results.append(
                [
                    model.train_on_batch(ids, labels),
                    model.test_on_batch(ids, labels),
                    model.predict_on_batch(ids).tolist(),
                ]
            )
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert set(fusion.plans) == {"train", "test", "predict"}

    def test_a_step_that_is_called_by_hand_is_the_models_own(self) -> None:
        model = dense_model()
        fusion = wb.fuse_model(model)
        batch = next(iter(dense_data()))
        assert set(model.test_step(batch)) == {"loss", "mae"}

        @tf.function(autograph=False)
        def gradient(data: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model.predict_step(data))
            return tape.gradient(loss, model.trainable_variables)

        assert all(each is not None for each in gradient(batch))
        assert not fusion.plans

    def test_an_id_outside_its_table_is_named(self) -> None:
        model = dense_model()
        wb.fuse_model(model)
        ids = tuple(tf.fill([2, 3], 99) for _ in range(3))
        with pytest.raises(tf.errors.InvalidArgumentError, match="id 99"):
            model.predict_on_batch(ids)


class TestHandle:
    def test_before_a_step_it_says_what_to_call(self) -> None:
        fusion = wb.fuse_model(dense_model())
        assert fusion.plan is None
        assert fusion.describe() == "no step has run yet: call fit, evaluate or predict"

    @pytest.mark.slow
    def test_a_model_without_tables_stays(self) -> None:
        results = []
        for fused in (False, True):
            keras.utils.set_random_seed(3)
            model = number_model()
            fusion = wb.fuse_model(model) if fused else None
            results.append((model.fit(**numeric(), verbose=0).history, values(model)))
        assert results[0][0] == results[1][0]
        assert fusion.describe() == (
            "train step:\n"
            "  the graph has no stock lookup, batch normalization or interaction of vectors"
        )

    def test_removing_gives_the_model_back(self) -> None:
        model = dense_model()
        with wb.fuse_model(model) as fusion:
            assert wb.fuse_model(model) is fusion
            model.fit(dense_data(), verbose=0)
        fusion.remove()
        assert not {"train_step", "test_step", "predict_step"} & set(model.__dict__)
        assert model.supports_jit and model.train_function is None and not fusion.plans
        assert "WorkbenchResourceGroupedLookUp" not in ops_of(model)
        model.fit(dense_data(), verbose=0)

    def test_saved_and_copied_it_is_a_plain_model(self, tmp_path: Any) -> None:
        model, _, _ = trained(dense_model, dense_data(), fused=True)
        model.save(tmp_path / "m.keras")
        loaded = keras.models.load_model(tmp_path / "m.keras")
        for other in (copy.deepcopy(model), loaded, keras.models.clone_model(model)):
            assert "train_step" not in other.__dict__ and other.supports_jit
        wanted, found = values(model), values(loaded)
        for one, other in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(one, other)
        # It trains on where the other one ended.
        again = wb.fuse_model(loaded)
        np.testing.assert_allclose(
            loaded.fit(dense_data(), verbose=0).history["loss"],
            model.fit(dense_data(), verbose=0).history["loss"],
            rtol=1e-6,
        )
        assert again.plan is not None

    def test_compiled_later_and_again(self) -> None:
        model = dense_model()
        plain = keras.Model(model.inputs, model.outputs)
        fusion = wb.fuse_model(plain)
        plain.compile("sgd", "mse")
        assert plain.jit_compile is False
        plain.fit(dense_data(), verbose=0)
        plain.compile("rmsprop", "mse")
        plain.fit(dense_data(), verbose=0)
        assert all(each.note for each in fusion.plan.of("lookup"))


class TestRefused:
    def test_a_model_that_runs_eagerly(self) -> None:
        model = dense_model(run_eagerly=True)
        with pytest.raises(wb.errors.UnsupportedError, match="run_eagerly=True, so it has"):
            wb.fuse_model(model)
        model = dense_model()
        wb.fuse_model(model)
        model.compile("sgd", "mse", run_eagerly=True)
        with pytest.raises(wb.errors.UnsupportedError, match=r"or remove\(\) its fusion"):
            model.fit(dense_data(), verbose=0)

    def test_a_model_that_xla_is_to_compile(self) -> None:
        with pytest.raises(wb.errors.UnsupportedError, match="XLA has no fused lookups"):
            wb.fuse_model(dense_model(jit_compile=True))
        model = dense_model(jit_compile="auto")
        # As Keras decides where no test asks for results that repeat.
        model.jit_compile = True
        wb.fuse_model(model)
        assert model.jit_compile is False

    def test_a_distribution_strategy(self) -> None:
        with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            model = dense_model()
        with pytest.raises(wb.errors.UnsupportedError, match="fused lookups runs? on one device"):
            wb.fuse_model(model)

    def test_what_is_no_model(self) -> None:
        with pytest.raises(wb.errors.OptionError, match=r"of type Bag; expected a keras.Model"):
            wb.fuse_model(Bag())
