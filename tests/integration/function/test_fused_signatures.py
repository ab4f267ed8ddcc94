"""Fused functions are called, described, differentiated, saved and loaded as what they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders import saved_models
from tests.builders.scripts import run_script
from workbench.errors import OptionError

v1 = tf.compat.v1
LOOKUP = "WorkbenchResourceGroupedLookUp"
IDS = tf.constant([1, 2, 3], tf.int64)


def lookups(function: Any) -> int:
    return sum(op.type == LOOKUP for op in function.graph.get_operations())


def equal(one: Any, other: Any) -> None:
    tf.nest.assert_same_structure(one, other, expand_composites=True)
    flat = (tf.nest.flatten(each, expand_composites=True) for each in (one, other))
    for first, second in zip(*flat, strict=True):
        bits = (None if each is None else each.numpy().tobytes() for each in (first, second))
        assert next(bits) == next(bits)


class Tables(tf.Module):
    """Two tables, and functions that look rows up."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = [tf.Variable(saved_models.TABLE + k) for k in range(2)]

    def look_up(self, ids: tf.Tensor) -> list[tf.Tensor]:
        return [tf.nn.embedding_lookup(table, ids) for table in self.tables]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="user")] * 1)
    def score(self, user: tf.Tensor) -> dict[str, tf.Tensor]:
        first, second = self.look_up(user)
        return {"scores": tf.reduce_sum(first * second, 1), "first": first}


class TestCalls:
    def test_by_names_and_positions(self) -> None:
        tables = Tables()

        @tf.function
        def score(user: tf.Tensor, item: tf.Tensor, *, scale: tf.Tensor) -> tf.Tensor:
            return tf.add_n(tables.look_up(user) + tables.look_up(item)) * scale

        ids = tf.TensorSpec([None], tf.int64)
        made = score.get_concrete_function(ids, item=ids, scale=tf.TensorSpec([]))
        fused = wb.fuse_function(made)
        assert lookups(fused) == 1
        assert fused.structured_input_signature == made.structured_input_signature
        scale = tf.constant(2.0)
        stock = made(IDS, IDS + 1, scale=scale)
        equal(fused(IDS, IDS + 1, scale=scale), stock)
        equal(fused(IDS, item=IDS + 1, scale=scale), stock)
        equal(fused(scale=scale, item=IDS + 1, user=IDS), stock)
        with pytest.raises(TypeError, match="scale"):
            fused(IDS, IDS)

    def test_with_structures_and_composites(self) -> None:
        tables = Tables()

        @tf.function
        def score(batch: dict[str, Any], others: tuple[Any, Any], count: int = 2) -> dict[str, Any]:
            ragged, (sparse, dense) = batch["ragged"], others
            flat = ragged.with_values(tf.nn.embedding_lookup(tables.tables[0], ragged.values))
            safe = v1.nn.safe_embedding_lookup_sparse(tables.tables[1], sparse, combiner="sum")
            return {
                "ragged": flat,
                "nested": (safe * count, {"dense": tf.gather(tables.tables[0], dense)}),
                "sparse": tf.sparse.from_dense(safe),
                "nothing": None,
            }

        ragged = tf.ragged.constant([[1, 2], [], [3]], tf.int64)
        sparse = tf.sparse.from_dense(np.int64([[4, 5], [0, 0], [6, 0]]))
        arguments = ({"ragged": ragged}, (sparse, IDS))
        made = score.get_concrete_function(
            *tf.nest.map_structure(tf.type_spec_from_value, arguments)
        )
        fused = wb.fuse_function(made)
        assert lookups(fused) >= 1
        stock = made(*arguments, 2)
        assert stock["nothing"] is None
        equal(fused(*arguments, 2), stock)
        equal(fused(arguments[0], count=2, others=arguments[1]), stock)
        flat = tf.nest.flatten(arguments, expand_composites=True)
        equal(fused(*flat), made(*flat))

    def test_without_results(self) -> None:
        tables, total = Tables(), tf.Variable(0.0)

        @tf.function
        def count(ids: tf.Tensor) -> None:
            total.assign_add(tf.reduce_sum(tf.add_n(tables.look_up(ids))))

        made = count.get_concrete_function(tf.TensorSpec([None], tf.int64))
        fused = wb.fuse_function(made)
        assert lookups(fused) == 1
        made(IDS)
        once = total.numpy()
        assert fused(IDS) is None
        assert once != 0
        assert total.numpy() == 2 * once

    def test_that_return_an_argument_and_a_capture(self) -> None:
        tables, held = Tables(), tf.constant(np.arange(2000.0))

        @tf.function
        def score(ids: tf.Tensor) -> Any:
            return ids, held, tables.look_up(ids)

        made = score.get_concrete_function(tf.TensorSpec([None], tf.int64))
        equal(wb.fuse_function(made)(IDS), made(IDS))

    def test_by_wrap_function(self) -> None:
        tables = Tables()
        spec = [tf.TensorSpec([None], tf.int64)]
        made = v1.wrap_function(lambda ids: tf.add_n(tables.look_up(ids)), spec)
        fused = wb.fuse_function(made)
        assert lookups(fused) == 1
        equal(fused(IDS), made(IDS))
        equal(fused([1, 2, 3]), made(IDS))
        with pytest.raises(TypeError, match="takes positional arguments alone"):
            fused(ids=IDS)

    def test_of_a_fused_function_are_its_own(self) -> None:
        tables = Tables()
        fused = wb.fuse_function(tables.score.get_concrete_function())
        assert wb.fuse_function(fused) is fused

    @pytest.mark.parametrize("given", [7, tf.function(lambda x: x)], ids=["number", "function"])
    def test_of_what_is_no_concrete_function(self, given: Any) -> None:
        with pytest.raises(OptionError, match="is no concrete function; expected what"):
            wb.fuse_function(given)


