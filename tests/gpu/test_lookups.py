"""Lookups, gradients and updates on a GPU against the same on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from workbench.ops import fused_update, grouped_embedding_lookup
from workbench.ops.lookup.fused import fused_safe_embedding_lookup_sparse

v1 = tf.compat.v1
CPU, GPU = "/device:CPU:0", "/device:GPU:0"
ROWS, EXAMPLES = 1000, 200
FORMS = ("v1", "v2", "grouped")
# Op types that read the table, and that make its gradient.
KERNELS = {
    "v1": ("LocalLookUp", "LocalLookUpGrad"),
    "v2": ("LocalLookUp", "LocalLookUpGrad"),
    "grouped": ("GroupedLookUp", "GroupedLookUpGrad"),
}
OPTIMIZERS = {
    "descent": lambda: v1.train.GradientDescentOptimizer(0.02),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.05),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
    "ftrl": lambda: v1.train.FtrlOptimizer(0.05, l1_regularization_strength=0.01),
}
_ROUGH = {tf.float32: 1e-6, tf.float16: 2e-3, tf.bfloat16: 2e-2}


def drawn(seed: int, *, rows: int = ROWS, longest: int = 30) -> tf.RaggedTensor:
    """Ids of examples, some without any, few of the ids very often."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest, EXAMPLES)
    ids = random.zipf(1.3, lengths.sum()) % rows
    return tf.RaggedTensor.from_row_lengths(
        v1.placeholder_with_default(ids.astype(np.int64), [None]), lengths
    )


def table_of(dim: int, dtype: tf.DType, name: str = "table", resource: bool = True) -> Any:
    values = np.random.default_rng(dim).normal(size=(ROWS, dim))
    return v1.get_variable(name, initializer=tf.constant(values, dtype), use_resource=resource)


def combined(form: str, table: Any, ids: Any, combiner: str, default_id: int | None) -> tf.Tensor:
    if form == "grouped":
        (found,) = grouped_embedding_lookup(
            [table], [ids], combiners=[combiner], default_id=default_id
        )
        return found
    return fused_safe_embedding_lookup_sparse(
        table, ids.to_sparse(), combiner=combiner, default_id=default_id, fusion_version=form
    )


def ran_on(metadata: Any) -> dict[str, str]:
    """The device of each op of Workbench in a run, by its type."""
    return {
        node.op.removeprefix("Workbench").removeprefix("Resource"): node.device[-5:]
        for part in metadata.partition_graphs
        for node in part.node
        if node.op.startswith("Workbench")
    }


def run(fetches: Any) -> tuple[Any, dict[str, str]]:
    """What is fetched, the same to the bit a second time; and the devices."""
    metadata = v1.RunMetadata()
    config = v1.ConfigProto(allow_soft_placement=True)
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        first = session.run(fetches)
        options = v1.RunOptions(output_partition_graphs=True)
        again = session.run(fetches, options=options, run_metadata=metadata)
    for one, other in zip(tf.nest.flatten(first), tf.nest.flatten(again), strict=True):
        np.testing.assert_array_equal(one, other)
    return first, ran_on(metadata)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dim", [1, 5, 16, 64, 131, 256])
@pytest.mark.parametrize(
    ("combiner", "default_id", "dtype", "resource"),
    [
        ("mean", None, tf.float32, True),
        ("sum", 3, tf.float32, False),
        ("sqrtn", None, tf.float16, True),
        ("mean", 7, tf.bfloat16, True),
    ],
)
def test_values_and_gradients_are_those_of_the_cpu(
    form: str,
    dim: int,
    combiner: str,
    default_id: int | None,
    dtype: tf.DType,
    resource: bool,
) -> None:
    found = {}
    for device in (CPU, GPU):
        with tf.Graph().as_default(), tf.device(device):
            table = table_of(dim, dtype, resource=resource)
            out = combined(form, table, drawn(1), combiner, default_id)
            wide = tf.cast(out, tf.float32)
            # Of ids and numbers alone TensorFlow would make it a constant, on the CPU.
            (grad,) = tf.gradients(tf.reduce_sum(tf.sin(wide)), table)
            found[device], places = run([wide, tf.cast(tf.convert_to_tensor(grad), tf.float32)])
            assert {places[op] for op in KERNELS[form]} == {device[-5:]}, places
    for one, other in zip(found[CPU], found[GPU], strict=True):
        close = _ROUGH[dtype]
        np.testing.assert_allclose(one, other, rtol=close, atol=close * 30)


