"""Blocks, orders, intervals and verdicts, on numbers alone."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import OptionError
from workbench.experiments.measurement.equivalence import (
    bit_equal_losses,
    equal_losses,
    other_losses,
    same_batches,
)
from workbench.experiments.measurement.statistics import (
    Interval,
    block_order,
    block_rate,
    mean_interval,
    plan_blocks,
    ratio_interval,
    verdict,
)

MS = 1_000_000


def test_two_candidates_run_abba():
    assert [block_order(number, 2) for number in range(4)] == [(0, 1), (1, 0), (1, 0), (0, 1)]


@given(candidates=st.integers(1, 6), pairs=st.integers(1, 6))
def test_everyone_runs_once_a_round_and_every_order_meets_its_reverse(candidates, pairs):
    orders = [block_order(number, candidates) for number in range(2 * pairs)]
    assert all(sorted(order) == list(range(candidates)) for order in orders)
    assert all(orders[i + 1] == orders[i][::-1] for i in range(0, len(orders), 2))


def test_dropped_steps_do_not_count():
    ends = np.array([0, 1, 2, 3, 13, 23, 33]) * MS
    assert block_rate(ends, dropped=3) == pytest.approx(100.0)


def test_at_least_one_step_counts():
    assert block_rate(np.array([0, 10]) * MS, dropped=5) == pytest.approx(100.0)


def test_what_was_held_ready_is_dropped():
    plan = plan_blocks([10 * MS, 10 * MS], [0, 42], budget_s=60)
    assert plan.dropped == (8, 50)
    assert all(
        steps - dropped >= 6 for steps, dropped in zip(plan.steps, plan.dropped, strict=True)
    )


def test_short_steps_in_cold_caches_are_dropped():
    # 80 ms of them; longer steps are warm after three
    assert plan_blocks([MS, 5 * MS, 50 * MS], [0, 2, 0], budget_s=60).dropped == (80, 18, 3)


def test_many_short_blocks_rather_than_few_long_ones():
    plan = plan_blocks([2 * MS] * 5, [0] * 5, budget_s=80)
    # of each block 80 ms count, beside 80 ms that do not
    assert plan.rounds == 100
    assert plan.steps == (80,) * 5


@given(
    steps_ms=st.lists(st.floats(0.05, 2000), min_size=1, max_size=5),
    budget_s=st.floats(0.1, 600),
)
def test_a_plan_fills_its_budget_or_has_the_fewest_rounds(steps_ms, budget_s):
    plan = plan_blocks([ms * MS for ms in steps_ms], [0] * len(steps_ms), budget_s)
    fewest = all(s - d == 6 for s, d in zip(plan.steps, plan.dropped, strict=True))
    assert plan.rounds % 2 == 0
    assert 4 <= plan.rounds <= 200
    assert plan.seconds <= budget_s * 1.001 or (plan.rounds == 4 and fewest)


def test_a_short_budget_has_shorter_blocks_before_it_has_fewer_rounds():
    made = [plan_blocks([2 * MS] * 2, [0, 4], budget_s=seconds) for seconds in (2.0, 1.3, 0.8, 0.1)]
    assert [plan.rounds for plan in made] == [6, 6, 4, 4]
    assert [sum(plan.steps) for plan in made] == [166, 108, 100, 96]


def test_what_a_block_takes_beside_its_steps_counts():
    plan = plan_blocks([10 * MS] * 2, [0, 0], budget_s=10, rest_s=[0.2, 0.1])
    assert plan.seconds == pytest.approx(10, rel=0.05)
    assert plan.rounds * sum(plan.steps) / 100 == pytest.approx(10 - 0.3 * plan.rounds, rel=0.05)


def test_cheap_steps_leave_their_time_to_others():
    plan = plan_blocks([0.1 * MS, 10 * MS], [0, 0], budget_s=40)
    # 400 that count, and 400 that do not
    assert plan.steps[0] == 800
    assert plan.steps[1] * 10 * plan.rounds / 1000 > 22


@pytest.mark.parametrize("budget", [0, -1.0, math.nan])
def test_a_budget_must_be_positive(budget):
    with pytest.raises(OptionError, match="budget_s is .*; expected seconds above 0"):
        plan_blocks([MS], [0], budget)


def test_a_ratio_is_that_of_paired_blocks():
    # The machine slows down by half meanwhile; each pair still says 2.
    found = ratio_interval([200.0, 150.0, 100.0, 100.0], [100.0, 75.0, 50.0, 50.0])
    assert found.value == pytest.approx(2.0)
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(2.0)


def test_blocks_that_cannot_be_paired_are_refused():
    with pytest.raises(OptionError, match="cannot pair 3 blocks with 2"):
        ratio_interval([1.0, 1.0, 1.0], [1.0, 1.0])
    with pytest.raises(OptionError, match="expected two or more"):
        ratio_interval([1.0], [1.0])


def test_the_same_seed_gives_the_same_interval():
    rates = [98.0, 103.0, 101.0, 97.0, 100.0, 105.0]
    assert mean_interval(rates, seed=5) == mean_interval(rates, seed=5)
    assert mean_interval(rates, seed=5) != mean_interval(rates, seed=6)


def test_a_single_block_has_no_bounds():
    assert mean_interval([50.0]) == Interval(value=pytest.approx(50.0), low=0.0, high=math.inf)


def test_intervals_of_few_blocks_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(400):
        found = mean_interval(np.exp(rng.normal(0.0, 0.1, 6)), seed=seed)
        hits += found.low <= 1.0 <= found.high
    assert 0.91 <= hits / 400 <= 0.99


@given(st.lists(st.floats(0.1, 1e4), min_size=2, max_size=20), st.floats(0.1, 10))
def test_intervals_hold_their_value_and_scale(rates, factor):
    one = mean_interval(rates)
    other = mean_interval([rate * factor for rate in rates])
    assert one.low <= one.value * (1 + 1e-9)
    assert one.value <= one.high * (1 + 1e-9)
    assert other.low == pytest.approx(one.low * factor)
    assert other.high == pytest.approx(one.high * factor)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.01, 1.2, "faster"),
        (0.8, 0.99, "slower"),
        (0.99, 1.2, "no clear difference"),
        (1.0, 1.2, "no clear difference"),
    ],
)
def test_a_verdict_needs_an_interval_without_one(low, high, said):
    assert verdict(Interval(value=(low + high) / 2, low=low, high=high)) == said


def losses(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_equal_losses_pass():
    check = bit_equal_losses("stage", losses(0.5, 0.25), losses(0.5, 0.25))
    assert (check.passed, check.steps, check.kind) == (True, 2, "bit-equal losses")


def test_one_bit_is_a_difference():
    other = losses(0.5, 0.25, 0.125)
    other[1] = np.nextafter(other[1], np.float32(1))
    check = bit_equal_losses("stage", losses(0.5, 0.25, 0.125), other)
    assert not check.passed
    assert check.detail == "differ from step 2 on: 0.25000003, the baseline has 0.25"
    far = equal_losses("stage", losses(0.5, 0.25), losses(0.5, 0.75))
    assert far.detail.endswith("apart from step 2 on: 0.75, the baseline has 0.25")


def test_nan_equals_itself_bit_by_bit():
    assert bit_equal_losses("stage", losses(math.nan), losses(math.nan)).passed


def test_the_first_step_whose_bits_differ_is_named():
    # A NaN that both have is no difference, and a zero with a sign is one.
    check = bit_equal_losses("stage", losses(math.nan, 0.0, 0.5), losses(math.nan, -0.0, 0.5))
    assert check.detail == "differ from step 2 on: -0.0, the baseline has 0.0"
    wider = bit_equal_losses("stage", losses(0.5), losses(0.5).astype(np.float64))
    assert wider.detail == "are numbers of type float64, the baseline's float32"


@pytest.mark.parametrize("dtype", [np.int32, ml_dtypes.bfloat16])
def test_losses_of_a_type_that_is_no_float_of_numpy_are_compared(dtype):
    few, more = (losses(4, 3).astype(dtype), losses(4, 2).astype(dtype))
    assert not equal_losses("fused", few, more).passed
    assert "at most 3.3e-01 apart" in other_losses("stale", few, more, stale_lookups=1).detail


def test_losses_of_runs_of_other_lengths_differ():
    check = bit_equal_losses("stage", losses(0.5, 0.25), losses(0.5))
    assert not check.passed
    assert check.detail == "1 steps until the data ended, the baseline has 2"


def rounded(steps: int, **apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses, and the same but for `step_k`, which are so far apart, relatively."""
    baseline = np.linspace(0.7, 0.4, steps).astype(np.float32)
    others = baseline.copy()
    for name, by in apart.items():
        others[int(name.removeprefix("step_")) - 1] *= np.float32(1 + by)
    return baseline, others


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        ({}, None),
        ({"step_1": 5e-7, "step_50": -5e-7, "step_51": 5e-7}, "at most 5.* apart, from the same"),
        (
            {"step_2": 5e-7, "step_51": 1e-3, "step_60": -1e-2},
            "at most 5.* apart in the first 50, 1.0e-02 later, as training amplifies",
        ),
    ],
)
def test_rounding_may_grow_late(apart, said):
    check = equal_losses("fused", *rounded(60, **apart))
    assert check.passed and check.steps == 60
    assert re.match(said or "from the same seed", check.detail)
    assert check.kind == ("equal losses" if said else "bit-equal losses")


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        ({"step_50": 3e-6}, "more than 1e-06 apart from step 50 on: "),
        ({"step_3": math.nan}, "more than 1e-06 apart from step 3 on: "),
        ({"step_51": 0.2}, "more than 1e-01 apart from step 51 on: "),
        ({"step_60": math.nan}, "more than 1e-01 apart from step 60 on: "),
    ],
)
def test_more_than_rounding_is_another_training(apart, said):
    check = equal_losses("fused", *rounded(60, **apart))
    assert (check.passed, check.kind) == (False, "equal losses")
    assert check.detail.startswith(said)


