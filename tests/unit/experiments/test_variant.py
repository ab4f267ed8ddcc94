"""Variants: what toggles make, and what a variant says of the stages that it will run."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.plans import planned_stage, predictions, stage_plan
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.stage_plan import Edit
from workbench.errors import OptionError
from workbench.experiments.program.variant import Variant, variants_of

STAGE = StageOptions(num_threads=2, capacity=3)
SMART = SmartStageOptions(reorder=True)


def variant(*stages, stage=None, smart_stage=SMART, **plan):
    made = Optimizations(stage=stage, smart_stage=smart_stage)
    return Variant(label=made.label(), optimizations=made, plan=stage_plan(*stages, **plan))


def test_each_toggle_is_one_variant_beside_the_baseline():
    made = variants_of(["stage", "smart_stage", "stage+smart_stage", "stage"], STAGE, SMART)
    assert [each.label for each in made] == ["off", "stage", "smart stage", "stage + smart stage"]
    assert [each.optimizations for each in made] == [
        Optimizations(),
        Optimizations(stage=STAGE),
        Optimizations(smart_stage=SMART),
        Optimizations(stage=STAGE, smart_stage=SMART),
    ]


def test_toggles_joined_by_a_plus_are_one_variant():
    made = variants_of(["fused_v1", "fused_v2+stage", "stage+fused_v2"], STAGE, SMART)
    assert [each.label for each in made] == ["off", "fused V1", "stage + fused V2"]
    assert made[2].optimizations == Optimizations(stage=STAGE, fused_embeddings="v2")
    # threads are the stages' matter
    assert made[2].with_threads(1).optimizations.fused_embeddings == "v2"


def test_numbers_of_threads_are_joined_likewise():
    made = variants_of(["auto_fused+intra_op_threads=1", "inter_op_threads=3"], STAGE, SMART)
    assert [each.label for each in made] == [
        "off",
        "auto fused + 1 intra-op thread",
        "3 inter-op threads",
    ]
    assert made[1].optimizations == Optimizations(fused_embeddings="auto", intra_op_threads=1)


@pytest.mark.parametrize(
    ("toggles", "message"),
    [
        ([], "no toggle was given; expected one of stage, smart_stage, fused_v1, fused_v2"),
        (["stage", "turbo"], "there is no toggle 'turbo'; expected one of stage, smart_stage"),
        (["stage+stage"], "toggle 'stage\\+stage' names one optimization twice"),
        (["fused_v1+fused_v2"], "fuses lookups in two ways; expected one"),
        (["intra_op_threads"], "'intra_op_threads' says no number of threads; expected intra_op"),
        (["stage+inter_op_threads=0"], "'inter_op_threads=0' says no number of threads"),
        (["intra_op_threads=1+intra_op_threads=2"], "names one optimization twice"),
        (["stage=2"], "toggle 'stage' has no number"),
    ],
)
def test_toggles_that_make_no_variant(toggles, message):
    with pytest.raises(OptionError, match=message):
        variants_of(toggles, STAGE, SMART)


def test_a_plan_for_fused_lookups_does_not_speak_for_the_whole_gain():
    fused = Optimizations(smart_stage=SMART, fused_embeddings="v1")
    plan = stage_plan(predictions=predictions(12.0, 8.0))
    assert Variant(label="both", optimizations=fused, plan=plan).predicted is None


def test_a_variant_without_a_stage_holds_nothing_ready():
    off = Variant(label="off", optimizations=Optimizations())
    assert (off.ahead, off.threads, off.predicted, off.notes()) == (0, 0, None, ())
    assert off.with_threads(3) == off


def test_items_ahead_are_those_of_every_stage():
    first = planned_stage("input", options=StageOptions(capacity=1, num_threads=1))
    second = planned_stage(options=StageOptions(capacity=2, num_threads=3))
    assert (variant(first, second).ahead, variant(first, second).threads) == (7, 3)
    # the plan's stage stands behind the user's own
    assert variant(second, stage=STAGE).ahead == 10
    # a widened stage is the user's own
    assert variant(dataclasses.replace(second, widens=planned_stage(widens=True).widens),
                   stage=STAGE).ahead == 5  # fmt: skip


def test_threads_change_in_options_and_plan_alike():
    made = variant(planned_stage(), stage=STAGE).with_threads(4)
    assert made.optimizations.stage.num_threads == 4
    assert made.optimizations.smart_stage == SmartStageOptions(num_threads=4, reorder=True)
    assert made.plan.stages[0].options.num_threads == 4
    assert made.plan.stages[0].moved == ("next", "parse")
    alone = made.with_threads(1)
    assert alone.threads == 1
    assert not alone.optimizations.smart_stage.reorder


def test_a_prediction_is_a_ratio_of_step_times():
    assert variant(predictions=predictions(12.0, 8.0)).predicted == pytest.approx(1.5)
    # of several inputs none speaks for the whole step
    assert variant(predictions=predictions(12.0, 8.0) * 2).predicted is None
    assert variant().predicted is None


def test_a_plan_that_changes_nothing_is_noted():
    assert variant(planned_stage()).notes() == ()
    edit = Edit(name="stage nothing", reason="no node on the compute side needs 'next'")
    assert variant(edits=(edit,)).notes() == (
        "Smart stage: its plan moves nothing ahead of the step (stage nothing: no node on the "
        "compute side needs 'next'), so this variant runs what all off runs.",
    )


def test_a_plan_that_moves_nothing_does_not_speak_for_the_rest_of_its_variant():
    edit = Edit(name="keep stage", reason="it holds all that may run ahead")
    plan = variant(edits=(edit,)).plan
    wish = Optimizations(
        stage=STAGE, smart_stage=SmartStageOptions(), fused_embeddings="v2", executor="cost_model"
    )
    (note,) = Variant(label=wish.label(), optimizations=wish, plan=plan).notes()
    assert note == (
        "Stage + smart stage + fused V2 + cost model executor: its plan moves nothing ahead of the "
        "step (keep stage: it holds all that may run ahead), so what it measures is stage + fused "
        "V2 + cost model executor."
    )


def test_settings_are_variants_too_and_alike_ones_are_named_in_full():
    deep = Optimizations(smart_stage=SmartStageOptions(capacity=2, num_threads=2))
    made = variants_of(["smart_stage", deep], STAGE, SmartStageOptions())
    assert [each.label for each in made] == [
        *("off", "smart stage", "smart stage (capacity 2, 2 threads)")
    ]
    assert made[2].optimizations == deep


def test_settings_that_names_do_not_tell_apart_are_refused():
    kept = Optimizations(smart_stage=SmartStageOptions(keep=("hash",)))
    with pytest.raises(OptionError, match="two settings are both called 'smart stage'"):
        variants_of(["smart_stage", kept], STAGE, SmartStageOptions())


def test_a_baseline_of_ones_own_may_stand_alone():
    inline = Optimizations(executor="inline", inter_op_threads=2, batch_size=64)
    (alone,) = variants_of([], STAGE, SMART, inline)
    assert alone.label == "inline executor + 2 inter-op threads + batch 64"
    assert "64 rows" in alone.notes()[0]
    assert "samples a second" in alone.notes()[0]
