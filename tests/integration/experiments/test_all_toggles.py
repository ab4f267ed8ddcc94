"""all=True on real programs: what they have is measured, what they lack is left out in words."""

from __future__ import annotations

import sys

import cloudpickle
import pytest

from workbench import usable
from workbench.experiments.comparison.applicable_toggles import NO_STOCK_LOOKUP
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.program import Built, Program

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def build(optimizations):
    """One weight trained towards numbers that are parsed from text; no stage, no lookup."""
    import tensorflow as tf

    v1 = tf.compat.v1
    dataset = tf.data.Dataset.range(10_000_000).map(tf.strings.as_string).batch(4)
    texts = v1.data.make_one_shot_iterator(dataset).get_next()
    batch = tf.strings.to_number(texts)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    loss = tf.reduce_mean(tf.square(batch * 1e-3 - weight))
    step = v1.train.get_or_create_global_step()
    return Built(
        train_op=v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step), loss=loss
    )


@pytest.mark.slow
@pytest.mark.executors
def test_all_measures_what_a_program_has():
    said: list[str] = []
    found = compare(
        Program(name="plain", build=build),
        all=True,
        budget_s=0.5,
        trace_steps=0,
        equivalence_steps=10,
        progress=said.append,
    )
    assert [variant.label for variant in found.variants] == [
        "off",
        "smart stage",
        "inline executor",
        "cost model executor",
        "smart stage + cost model executor",
    ]
    assert [check.passed for check in found.equivalence] == [True] * 4
    assert found.variants[0].notes == (
        "stage was left out: the program builds no stage when optimizations.stage is set.",
        "fused_v1 was left out: the program builds no embedding lookup through Workbench.",
        "fused_v2 was left out: the program builds no embedding lookup through Workbench.",
        "grouped was left out: the program builds no embedding lookup through Workbench.",
        f"auto_fused was left out: {NO_STOCK_LOOKUP}.",
    )
    assert "Trying which optimizations plain has a use for" in said
    assert "Starting 5 child processes" in said


@pytest.mark.executors
@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_measured_in_groups(tmp_path, monkeypatch):
    full = tmp_path / "meminfo"
    full.write_text("MemAvailable: 1 kB\n")
    monkeypatch.setattr(usable, "_MEMINFO", full)
    said: list[str] = []
    found = compare(
        Program(name="plain", build=build),
        all=True,
        budget_s=0.5,
        trace_steps=0,
        equivalence_steps=0,
        progress=said.append,
    )
    assert said.count("Starting 2 child processes") == 4
    assert len(found.variants) == 5 and len(found.ratios) == 4
    groups = found.variants[0].notes[-1]
    assert "were measured in 4 groups, each beside a baseline of its own" in groups
    assert found.settings["groups"] == 4
