"""Fused functions and Keras models are compared with what they replace, before they are used."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.damaged_plans import applied_twice
from tests.builders.keras_lookups import dense_data, dense_model, values
from workbench.core.function import keras_fusion
from workbench.errors import OptionError, PlanError


class TestFunctions:
    def step(self, table: tf.Variable) -> Any:
        @tf.function(autograph=False)
        def step(ids: tf.SparseTensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                found = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean")
                loss = tf.reduce_sum(tf.sin(found))
            slices = tape.gradient(loss, table)
            table.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
            return loss

        return step.get_concrete_function(tf.SparseTensorSpec([None, None], tf.int64))

    def test_a_right_one_and_its_variables_stay(self) -> None:
        start = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
        table = tf.Variable(start)
        function = self.step(table)
        ids = tf.sparse.from_dense(np.int64([[1, 2], [0, 0], [2, 0]]))
        plan = wb.plan_fusion(function)
        assert plan.count == 1
        verification = plan.verify(function, ids)
        assert verification.right, verification.describe()
        assert not verification.of("not verified"), verification.describe()
        fused = wb.fuse_function(function, verify=ids)
        assert fused is not function
        assert table.numpy().tobytes() == start.tobytes()

    def test_a_wrong_one_is_not_used(self) -> None:
        table = tf.Variable(tf.ones([9, 4]))
        function = self.step(table)
        ids = tf.sparse.from_dense(np.int64([[1, 2], [0, 0], [2, 0]]))
        plan = wb.plan_fusion(function)
        with pytest.raises(PlanError, match="does not do what the graph does"):
            wb.fuse_function(function, applied_twice(plan), verify=ids)

    def test_a_batch_that_does_not_fit(self) -> None:
        function = self.step(tf.Variable(tf.ones([9, 4])))
        plan = wb.plan_fusion(function)
        with pytest.raises(OptionError, match="the batch has 1 tensors; expected 3"):
            plan.verify(function, [1])
        with pytest.raises(OptionError, match="expected int64"):
            plan.verify(function, [np.zeros([1, 2]), np.ones([1]), np.ones([2])])


class TestModels:
    @pytest.mark.slow
    def test_a_right_one_trains_as_it_would_have(self) -> None:
        results = []
        for verifies in (False, True):
            keras.utils.set_random_seed(1)
            model = dense_model("adagrad")
            batch = next(iter(dense_data()))
            fusion = wb.fuse_model(model, verify=batch if verifies else None)
            model.fit(dense_data(), verbose=0, shuffle=False)
            model.predict(batch[0], verbose=0)
            results.append(values(model))
        assert set(fusion.verified) == {"train", "predict"}
        assert all(verification.right for verification in fusion.verified.values())
        assert "verified: 3 lookups: 3 " in fusion.describe()
        for one, other in zip(results[0].values(), results[1].values(), strict=True):
            assert one.tobytes() == other.tobytes()

    def test_a_wrong_one_does_not_train(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan_of = keras_fusion.plan_fusion
        monkeypatch.setattr(keras_fusion, "plan_fusion", lambda f: applied_twice(plan_of(f)))
        model = dense_model("sgd")
        batch = next(iter(dense_data()))
        wb.fuse_model(model, verify=batch)
        before = values(model)
        with pytest.raises(PlanError, match="does not do what the graph does"):
            model.train_on_batch(*batch)
        for name, value in values(model).items():
            assert name not in before or value.tobytes() == before[name].tobytes()
