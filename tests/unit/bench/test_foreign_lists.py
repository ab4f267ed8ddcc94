"""Of a list of settings, what was named best is judged by what was measured beside it."""

from __future__ import annotations

import dataclasses

import pytest

from tests.bench.bench_foreign import Row, read, summary
from tests.bench.foreign_lists import Judged, judged, near_best
from workbench.core.what_if.calibration import Calibration, Check

ROUNDS = 12


def check(label: str, predicted: float) -> Check:
    return Check(
        program="one",
        label=label,
        predicted=predicted,
        predicted_low=predicted,
        predicted_high=predicted,
        measured=1.0,
        measured_low=1.0,
        measured_high=1.0,
    )


def blocks(rate: float, noise: float = 0.0) -> list[float]:
    return [rate * (1 + noise * (1 if number % 2 else -1)) for number in range(ROUNDS)]


FOUND = Calibration(checks=(check("stage", 1.3), check("smart stage", 1.1)))


def of_stages(rates, near=None) -> Judged:
    (found,) = (each for each in judged(FOUND, rates, near or {}) if each.among == "stages")
    return found


def test_the_named_one_is_held_against_the_best():
    found = of_stages({"off": blocks(1), "stage": blocks(1.19), "smart stage": blocks(1.2)})
    assert (found.named, found.best) == ("stage", "smart stage")
    assert found.within and not found.slower
    found = of_stages({"off": blocks(1), "stage": blocks(1.1), "smart stage": blocks(1.2)})
    assert not found.within and found.slower


def test_noise_shows_nothing_but_is_no_hit_by_the_means():
    rates = {"off": blocks(1), "stage": blocks(1.1, 0.3), "smart stage": blocks(1.2)}
    found = of_stages(rates)
    assert not found.within and not found.slower
    assert found.half_width > 0.1


def test_the_blocks_of_a_round_are_paired():
    slow = [1.0 if number % 3 else 0.5 for number in range(ROUNDS)]
    rates = {
        "off": slow,
        "stage": [1.10 * each for each in slow],
        "smart stage": [1.15 * each for each in slow],
    }
    assert of_stages(rates).slower and of_stages(rates).half_width < 0.001


def test_a_rival_that_is_not_the_best_by_the_means_may_show_it():
    rates = {"off": blocks(1.25), "stage": blocks(1.2), "smart stage": blocks(1.26, 0.2)}
    assert of_stages(rates).slower


def test_where_nothing_is_predicted_to_be_faster_none_is_named():
    found = Calibration(checks=(check("stage", 0.9),))
    rates = {"off": blocks(1), "stage": blocks(1.2)}
    assert {(each.named, each.slower) for each in judged(found, rates, {})} == {("off", True)}


def test_what_was_measured_longer_counts():
    rates = {"off": blocks(1), "stage": blocks(1.1, 0.3), "smart stage": blocks(1.2)}
    near = {"off": blocks(1), "stage": blocks(1.2), "smart stage": blocks(1.14)}
    assert of_stages(rates, near).within
    # What measured best at first is held against the second measurement, too.
    assert of_stages(rates, near).first_ratio == pytest.approx(0.95)
    assert of_stages(rates).first_ratio is None
    # What was not measured again is judged by what there is.
    assert not of_stages(rates, {"off": blocks(1), "smart stage": blocks(1.19)}).within


def test_what_may_be_the_best_is_measured_again():
    both = "smart stage + inline executor"
    found = Calibration(checks=(check("stage", 1.3), check(both, 1.1)))
    rates = {"off": blocks(1), "stage": blocks(1.1), both: blocks(1.2)}
    assert near_best(found, rates) == ["stage", both]
    rates["stage"] = blocks(1.3)
    assert near_best(found, rates) == ["stage"]
    rates[both] = blocks(1.29, 0.1)
    assert near_best(found, rates) == ["stage", both]


def test_the_file_of_results_has_the_last_row_of_each_model(tmp_path):
    lists = (of_stages({"off": blocks(1), "stage": blocks(1.1), "smart stage": blocks(1.2)}),)
    row = Row(
        model="one",
        step_ms=2.0,
        replay=0.01,
        errors=(0.1, -0.2),
        withheld=1,
        near=1,
        right=1,
        clear=2,
        inside=1,
        lists=lists,
        took_s=60.0,
    )
    path = tmp_path / "results.jsonl"
    with path.open("w") as file:
        for each in (dataclasses.replace(row, took_s=1.0), row):
            file.write(f"{each.to_line()}\n")
    assert read(path) == {"one": row}
    said = summary([row])
    assert "15.0 % over 2 settings" in said and "named in 0 of 1" in said and "in 0 it is" in said
    assert read(tmp_path / "none") == {}
    assert row.holds and row.lists[0].ratio == pytest.approx(1.1 / 1.2)
