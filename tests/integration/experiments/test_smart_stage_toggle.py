"""The toggle "smart_stage" in real child processes: planned, checked, measured, saved."""

from __future__ import annotations

import sys

import cloudpickle
import pytest

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import PlanError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Built, Program
from workbench.viz.boundary.view import boundary_view

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def build(optimizations, *, batches=None, endless=10_000_000):
    """One weight, trained towards a number that is worked out of the batch."""
    import tensorflow as tf

    from workbench.core.session.staged import staged

    v1 = tf.compat.v1
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(batches or endless).with_options(plain)
    batch = v1.data.make_one_shot_iterator(dataset).get_next()
    if optimizations.stage:
        batch = staged(batch, optimizations.stage)
    wanted = tf.sin(tf.cast(batch, tf.float32) * 1e-3, name="wanted")
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    loss = tf.square(wanted - weight, name="loss")
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    # A node of its own: what depends on a target stays on the compute side.
    return Built(train_op=train_op, loss=loss, fingerprint=tf.identity(batch, name="which"))


def build_epoch(optimizations):
    return build(optimizations, batches=30)


PROGRAM = Program(name="tiny", build=build, build_epoch=build_epoch)


@pytest.fixture(scope="module")
def comparison():
    """Measured without a trace, so that the plan is the widest one; also what was said."""
    said: list[str] = []
    found = compare(
        PROGRAM,
        ("smart_stage", "stage+smart_stage"),
        stage=StageOptions(num_threads=2, capacity=3),
        smart_stage=SmartStageOptions(num_threads=2, reorder=True),
        budget_s=0.5,
        trace_steps=0,
        equivalence_steps=20,
        progress=said.append,
    )
    return found, said


def test_a_smart_stage_is_a_variant_with_its_plan(comparison):
    found, said = comparison
    assert [variant.label for variant in found.variants] == [
        "off",
        "smart stage",
        "stage + smart stage",
    ]
    off, alone, both = (variant.plan for variant in found.variants)
    assert off is None
    assert [stage.name for stage in alone.stages] == ["smart_stage_input", "smart_stage"]
    assert "wanted" in alone.stages[-1].moved
    # it starts from the user's own stage, whose take delivers the batch
    assert both.stages[0].start[0].endswith("/take")
    assert found.settings["smart_stage.reorder"] is True
    assert "smart_stage=wb.SmartStageOptions(" in found.command
    # Where the machine is busy, that is said first.
    said = [line for line in said if not line.startswith("The machine is busy")]
    assert said[0].startswith("More than the budget of 0.5")
    assert said[1:4] == [
        "Starting 3 child processes",
        "Building the graphs",
        "Planning the smart stage",
    ]


def test_its_training_is_checked_with_the_plan_that_is_measured(comparison):
    found, _ = comparison
    assert [(check.label, check.kind, check.passed) for check in found.equivalence] == [
        ("smart stage", "bit-equal losses", True),
        ("stage + smart stage", "bit-equal losses", True),
        ("smart stage", "same batches", True),
        ("stage + smart stage", "same batches", True),
    ]
    assert "over a whole epoch, 2 prefetch threads" in found.equivalence[2].detail


def test_without_a_trace_nothing_is_predicted(comparison):
    found, _ = comparison
    assert [ratio.predicted for ratio in found.ratios] == [None, None]


def test_plans_are_saved_with_their_boundaries(comparison, tmp_path):
    found, _ = comparison
    read = load_comparison(found.save(tmp_path))
    assert [v.plan for v in read.variants] == [v.plan for v in found.variants]
    for before, after in zip(found.variants[1:], read.variants[1:], strict=True):
        assert before.plan.explain("wanted") == after.plan.explain("wanted")
        assert boundary_view(after.plan) == boundary_view(before.plan)
        assert [area.kind for area in boundary_view(after.plan).areas][-1] == "compute"


@pytest.mark.slow
def test_a_traced_baseline_lets_the_plan_predict():
    found = compare(
        PROGRAM, "smart_stage", budget_s=0.3, trace_steps=8, equivalence_steps=10, progress=False
    )
    plan = found.variants[1].plan
    assert {way.label for way in plan.predictions} >= {"un-staged"}
    assert sum(way.chosen for way in plan.predictions) == 1
    assert found.ratios[0].predicted > 0
    assert all(check.passed for check in found.equivalence)
    if not plan.stages:
        assert found.variants[1].notes[0].startswith("Smart stage: its plan moves nothing ahead")


def test_a_smart_stage_can_be_traced():
    wish = Optimizations(smart_stage=SmartStageOptions())
    found = trace(PROGRAM, wish, steps=4, warm_up_steps=2, progress=False)
    assert len(found.steps()) == 4


def without_input(optimizations):
    import tensorflow as tf

    v1 = tf.compat.v1
    step = v1.train.get_or_create_global_step()
    return Built(train_op=v1.assign_add(step, 1).op)


def test_a_program_without_an_input_cannot_be_planned():
    with pytest.raises(PlanError, match="no stage and no input was found"):
        compare(
            Program(name="none", build=without_input), "smart_stage", trace_steps=0, progress=False
        )
