"""Gates: what an interval says of a limit, and which comparisons can be held against each other."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import ENVIRONMENT, SETTINGS, comparison, variant
from workbench.errors import OptionError
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.regression.gate import gate, gate_against, quotient, standing
from workbench.experiments.regression.regressions import regressions


def ratio(label, low, high):
    value = (low + high) / 2
    return Ratio(label=label, ratio=value, low=low, high=high, verdict="no clear difference")


def held(*ratios, limit=0.03, **options):
    return gate(comparison(ratios=ratios), limit, **options)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.90, 0.96, "slower"),
        (0.90, 0.97, "not shown"),  # the end of the interval is the limit itself
        (0.96, 1.02, "not shown"),
        (0.97, 0.99, "holds"),  # slower, but by less than the limit
        (1.20, 1.40, "holds"),
        (0.0, math.inf, "not shown"),
    ],
)
def test_what_an_interval_says_of_a_limit(low, high, found):
    assert standing(Interval(value=1.0, low=low, high=high), 0.03) == found


def test_the_worst_variant_decides():
    good, wide, bad = ratio("a", 1.0, 1.1), ratio("b", 0.9, 1.1), ratio("c", 0.8, 0.9)
    assert (held(good).standing, held(good).passed) == ("holds", True)
    assert (held(good, wide).standing, held(good, wide).passed) == ("not shown", True)
    assert held(good, wide, strict=True).passed is False
    assert (held(good, wide, bad).standing, held(bad).passed) == ("slower", False)
    assert held(bad, limit=0.25).passed is True


def test_a_baseline_alone_has_nothing_to_be_held_against():
    with pytest.raises(OptionError, match="dlrm was measured with the baseline alone, so nothing"):
        held()


@pytest.mark.parametrize("limit", [-0.1, 1, 3, "3%", True, math.nan])
def test_an_impossible_limit(limit):
    with pytest.raises(OptionError, match=r"expected 0 or more and below 1, such as 0.03"):
        held(ratio("a", 1, 1), limit=limit)


def test_other_training_is_said():
    failed = Equivalence(label="stage", kind="same batches", passed=False, steps=3, detail="")
    found = gate(comparison(equivalence=(failed,)), 0.03)
    assert found.notes == ("Not the same training: 'stage'; see the report.",)


def of_rates(off, stage, half=1.0, **changes):
    variants = (variant("off", off, half), variant("stage", stage, half))
    return comparison(variants=variants, **changes)


def test_an_earlier_comparison_is_held_against_label_by_label():
    found = gate_against(of_rates(100, 150), of_rates(100, 180), 0.03)
    assert [(each.label, each.standing) for each in found.checked] == [
        ("off", "holds"),
        ("stage", "slower"),
    ]
    assert found.against == "the earlier comparison"
    # both intervals count: 1 % of 100 now and then is 1.4 % of their ratio
    assert found.checked[0].ratio.low == pytest.approx(1 - 0.0141, abs=2e-4)
    assert "in no interval" in found.notes[-1]


def test_what_only_one_of_them_has_is_said():
    before = dataclasses.replace(of_rates(100, 150), variants=(variant("off", 100, 1),))
    found = gate_against(of_rates(100, 150), before, 0.03)
    assert [each.label for each in found.checked] == ["off"]
    assert "Not measured before, so not held against anything: 'stage'." in found.notes
    other = dataclasses.replace(before, variants=(variant("fused V1", 100, 1),))
    with pytest.raises(OptionError, match="no variant in common: 'off', 'stage' now, 'fused V1'"):
        gate_against(of_rates(100, 150), other, 0.03)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"program": "wdl"}, "the earlier comparison is of 'wdl', this one of 'dlrm'"),
        (
            {"settings": {**SETTINGS, "batch_size": 64}},
            "the settings differ: batch_size is 512 now and was 64 in the earlier comparison",
        ),
        (
            {"settings": {**SETTINGS, "data": "old/other.tsv"}},
            "data is 'clicks.tsv' now and was 'other.tsv'",
        ),
        ({"settings": {**SETTINGS, "stage.capacity": 9}}, "stage.capacity is 2 now and was 9"),
        (
            {"environment": {**ENVIRONMENT, "cores": 64}},
            "another machine: cores is 2 now and was 64 in the earlier comparison; measure both on",
        ),
    ],
)
def test_only_the_same_is_held_against_each_other(changes, said):
    with pytest.raises(OptionError) as caught:
        gate_against(of_rates(100, 150), of_rates(100, 150, **changes), 0.03)
    assert said in str(caught.value)


def test_what_is_no_setting_may_differ():
    settings = {**SETTINGS, "rounds": 4, "took_s": 9.0, "data": "old/clicks.tsv"}
    del settings["stage.capacity"]
    environment = {**ENVIRONMENT, "tensorflow": "2.20.0", "cpu": "Another"}
    before = of_rates(100, 150, settings=settings, environment=environment)
    found = gate_against(of_rates(100, 150), before, 0.03, any_machine=True)
    assert found.passed
    assert found.notes[:2] == (
        "tensorflow is '2.21.0' now and was '2.20.0' in the earlier comparison.",
        "Another machine: cpu is 'A Processor @ 2.60GHz' now and was 'Another' in the earlier "
        "comparison.",
    )


rates = st.floats(0.1, 1e4)
widths = st.floats(1.0, 3.0)


@given(rates, rates, widths, widths)
def test_a_quotient_is_wider_than_either_and_turns_around(now, before, wide, narrow):
    a = Interval(value=now, low=now / wide, high=now * wide)
    b = Interval(value=before, low=before / narrow, high=before * narrow)
    over, under = quotient(a, b), quotient(b, a)
    assert over.low <= over.value <= over.high
    assert over.high / over.value >= max(wide, narrow) * (1 - 1e-9)
    assert over.low * under.high == pytest.approx(1.0)


def test_an_unknown_interval_stays_unknown():
    known = Interval(value=10.0, low=9.0, high=11.0)
    alone = Interval(value=10.0, low=0.0, high=math.inf)
    for found in (quotient(known, alone), quotient(alone, known)):
        assert (found.value, found.low, found.high) == (1.0, 0.0, math.inf)


def traced(off, stage, low, high, rate=60):
    variants = (variant("off", 100, 1, trace=off), variant("stage", rate, 1, trace=stage))
    return comparison(variants=variants, ratios=(ratio("stage", low, high),))


def test_ops_that_take_longer_are_told_where_a_variant_is_slower():
    slower = traced(staged(), unstaged(), 0.5, 0.6)
    (found,) = regressions(gate(slower, 0.03), slower)
    longer = found.longer(5)
    # without the stage the step itself reads, for 4 ms
    assert longer["name"].tolist() == ["ahead/read"]
    assert (longer["path_difference_ns"] > 0).all()
    assert (found.label, found.alignment.a.label) == ("stage", "off")
    for limit in (0.45, 0.6):  # not shown, and holds
        assert regressions(gate(slower, limit), slower) == []


def test_an_earlier_trace_of_the_same_variant_counts():
    now, before = traced(staged(), unstaged(), 0.5, 0.6), traced(staged(), staged(), 0.9, 1.1, 90)
    (found,) = regressions(gate_against(now, before, 0.03), now, before)
    assert (found.alignment.a.label, found.alignment.b.label) == ("before", "now")


def test_nothing_is_told_without_traces():
    now = traced(None, unstaged(), 0.5, 0.6)
    assert regressions(gate(now, 0.03), now) == []