class TestNestedCalls:
    def test_are_fused_together_with_what_is_around_them(self) -> None:
        tables = Tables()
        inner = tf.function(tables.look_up)

        @tf.function
        def score(ids: tf.Tensor) -> tf.Tensor:
            return tf.add_n([*inner(ids), *inner(ids + 1), tf.gather(tables.tables[0], ids)])

        made = score.get_concrete_function(tf.TensorSpec([None], tf.int64))
        fused = wb.fuse_function(made)
        assert lookups(fused) == 1
        assert len(wb.plan_fusion(made).of("lookup")) == 5
        equal(fused(IDS), made(IDS))

    def test_keep_the_order_of_their_effects(self) -> None:
        table, seen = tf.Variable(tf.ones([9, 4])), tf.Variable(0.0)

        @tf.function
        def look_up(ids: tf.Tensor) -> tf.Tensor:
            seen.assign_add(1.0)
            return tf.nn.embedding_lookup(table, ids)

        @tf.function
        def change(ids: tf.Tensor) -> None:
            table.scatter_add(tf.IndexedSlices(tf.ones([3, 4]), ids))

        @tf.function
        def step(ids: tf.Tensor) -> tf.Tensor:
            before = look_up(ids)
            change(ids)
            after = look_up(ids)
            change(ids)
            return tf.stack([before, after])

        made = step.get_concrete_function(tf.TensorSpec([3], tf.int64))
        plan = wb.plan_fusion(made)
        # The second lookup waits for a change of its table.
        assert plan.count == 1, plan.describe()
        fused = wb.fuse_function(made, plan)
        for number in range(3):
            value = fused(IDS)
            np.testing.assert_array_equal(value[0], np.full((3, 4), 1.0 + 2 * number))
            np.testing.assert_array_equal(value[1], np.full((3, 4), 2.0 + 2 * number))
            assert seen.numpy() == 2 * (number + 1)

    def test_that_xla_compiles_stay_calls(self) -> None:
        tables = Tables()
        inner = tf.function(tables.look_up, jit_compile=True)
        made = tf.function(lambda ids: tf.add_n(inner(ids))).get_concrete_function(
            tf.TensorSpec([None], tf.int64)
        )
        assert wb.fuse_function(made) is made

    def test_are_verified(self) -> None:
        tables = Tables()
        inner = tf.function(tables.look_up)
        made = tf.function(lambda ids: inner(ids)).get_concrete_function(
            tf.TensorSpec([None], tf.int64)
        )
        verification = wb.plan_fusion(made).verify(made, IDS)
        assert verification.right
        assert len(verification.of("same bits")) == 2, verification.describe()
        assert wb.fuse_function(made, verify=IDS) is not made


class TestGradients:
    @pytest.mark.parametrize("persistent", [False, True])
    def test_of_variables_and_arguments_are_stock_ones(self, persistent: bool) -> None:
        tables = Tables()

        @tf.function
        def score(ids: tf.Tensor, scale: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"scores": tf.add_n(tables.look_up(ids)) * scale}

        made = score.get_concrete_function(tf.TensorSpec([None], tf.int64), tf.TensorSpec([]))
        fused, scale = wb.fuse_function(made), tf.constant(3.0)
        assert fused.trainable_variables == made.trainable_variables
        assert all(a is b for a, b in zip(fused.variables, tables.tables, strict=True))
        found = []
        for function in (made, fused):
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(scale)
                loss = tf.reduce_sum(tf.square(function(IDS, scale=scale)["scores"]))
            found.append(tape.gradient(loss, [*tables.tables, scale]))
        equal(*([tf.convert_to_tensor(each) for each in own] for own in found))

    def test_in_another_function(self) -> None:
        tables = Tables()
        made = tf.function(lambda ids: tf.add_n(tables.look_up(ids))).get_concrete_function(
            tf.TensorSpec([None], tf.int64)
        )
        fused = wb.fuse_function(made)

        @tf.function
        def gradient(ids: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(fused(ids)))
            return tf.convert_to_tensor(tape.gradient(loss, tables.tables[0]))

        stock = tf.scatter_nd(IDS[:, None], 2 * made(IDS), saved_models.TABLE.shape)
        np.testing.assert_allclose(gradient(IDS), stock, rtol=1e-6)

        @tf.function
        def outer(ids: tf.Tensor) -> tf.Tensor:
            return fused(ids)

        equal(outer(IDS), made(IDS))


