"""Predictions beside measurements: errors, signs, and whether the best was picked."""

from __future__ import annotations

import pytest

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.what_if.calibration import MeasuredRatio, calibrated, joined
from workbench.core.what_if.predictions import Predicted, Predictions, Withheld
from workbench.core.what_if.scenario import Scenario

STAGE = Scenario(optimizations=Optimizations(stage=StageOptions()))
SMART = Scenario(optimizations=Optimizations(smart_stage=SmartStageOptions()))
FUSED = Scenario(optimizations=Optimizations(fused_embeddings="v1"))


def predictions(**ratios: float) -> Predictions:
    scenarios = {"off": Scenario(), "stage": STAGE, "smart": SMART}
    return Predictions(
        title="tiny",
        traced=Scenario(),
        replay=None,
        predicted=tuple(
            Predicted(
                scenario=scenarios[name],
                step_ms=10 / ratio,
                low_ms=9 / ratio,
                high_ms=11 / ratio,
                ratio=ratio,
                low=ratio * 0.9,
                high=ratio * 1.1,
                limited_by="the step",
                bound_ms=1.0,
            )
            for name, ratio in ratios.items()
        ),
        withheld=(Withheld(scenario=FUSED, reason="no lookup"),),
    )


def measured(label: str, ratio: float, half: float = 0.01) -> MeasuredRatio:
    return MeasuredRatio(label=label, ratio=ratio, low=ratio - half, high=ratio + half)


def test_errors_signs_and_intervals():
    found = calibrated(
        "tiny",
        predictions(off=1.0, stage=1.5, smart=0.95),
        [measured("stage", 1.2), measured("smart stage", 1.0, 0.1), measured("fused V1", 1.3)],
    )
    stage, smart = found.checks
    assert stage.error == pytest.approx(0.25)
    assert smart.error == pytest.approx(-0.05)
    assert found.mean_error == pytest.approx(0.15)
    # the interval of the second holds 1: there is no sign to get wrong
    assert found.signs == (1, 1)
    assert (stage.inside, smart.inside, found.inside) == (False, True, 1)
    assert found.missing == (("tiny", "fused V1", "no lookup"),)
    assert list(found.df["label"]) == ["stage", "smart stage"]


def test_a_prediction_on_the_wrong_side_of_1():
    found = calibrated("tiny", predictions(stage=1.05), [measured("stage", 0.9)])
    assert found.signs == (0, 1)


@pytest.mark.parametrize(
    ("stage", "smart", "picks"),
    [(1.3, 1.2, True), (1.2, 1.3, False), (1.29, 1.3, True), (0.7, 0.8, False)],
)
def test_the_best_is_picked_where_it_measures_as_the_best(stage: float, smart: float, picks: bool):
    found = calibrated(
        "tiny",
        predictions(stage=1.4, smart=1.1),
        [measured("stage", stage), measured("smart stage", smart)],
    )
    assert found.picks_best("tiny") is picks


def test_of_settings_predicted_to_be_as_good_the_simplest_is_picked():
    found = predictions(stage=1.39, smart=1.4)
    assert found.best is not None and found.best.label == "stage"
    checks = calibrated("tiny", found, [measured("stage", 1.4), measured("smart stage", 1.3)])
    assert checks.picks_best("tiny") is True
    found = predictions(stage=1.36, smart=1.4)
    assert found.best is not None and found.best.label == "smart stage"
    # nor is anything switched on for next to nothing
    found = predictions(off=1.0, stage=1.01)
    assert found.best is not None and found.best.label == "off"


def test_to_leave_all_as_it_is_can_be_the_best():
    found = calibrated("tiny", predictions(stage=0.9), [measured("stage", 0.8)])
    assert found.picks_best("tiny") is True
    assert found.picks_best("other") is None


def test_several_programs_are_joined():
    one = calibrated("one", predictions(stage=1.2), [measured("stage", 1.2)])
    two = calibrated("two", predictions(stage=1.2), [measured("stage", 1.0)])
    both = joined([one, two])
    assert both.programs == ("one", "two")
    assert both.mean_error == pytest.approx(0.1)
    assert joined([]).mean_error is None