def test_what_rounding_does_to_the_baseline_it_may_do_to_others():
    baseline, found = rounded(60, step_9=4e-6, step_10=9e-5, step_60=5e-2)
    _, control = rounded(60, step_8=1e-6, step_9=1e-7, step_10=1e-5)
    assert not equal_losses("fused", baseline, found).passed
    check = equal_losses("fused", baseline, found, [control])
    assert check.passed and check.kind == "equal losses"
    assert "from weights 1 rounding away the baseline is 1.0e-05 from itself" in check.detail
    # the farthest of several counts; one that ended early tells nothing
    _, near = rounded(60, step_8=1e-7)
    again = equal_losses("fused", baseline, found, [near[:30], control, near])
    assert again.passed and "from weights 2 roundings away the baseline" in again.detail
    assert not equal_losses("fused", baseline, found, [near]).passed
    # ten times as far and no farther, nor before it was, and never a training of its own
    for apart, said in (
        ({"step_9": 2e-5}, "more than 1e-05 apart from step 9 on"),
        ({"step_7": 2e-6}, "more than 1e-06 apart from step 7 on"),
        ({"step_11": math.nan}, "more than 1e-04 apart from step 11 on"),
    ):
        wrong = equal_losses("fused", *rounded(60, **apart), [control])
        assert not wrong.passed and wrong.detail.startswith(said)
    _, wild = rounded(60, step_1=0.5)
    assert not equal_losses("fused", *rounded(60, step_2=0.2), [wild]).passed


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def batches(baseline, found, *, epoch=True, ahead=2):
    return same_batches("stage", baseline, found, threads=2, epoch=epoch, ahead=ahead)


