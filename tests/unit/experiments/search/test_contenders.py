"""Which settings are searched, and how the best one is varied."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.experiments.search.contenders import refinements, settings_of
from workbench.experiments.search.expectation import expectations, toggle_count

OFF, STAGE, SMART = Optimizations(), StageOptions(), SmartStageOptions()


def labels(toggles, baseline=OFF):
    found = settings_of(toggles, STAGE, SMART, baseline)
    return [each.label(in_full=True) for each in found]


def test_names_stand_for_their_combinations_and_others_for_themselves():
    assert labels(["stage", "fused_v2"]) == ["fused V2", "stage", "stage + fused V2"]
    own = Optimizations(smart_stage=SmartStageOptions(capacity=3))
    assert labels(["stage+smart_stage", own]) == [
        "stage + smart stage",
        "smart stage (capacity 3)",
    ]


def test_threads_and_batches_of_the_baseline_are_those_of_every_combination():
    baseline = Optimizations(inter_op_threads=2, batch_size=64)
    (fused,) = settings_of(["fused_v1"], STAGE, SMART, baseline)
    assert (fused.inter_op_threads, fused.batch_size) == (2, 64)


@pytest.mark.parametrize(
    ("toggles", "said"),
    [
        (["stages"], "there is no toggle 'stages'"),
        (["stage", "fused_v1+fused_v2"], "fuses lookups in two ways"),
        ([], "there is no setting to search among beside the baseline; expected toggles out of"),
        ([OFF], "there is no setting to search among"),
        ([Optimizations(batch_size=9)], "setting 'batch 9' has another size of a batch than the"),
        (
            [
                Optimizations(stage=StageOptions(timeout_millis=1)),
                Optimizations(stage=StageOptions(timeout_millis=2)),
            ],
            "two settings are both called 'stage'",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(toggles, said):
    with pytest.raises(OptionError, match=said):
        settings_of(toggles, STAGE, SMART, OFF)


def test_capacities_are_varied_and_threads_where_several_are_allowed():
    found = refinements(Optimizations(stage=StageOptions(capacity=2)), 2)
    assert [each.label(in_full=True) for each in found] == [
        "stage",
        "stage (capacity 4)",
        "stage (capacity 2) + 1 inter-op thread",
        "stage (capacity 2) + 4 inter-op threads",
        "stage (capacity 2) + 1 intra-op thread",
    ]
    several = refinements(Optimizations(stage=StageOptions(num_threads=2)), 2)
    assert {each.stage.num_threads for each in several} == {1, 2, 4}
    smart = refinements(Optimizations(smart_stage=SmartStageOptions(reorder=True)), 1)
    assert {each.smart_stage.num_threads for each in smart} == {None, 1, 2, 4}
    assert {each.smart_stage.num_threads for each in refinements(
        Optimizations(smart_stage=SMART), 1
    )} == {None}  # fmt: skip


def test_an_inline_executor_has_no_use_for_inter_op_threads():
    inline = refinements(Optimizations(executor="inline"), 4)
    assert [each.inter_op_threads for each in inline] == [None, None]
    found = refinements(Optimizations(executor="cost_model"), 4)
    assert [each.inter_op_threads for each in found] == [2, 8, None, None]
    assert [each.intra_op_threads for each in found] == [None, None, 1, 2]
    given = Optimizations(inter_op_threads=3, intra_op_threads=2)
    assert refinements(given, 4) == []


def test_threads_of_a_toggle_are_kept_beside_those_of_the_baseline():
    baseline = Optimizations(inter_op_threads=2, intra_op_threads=2)
    found = settings_of(["auto_fused", "auto_fused+intra_op_threads=1"], STAGE, SMART, baseline)
    threads = [(each.inter_op_threads, each.intra_op_threads) for each in found]
    assert threads[-2:] == [(2, 2), (2, 1)]


FUSED = Optimizations(fused_embeddings="v1")
STAGED = Optimizations(stage=STAGE)
BOTH = Optimizations(stage=STAGE, fused_embeddings="v1")
ALL = {"off": OFF, "stage": STAGED, "fused V1": FUSED, "stage + fused V1": BOTH}


def test_gaps_of_predictions_are_what_the_others_add_up_to():
    found = expectations(ALL, OFF, {"stage": 0.1, "fused V1": 0.2}, {}).of()
    assert found["stage + fused V1"] == pytest.approx(0.3, abs=0.001)
    assert found["off"] == 0


PREDICTED = {"stage": 0.1, "fused V1": 0.2, "stage + fused V1": 0.3}


def test_what_was_measured_corrects_what_shares_its_toggles():
    found = expectations(ALL, OFF, PREDICTED, {"fused V1": [-0.1] * 20}).of()
    assert found["fused V1"] == pytest.approx(-0.1, abs=0.01)
    assert found["stage"] == pytest.approx(0.1)
    # The setting itself may be off, not its toggle.
    assert found["stage + fused V1"] == pytest.approx(0.04, abs=0.02)


def test_what_scatters_corrects_little_and_less_of_the_others():
    few = expectations(ALL, OFF, PREDICTED, {"fused V1": [0.5, -0.7]})
    many = expectations(ALL, OFF, PREDICTED, {"fused V1": [-0.09, -0.11] * 10})
    assert 0.15 < few.of()["fused V1"] < 0.2
    assert few.covariance[2, 2] > 5 * many.covariance[2, 2]


def test_chances_say_who_is_the_fastest_of_some():
    found = expectations(ALL, OFF, PREDICTED, {"fused V1": [0.2] * 20, "stage": [0.1] * 20})
    chances = found.chances(["stage", "fused V1", "stage + fused V1"])
    assert sum(chances.values()) == pytest.approx(1.0)
    assert chances["stage + fused V1"] > 0.95
    assert found.chances(["stage"]) == {"stage": 1.0}
    assert found.chances([]) == {}


def test_effects_are_those_against_the_baseline():
    found = expectations(ALL, FUSED, {}, {}).of()
    assert found["fused V1"] == 0
    assert found["off"] < 0 < found["stage + fused V1"]
    assert [toggle_count(each) for each in ALL.values()] == [0, 1, 1, 2]


CLUSTERS, DIM = wb.toggles.XLA.at("clusters"), wb.Toggle("dim", [16, 32]).at(32)


def chosen(*choices, **fields):
    return Optimizations(chosen=choices, **fields)


def test_a_choice_is_expected_to_give_what_it_usually_gives_beside_the_same_setting():
    settings = {"fused V1": FUSED, "XLA": chosen(CLUSTERS), "dim": chosen(DIM)}
    settings["both"] = chosen(CLUSTERS, fused_embeddings="v1")
    found = expectations(settings, OFF, {"fused V1": 0.2}, {}).of()
    assert found == pytest.approx({"fused V1": 0.2, "XLA": -0.4, "dim": 0.0, "both": -0.2})
    # Of a baseline that has it, it is what is taken away.
    without = expectations({"off": OFF}, chosen(CLUSTERS), {}, {}).of()
    assert without["off"] == pytest.approx(0.4)


def test_what_a_choice_gave_is_expected_of_it_elsewhere_and_of_no_other_choice():
    settings = {"fused V1": FUSED, "XLA": chosen(CLUSTERS), "dim": chosen(DIM)}
    settings["both"] = chosen(CLUSTERS, fused_embeddings="v1")
    found = expectations(settings, OFF, {"fused V1": 0.2}, {"XLA": [0.1] * 20})
    assert found.of()["both"] == pytest.approx(0.3, abs=0.01)
    assert found.of()["dim"] == 0.0
    mean, deviation = found.beside("both", "fused V1")
    assert mean == pytest.approx(0.1, abs=0.01) and deviation < 0.04
    assert found.beside("fused V1", "off")[0] == pytest.approx(0.2)


def test_a_setting_that_is_off_is_so_with_another_choice_too():
    both = chosen(CLUSTERS, fused_embeddings="v1")
    settings = {"fused V1": FUSED, "stage + fused V1": BOTH, "both": both}
    predicted = {"fused V1": 0.2, "stage + fused V1": 0.3}
    found = expectations(settings, OFF, predicted, {"fused V1": [0.3] * 50}).of()
    assert found["both"] == pytest.approx(0.3 - 0.4, abs=0.01)


def test_choices_count_as_toggles():
    assert toggle_count(chosen(CLUSTERS, DIM, stage=STAGE)) == 3
    assert toggle_count(chosen(DIM.toggle.at(16))) == 0
