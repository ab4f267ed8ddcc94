"""The toggles that fuse lookups in real child processes: built, found, checked, joined."""

from __future__ import annotations

import re
import sys

import cloudpickle
import pytest

from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def build(optimizations, *, through_workbench=True):
    """A table of vectors, trained towards a number that is worked out of the batch's ids."""
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(10_000_000).batch(8).with_options(plain)
    batch = v1.data.make_one_shot_iterator(dataset).get_next()
    values = (batch * 7 + 3) % 50
    at = tf.stack([tf.range(8, dtype=tf.int64), tf.zeros([8], tf.int64)], axis=1)
    ids = tf.SparseTensor(at, tf.ensure_shape(values, [8]), [8, 1])
    table = v1.get_variable(
        "table", [50, 4], initializer=v1.random_normal_initializer(seed=1), use_resource=False
    )
    look_up = wb.safe_embedding_lookup_sparse
    if not through_workbench:
        look_up = v1.nn.safe_embedding_lookup_sparse
    vectors = look_up(table, ids, combiner="mean")
    wanted = tf.sin(tf.cast(values, tf.float32))
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(vectors, axis=1) - wanted))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    return Built(train_op=train_op, loss=loss)


def build_stock(optimizations):
    return build(optimizations, through_workbench=False)


def build_own(optimizations):
    """Lookups that are grouped as they are built, so that none is left to find."""
    import workbench as wb

    with wb.fused_embeddings("grouped"):
        return build(optimizations)


@pytest.mark.slow
def test_fused_lookups_train_the_same_alone_and_behind_a_smart_stage():
    found = compare(
        Program(name="looked up", build=build),
        ("fused_v1", "fused_v2+smart_stage"),
        smart_stage=SmartStageOptions(),
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=40,
        progress=False,
    )
    assert [variant.label for variant in found.variants] == [
        "off",
        "fused V1",
        "smart stage + fused V2",
    ]
    assert all(check.passed for check in found.equivalence), found.equivalence
    off, fused, both = (set(variant.trace.to_pandas()["name"]) for variant in found.variants)
    assert not any("PreLookUp" in name for name in off)
    # What prunes and fills reads the batch alone, and so runs ahead.
    plan = found.variants[2].plan
    assert any("PruneInvalidAndFillEmptyRows" in name for name in plan.stages[-1].moved)
    assert not any("LocalLookUp" in name for name in plan.stages[-1].moved)
    assert len(fused) < len(off)
    assert both


@pytest.mark.slow
def test_a_program_without_lookups_through_workbench_has_nothing_to_fuse():
    with pytest.raises(OptionError, match="builds no embedding lookup through Workbench, so there"):
        compare(Program(name="stock", build=build_stock), "fused_v1", budget_s=0.5, progress=False)


def require_verified(found):
    checks = [each for each in found.equivalence if each.kind == "verified fused parts"]
    assert len(checks) == 2
    for check in checks:
        assert check.passed and re.search(r"\d lookup.*: \d ", check.detail), check


def test_stock_lookups_are_fused_in_the_finished_graph_and_behind_a_smart_stage():
    found = compare(
        Program(name="stock", build=build_stock),
        ("auto_fused", "smart_stage+auto_fused"),
        smart_stage=SmartStageOptions(),
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=40,
        verify=True,
        progress=False,
    )
    require_verified(found)
    assert [variant.label for variant in found.variants[1:]] == [
        "auto fused",
        "smart stage + auto fused",
    ]
    assert all(check.passed for check in found.equivalence), found.equivalence
    off, *fused = (set(variant.trace.to_pandas()["op"]) for variant in found.variants)
    assert {"SparseSegmentMean", "SparseApplyAdagrad"} <= off
    for ops in fused:
        assert {"WorkbenchGroupedLookUp", "WorkbenchGroupedApply"} <= ops
        assert not {"SparseSegmentMean", "SparseApplyAdagrad", "SparseFillEmptyRows"} & ops


def make():
    """A step of TF2 that looks rows up as stock TensorFlow does, and its data."""
    import tensorflow as tf

    table = tf.Variable(tf.random.stateless_normal([50, 4], (1, 2)))
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)
    optimizer._create_slots([table])

    @tf.function
    def train_step(numbers):
        values = (numbers * 7 + 3) % 50
        at = tf.stack([tf.range(8, dtype=tf.int64), tf.zeros([8], tf.int64)], axis=1)
        ids = tf.SparseTensor(at, tf.ensure_shape(values, [8]), [8, 1])
        with tf.GradientTape() as tape:
            vectors = tf.compat.v1.nn.safe_embedding_lookup_sparse(table, ids)
            wanted = tf.sin(tf.cast(values, tf.float32))
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(vectors, axis=1) - wanted))
        optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table], strict=True))
        return loss

    data = tf.data.Dataset.range(10_000_000).batch(8, drop_remainder=True)
    return train_step, data


@pytest.mark.slow
@pytest.mark.executors
def test_those_of_a_function_are_fused_too_and_behind_a_smart_stage():
    found = compare(
        FunctionProgram(name="function", make=make),
        ("auto_fused", "smart_stage+auto_fused"),
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=40,
        verify=True,
        progress=False,
    )
    require_verified(found)
    assert all(check.passed for check in found.equivalence), found.equivalence
    off, *fused = (set(variant.trace.to_pandas()["op"]) for variant in found.variants)
    assert "ResourceSparseApplyAdagrad" in off
    for ops in fused:
        assert {"WorkbenchResourceGroupedLookUp", "WorkbenchResourceGroupedApply"} <= ops
        assert not {"ResourceGather", "ResourceSparseApplyAdagrad"} & ops


def test_a_program_without_stock_lookups_is_told_what_says_why():
    with pytest.raises(OptionError, match="'looked up': the program's graph has no stock lookup"):
        compare(
            Program(name="looked up", build=build_own),
            "auto_fused",
            budget_s=0.5,
            progress=False,
        )