def test_the_same_batches_in_another_order_pass():
    check = batches(ids(1, 2, 3, 3), ids(3, 1, 3, 2))
    assert check.passed
    assert check.detail == "each exactly once over a whole epoch, 2 prefetch threads"
    plain = same_batches("fused", ids(1, 2), ids(1, 2), threads=0, epoch=True, ahead=0)
    assert plain.detail == "each exactly once over a whole epoch, in the same order"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ids(1, 2), "1 batches missing and 0 too many or unknown in a whole epoch"),
        (ids(1, 2, 2, 3), "0 batches missing and 1 too many or unknown in a whole epoch"),
        (ids(1, 2, 9), "1 batches missing and 1 too many or unknown in a whole epoch"),
        (ids(), "no step was run before the data ended"),
    ],
)
def test_lost_doubled_and_foreign_batches_fail(found, said):
    check = batches(ids(1, 2, 3), found)
    assert not check.passed
    assert check.detail == said


def test_without_an_epoch_the_last_batches_may_still_be_on_their_way():
    check = batches(ids(1, 2, 3, 4, 5), ids(1, 3, 4), epoch=False)
    assert (check.passed, check.steps) == (True, 1)
    assert check.detail == "each exactly once over the first 1 step, 2 prefetch threads"
    assert not batches(ids(1, 2, 3, 4, 5), ids(2, 3, 4), epoch=False).passed


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_steps_to_miss_a_batch_are_no_check(count):
    check = batches(ids(1, 2, 3, 4, 5), ids(*range(1, count + 1)), epoch=False)
    assert (check.passed, check.steps) == (False, 0)
    said = "1 step tells" if count == 1 else "2 steps tell"
    assert check.detail == f"{said} nothing where 2 batches may be late"


@given(st.integers(1, 30), st.integers(0, 12), st.randoms(use_true_random=False))
def test_batches_that_overtake_others_pass_and_a_lost_one_fails(steps, ahead, random):
    waiting, order, next_one = [], [], 0
    while len(order) < steps + ahead:
        while len(waiting) < ahead + 1:
            waiting.append(next_one)
            next_one += 1
        # None is overtaken more often than others are on their way.
        late = waiting[0] <= len(order) - ahead
        order.append(waiting.pop(0 if late else random.randrange(len(waiting))))
    baseline = ids(*range(steps + 2 * ahead))
    check = batches(baseline, ids(*order), epoch=False, ahead=ahead)
    assert (check.passed, check.steps) == (True, steps)
    lost = random.randrange(steps)
    rest = [each for each in order if each != lost]
    fewer = batches(baseline, ids(*rest, next_one), epoch=False, ahead=ahead)
    assert not fewer.passed and fewer.detail.startswith("1 batches missing")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_every_order_of_an_epoch_passes(values, random):
    mixed = list(values)
    random.shuffle(mixed)
    assert batches(ids(*values), ids(*mixed)).passed