@pytest.mark.parametrize("given", ["sparse", "ragged", "dense", "sparse of rank 3"])
def test_a_group_reads_ids_as_they_come(given: str) -> None:
    found = {}
    for device in (CPU, GPU):
        with tf.Graph().as_default(), tf.device(device):
            tables = [table_of(16, tf.float32, "a"), table_of(40, tf.float32, "b")]
            ids = [drawn(seed) for seed in range(3)]
            if given == "sparse":
                ids = [each.to_sparse() for each in ids]
            elif given == "sparse of rank 3":
                ids = [v1.sparse.reshape(each.to_sparse(), [10, 20, -1]) for each in ids]
            elif given == "dense":
                ids = [each.to_tensor(default_value=1)[:, 0] for each in ids]
            outs = grouped_embedding_lookup([tables[0], tables[1], tables[0]], ids)
            loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in outs])
            grads = [tf.convert_to_tensor(each) for each in tf.gradients(loss, tables)]
            found[device], places = run([*outs, *grads])
            assert places["GroupedLookUp"] == places["GroupedLookUpGrad"] == device[-5:]
    for one, other in zip(found[CPU], found[GPU], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dim", [1, 5, 16, 131, 256])
@pytest.mark.parametrize(
    ("combiner", "default_id", "max_norm", "weighted", "dtype"),
    [
        ("mean", None, None, True, tf.float32),
        ("sqrtn", 3, 1.5, True, tf.float32),
        ("sum", None, 1.5, False, tf.float32),
        ("sum", None, None, True, tf.float16),
        ("sqrtn", None, None, True, tf.bfloat16),
    ],
)
def test_weights_and_norms_are_as_on_the_cpu(
    dim: int,
    combiner: str,
    default_id: int | None,
    max_norm: float | None,
    weighted: bool,
    dtype: tf.DType,
) -> None:
    found = {}
    for device in (CPU, GPU):
        with tf.Graph().as_default(), tf.device(device):
            # Some of more ids than floats sum well.
            ids = drawn(1, longest=3000 if combiner == "mean" and dim < 16 else 30)
            table = table_of(dim, dtype)
            of_ids = v1.get_variable(
                "weights", initializer=np.linspace(-0.2, 2.0, ROWS).astype(np.float32)
            )
            weights = tf.gather(of_ids, ids.flat_values)
            # Another feature without either, in the same op.
            outs = grouped_embedding_lookup(
                [table, table_of(8, dtype, "other")],
                [ids, drawn(2)],
                weights=[ids.with_flat_values(weights) if weighted else None, None],
                combiners=[combiner, "mean"],
                max_norm=[max_norm, None],
                default_id=[default_id, None],
            )
            loss = tf.add_n([tf.reduce_sum(tf.sin(tf.cast(each, tf.float32))) for each in outs])
            read = [table, weights] if weighted else [table]
            grads = [tf.convert_to_tensor(each) for each in tf.gradients(loss, read)]
            wide = [tf.cast(each, tf.float32) for each in (*outs, *grads)]
            found[device], places = run(wide)
            made = {"GroupedLookUp", "GroupedLookUpGrad"}
            made |= {"GroupedLookUpWeightGrad"} if weighted else set()
            assert {places[op] for op in made} == {device[-5:]}, places
    close = _ROUGH[dtype] * 10
    for one, other in zip(found[CPU], found[GPU], strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close * 30)


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("weights", [False, True])
def test_tables_and_slots_after_updates_are_those_of_the_cpu(
    optimizer: str, resource: bool, weights: bool
) -> None:
    found = {}
    for device in (CPU, GPU):
        with tf.Graph().as_default(), tf.device(device):
            tables = [
                table_of(16, tf.float32, "a", resource),
                table_of(5, tf.float32, "b", resource),
            ]
            ids = [drawn(seed) for seed in range(3)]
            own = [
                each.with_flat_values(tf.cos(tf.cast(each.flat_values, tf.float32)) + 1.5)
                if weights and i < 2
                else None
                for i, each in enumerate(ids)
            ]
            outs = grouped_embedding_lookup([tables[0], tables[1], tables[0]], ids, weights=own)
            loss = tf.add_n([tf.reduce_sum(tf.square(each - 1.0)) for each in outs])
            made = fused_update(OPTIMIZERS[optimizer]())
            train = made.minimize(loss)
            slots = [made.get_slot(t, n) for t in tables for n in made.get_slot_names()]
            metadata = v1.RunMetadata()
            with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
                session.run(v1.global_variables_initializer())
                for _ in range(99):
                    session.run(train)
                options = v1.RunOptions(output_partition_graphs=True)
                session.run(train, options=options, run_metadata=metadata)
                found[device] = session.run([*tables, *slots])
            assert ran_on(metadata)["GroupedApply"] == device[-5:]
    for one, other in zip(found[CPU], found[GPU], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_the_step_behind_an_id_that_no_table_has_names_feature_and_row() -> None:
    with tf.device(GPU):
        table = table_of(16, tf.float32)
        ids = v1.placeholder(tf.int64, [None])
        outs = grouped_embedding_lookup([table, table], [ids, ids])
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
        session.run(v1.global_variables_initializer())
        session.run(outs, {ids: [1, 2]})
        session.run(outs, {ids: [1, 2, ROWS]})
        with pytest.raises(tf.errors.InvalidArgumentError) as failed:
            session.run(outs, {ids: [1, 2]})
        assert "row 2 of an earlier step asked for an id that its embedding" in str(failed.value)
        (first, _) = session.run(outs, {ids: [1, 2]})
    assert first.shape == (2, 16)
