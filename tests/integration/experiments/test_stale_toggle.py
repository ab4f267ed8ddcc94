"""A comparison of stale with exact lookups in real child processes."""

from __future__ import annotations

import sys

import cloudpickle
import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.as_code import options_code
from workbench.experiments.program.program import Built, Program
from workbench.experiments.program.settings_json import optimizations_from, to_json

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
STALE = SmartStageOptions(stale_lookups=1)


def build(optimizations):
    """Rows that are trained towards numbers of the batch's own."""
    import tensorflow as tf

    del optimizations
    v1 = tf.compat.v1
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(10_000_000)).get_next()
    table = v1.get_variable("table", [4, 8], initializer=v1.zeros_initializer())
    rows = tf.nn.embedding_lookup(table, [batch % 4, (batch + 1) % 4])
    loss = tf.reduce_sum(tf.square(rows - tf.sin(tf.cast(batch, tf.float32))), name="loss")
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Built(train_op=train_op, loss=loss, fingerprint=tf.identity(batch, name="which"))


PROGRAM = Program(name="rows", build=build)


def test_a_comparison_says_stale_keeps_both_curves_and_still_compares_batches():
    found = compare(
        PROGRAM,
        ("smart_stage",),
        smart_stage=STALE,
        budget_s=0.5,
        trace_steps=0,
        equivalence_steps=40,
    )
    losses, batches = found.checks_of("smart stage, 1 step stale")
    assert (losses.kind, losses.passed, losses.stale_lookups) == ("exact losses", False, 1)
    assert len(losses.losses) == len(losses.baseline_losses) == losses.steps > 1
    assert losses.losses[0] == losses.baseline_losses[0]
    assert (batches.kind, batches.passed) == ("same batches", True)
    (_, variant) = found.variants
    assert [stage.stale_lookups for stage in variant.plan.stages][-1] == 1
    assert "1 step stale" in str(found)


def test_searches_refuse_what_trains_another_way():
    message = "'smart stage, 1 step stale' has stale_lookups=1, so it trains another way, and a"
    with pytest.raises(OptionError, match=message):
        wb.find_best(PROGRAM, toggles=("smart_stage",), smart_stage=STALE, budget=5)
    with pytest.raises(OptionError, match=message):
        wb.find_best(PROGRAM, toggles=[Optimizations(smart_stage=STALE)], budget=5)


def test_the_setting_goes_through_code_and_files():
    setting = Optimizations(smart_stage=STALE)
    assert options_code(setting) == (
        "wb.Optimizations(smart_stage=wb.SmartStageOptions(stale_lookups=1))"
    )
    assert optimizations_from(to_json(setting)) == setting
