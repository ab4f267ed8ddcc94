"""Which scenario a setting is beside the traced baseline, and what is not known of it."""

from __future__ import annotations

import pytest

from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.what_if.predictions import Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.experiments.session.scenarios import (
    like_baseline,
    scenario_beside,
    traced_scenario,
)

STAGE = StageOptions(capacity=2, num_threads=2)


def test_options_of_a_stage_stay():
    setting = Optimizations(stage=STAGE)
    assert scenario_beside(Optimizations(), setting, None) == Scenario(optimizations=setting)


def test_threads_and_batch_beside_a_plain_baseline():
    setting = Optimizations(stage=STAGE, inter_op_threads=4, batch_size=32)
    assert scenario_beside(Optimizations(), setting, 8) == Scenario(
        optimizations=Optimizations(stage=STAGE), inter_op_threads=4, batch_ratio=4.0
    )


def test_what_the_baseline_has_too_is_as_traced():
    baseline = Optimizations(inter_op_threads=4, intra_op_threads=2, batch_size=32)
    setting = like_baseline(baseline, Optimizations(stage=STAGE))
    expected = Scenario(optimizations=Optimizations(stage=STAGE))
    assert scenario_beside(baseline, setting, None) == expected
    assert scenario_beside(baseline, baseline, None) == traced_scenario(baseline)


@pytest.mark.parametrize(("traced", "wished", "ratio"), [(32, None, 0.25), (32, 16, 0.5)])
def test_a_baseline_with_another_batch(traced: int, wished: int | None, ratio: float):
    baseline, setting = Optimizations(batch_size=traced), Optimizations(batch_size=wished)
    assert scenario_beside(baseline, setting, 8) == Scenario(batch_ratio=ratio)


def test_a_batch_that_is_spelled_out_is_the_same():
    assert scenario_beside(Optimizations(), Optimizations(batch_size=8), 8) == Scenario()


@pytest.mark.parametrize(
    ("baseline", "setting", "reason"),
    [
        ({}, {"intra_op_threads": 2}, "what ops take with another number of intra-op threads"),
        ({"intra_op_threads": 2}, {}, "what ops take with another number of intra-op threads"),
        ({"inter_op_threads": 2}, {}, "leaves them to the program, whose own number is not known"),
        ({}, {"batch_size": 8}, "how many rows a batch of the program has is not known"),
        ({"batch_size": 8}, {}, "how many rows a batch of the program has is not known"),
    ],
)
def test_what_is_not_known(baseline: dict[str, int], setting: dict[str, int], reason: str):
    found = scenario_beside(Optimizations(**baseline), Optimizations(**setting), None)
    assert isinstance(found, Withheld) and reason in found.reason
    assert found.scenario.optimizations == Optimizations(**setting)