def saved_by_v1(folder: Path) -> None:
    saved_models.save(folder, "safe", 3)


def saved_keras(folder: Path) -> None:
    ids = [keras.Input((2,), dtype="int64", name=f"c{k}") for k in range(3)]
    found = [keras.layers.Flatten()(keras.layers.Embedding(50, 8)(each)) for each in ids]
    scores = keras.layers.Dense(1)(keras.layers.Concatenate()(found))
    model = keras.Model(ids, scores)
    model.export(str(folder), verbose=False)


def saved_module(folder: Path) -> None:
    module = Tables()
    tf.saved_model.save(module, str(folder), signatures=module.score)


MODELS: dict[str, tuple[Callable[[Path], None], int]] = {
    "v1": (saved_by_v1, 3),
    "keras": (saved_keras, 3),
    "module": (saved_module, 2),
}


def batch_of(signature: Any) -> dict[str, tf.Tensor]:
    batch = {}
    for name, spec in signature.structured_input_signature[1].items():
        if name.endswith("_indices"):
            batch[name] = tf.constant([[0, 0], [2, 0], [3, 1]], tf.int64)
        elif name.endswith("_dense_shape"):
            batch[name] = tf.constant([4, 2], tf.int64)
        else:
            shape = [3 if size is None else size for size in spec.shape]
            batch[name] = tf.reshape(tf.range(np.prod(shape), dtype=tf.int64), shape)
    return batch


LOADED = """
import sys

import numpy as np
import tensorflow as tf

import workbench as wb

wb.load_library()
model = tf.saved_model.load(sys.argv[1])
batch = {name: tf.constant(value) for name, value in np.load(sys.argv[2]).items()}
for called in (model.signatures["serving_default"], model.fused):
    for name, value in called(**batch).items():
        print(name, value.numpy().tobytes().hex())
graph = model.fused.graph
print(sum(op.type == "WorkbenchResourceGroupedLookUp" for op in graph.get_operations()))
"""
WITHOUT = """
import sys

import tensorflow as tf

try:
    tf.saved_model.load(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


class TestSavedModels:
    @pytest.mark.parametrize("kind", MODELS)
    def test_of_all_kinds_are_fused_saved_and_loaded(self, kind: str, tmp_path: Path) -> None:
        save, count = MODELS[kind]
        save(tmp_path / "stock")
        model = tf.saved_model.load(str(tmp_path / "stock"))
        signature = model.signatures["serving_default"]
        assert len(wb.plan_fusion(signature).of("lookup")) == count
        fused = wb.fuse_function(signature)
        assert lookups(fused) == 1
        assert fused.structured_input_signature == signature.structured_input_signature
        assert fused.structured_outputs.keys() == signature.structured_outputs.keys()
        assert all(a is b for a, b in zip(fused.variables, signature.variables, strict=True))
        batch = batch_of(signature)
        stock = signature(**batch)
        equal(fused(**batch), stock)
        model.fused = fused
        tf.saved_model.save(model, str(tmp_path / "fused"), signatures=fused)
        np.savez(tmp_path / "batch.npz", **{name: each.numpy() for name, each in batch.items()})
        arguments = str(tmp_path / "fused"), str(tmp_path / "batch.npz")
        done = run_script(LOADED, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr[-3000:]
        lines = [f"{name} {value.numpy().tobytes().hex()}" for name, value in stock.items()]
        *given, ops = done.stdout.splitlines()
        assert sorted(given) == sorted(2 * lines)
        assert ops == "1"

    def test_say_which_op_is_missing_without_the_library(self, tmp_path: Path) -> None:
        module = Tables()
        module.fused = wb.fuse_function(module.score.get_concrete_function())
        tf.saved_model.save(module, str(tmp_path / "fused"))
        done = run_script(WITHOUT, tmp_path, str(tmp_path / "fused"), fresh=True)
        assert f"Op type not registered '{LOOKUP}'" in done.stdout, done.stdout + done.stderr[-900:]

    def test_compiled_in_a_session_say_which_call_fuses_them(self, tmp_path: Path) -> None:
        module = Tables()
        module.compiled = tf.function(
            lambda ids: module.look_up(ids)[0],
            input_signature=[tf.TensorSpec([None], tf.int64)],
            jit_compile=True,
        )
        tf.saved_model.save(module, str(tmp_path), signatures=module.compiled)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        assert not plan.count
        (refusal,) = plan.refusals
        assert "fuse the function of its signature by wb.fuse_function" in refusal.reason
        assert wb.plan_fusion(tmp_path).refusals == ()
