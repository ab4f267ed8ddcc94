"""The comparison view: words, verdicts, fractions and tables out of what an experiment found."""

from __future__ import annotations

import dataclasses
import math

import pytest

from tests.builders.comparisons import (
    ENVIRONMENT,
    SETTINGS,
    comparison,
    planned_comparison,
    variant,
)
from tests.builders.findings import plain
from tests.builders.memories import chain_trace
from tests.builders.traces import unstaged_trace
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.viz.comparison.environment import (
    differing,
    environment_pairs,
    prefetch_note,
    setting_pairs,
)
from workbench.viz.comparison.view import compare_view
from workbench.viz.outlets import fragment_of, text_of

NBSP = "\u00a0"


def sentence(**changes):
    return "".join(text for text, _ in compare_view(comparison(**changes)).sentence)


def ratio(value, low, high, verdict, label="stage"):
    return Ratio(label=label, ratio=value, low=low, high=high, verdict=verdict)


def check(passed, kind="bit-equal losses"):
    return Equivalence(label="stage", kind=kind, passed=passed, steps=200, detail="some detail")


def test_faster_leads_with_its_ratio():
    view = compare_view(comparison())
    assert sentence() == (
        f"Stage trains 1.83× as fast as all off (95{NBSP}% interval 1.80–1.86), "
        "and the training is the same."
    )
    assert [text for text, strong in view.sentence if strong] == ["1.83× as fast"]
    assert (view.rows[1].verdict, view.rows[1].harm) == ("▲ faster", False)


def test_slower_is_said_and_marked_as_harm():
    slower = (ratio(0.94, 0.92, 0.95, "slower"),)
    assert sentence(ratios=slower).startswith("Stage trains 0.94× as fast as all off")
    row = compare_view(comparison(ratios=slower)).rows[1]
    assert (row.verdict, row.harm, row.clear) == ("▼ slower", True, True)


def test_no_clear_difference_is_a_verdict():
    equal = (ratio(1.01, 0.99, 1.02, "no clear difference"),)
    view = compare_view(comparison(ratios=equal))
    assert view.sentence[0] == ("No clear difference", True)
    assert "stage trains 1.01× as fast as all off" in view.sentence[1][0]
    assert (view.rows[1].verdict, view.rows[1].clear) == ("= no clear difference", False)


def test_the_sentence_is_about_the_best_variant():
    view = compare_view(
        comparison(
            variants=(variant("off", 40, 1), variant("one", 50, 1), variant("two", 60, 1)),
            ratios=(
                ratio(1.25, 1.2, 1.3, "faster", "one"),
                ratio(1.5, 1.4, 1.6, "faster", "two"),
            ),
            equivalence=(),
        )
    )
    assert view.sentence[0][0] == "Two trains "
    assert [series.label for series in view.series] == ["All off", "Two"]
    assert view.blocks is not None
    assert view.blocks.heads == ("Round", "All off", "One", "Two")


def test_one_variant_alone_gives_its_rate():
    alone = {"variants": (variant("off", 41.3, 0.4),), "ratios": (), "equivalence": ()}
    assert sentence(**alone) == f"All off trains at 41.3 ± 0.4{NBSP}steps/s."


@pytest.mark.parametrize(
    ("checks", "end", "receipt"),
    [
        ((check(True),), ", and the training is the same.", "bit-equal losses"),
        ((check(True, "same batches"),), ", and the batches are the same.", "same batches"),
        ((check(True), check(False, "same batches")), "not the same.", "not same batches"),
        ((), "; whether the training is the same was not checked.", "not checked"),
    ],
)
def test_the_sentence_ends_with_the_receipt(checks, end, receipt):
    assert sentence(equivalence=checks).endswith(end)
    rows = compare_view(comparison(equivalence=checks)).rows
    assert [row.training for row in rows] == ["reference", receipt]


def test_rows_have_words_and_fractions_of_an_axis_from_zero():
    view = compare_view(comparison())
    assert view.ticks == ((0, "0"), (0.25, "20"), (0.5, "40"), (0.75, "60"), (1, "80"))
    off, stage = view.rows
    assert (off.label, off.rate, off.half) == ("All off", "39.8", "± 0.4")
    assert (off.ratio, off.interval, off.verdict) == ("baseline", "", "")
    assert (stage.ratio, stage.interval) == ("1.83×", "1.80–1.86")
    assert stage.step_time == f"13.7{NBSP}ms"
    assert (stage.low, stage.bar, stage.high) == pytest.approx((0.9, 0.91, 0.92))
    assert view.limits[0].at == pytest.approx(74.1 / 80)


@pytest.mark.parametrize(
    ("rate", "ticks"),
    [
        (3.9, ["0", "1", "2", "3", "4"]),
        (0.04, ["0", "", "0.02", "", "0.04"]),
        (980, ["0", "", "500", "", "1000"]),
        (2100, ["0", "", "", "3000"]),
        (100, ["0", "25", "50", "75", "100"]),
    ],
)
def test_ticks_are_round_and_their_words_do_not_meet(rate, ticks):
    view = compare_view(comparison(variants=(variant("off", rate, 0),), ratios=(), bounds=()))
    assert [text for _, text in view.ticks] == ticks


def test_nothing_sticks_out_of_the_axis():
    bound = Bound(name="b", steps_per_s=500.0, detail="")
    view = compare_view(comparison(bounds=(bound,)))
    assert view.limits[0].at <= 1
    assert all(0 <= row.low <= row.bar <= row.high <= 1 for row in view.rows)


def test_a_single_block_has_no_interval():
    single = dataclasses.replace(
        variant("off", 40, 0), low=0.0, high=math.inf, block_steps_per_s=(40.0,)
    )
    view = compare_view(comparison(variants=(single,), ratios=()))
    assert (view.rows[0].rate, view.rows[0].half) == ("40.0", "")
    assert view.rows[0].low == view.rows[0].bar == view.rows[0].high
    assert view.series == ()
    assert view.blocks is None


def test_means_that_lie_together_keep_their_words_apart():
    close = (variant("off", 99.8, 1.0), variant("stage", 100.8, 1.0))
    one, other = compare_view(comparison(variants=close, bounds=())).series
    assert other.mean - one.mean < 0.02
    assert other.text_at - one.text_at == pytest.approx(0.12)


def test_the_caption_says_what_the_intervals_are():
    assert compare_view(comparison()).caption == (
        f"95{NBSP}% interval of 6 paired blocks of 40 to 73 steps"
    )
    plain = compare_view(comparison(settings={}))
    assert plain.caption == f"95{NBSP}% interval of 6 paired blocks"


def test_metrics_stand_side_by_side():
    table = compare_view(comparison()).metrics
    assert table is not None
    assert table.heads == ("Per step or run", "All off", "Stage")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Steps traced"] == ("4", "4")
    assert rows["Step, median and 95th percentile"][0] == f"10.0{NBSP}ms, 10.0{NBSP}ms"
    assert rows["Stage work done while a step computes"] == ("–", f"79{NBSP}%")


def test_a_row_that_nobody_has_is_left_out():
    off = variant("off", 40, 1, trace=comparison().variants[0].trace)
    table = compare_view(comparison(variants=(off,), ratios=())).metrics
    assert table is not None
    assert [row[0] for row in table.rows] == ["Steps traced", "Step, median and 95th percentile"]


def test_families_show_what_moved_ahead_of_the_step():
    table = compare_view(comparison()).families
    assert table is not None
    heads = ("Family", "All off, in the step", "Stage, in the step", "Stage, ahead of it")
    assert table.heads == heads
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Input, decode"] == (f"4.0{NBSP}ms", "", f"3.0{NBSP}ms")
    assert rows["Dense matmul"] == (f"1.5{NBSP}ms", f"1.9{NBSP}ms", "")
    assert table.total == ("All ops", f"11.4{NBSP}ms", f"7.6{NBSP}ms", f"4.5{NBSP}ms")


def test_without_traces_there_are_no_tables_of_them():
    bare = (variant("off", 40, 1), variant("stage", 70, 1))
    view = compare_view(comparison(variants=bare))
    assert (view.metrics, view.families, view.traces) == (None, None, ())


def test_units_move_from_the_name_to_the_value():
    pairs = dict(setting_pairs({**SETTINGS, "seed": 20_240_101, "shuffle": True, "tags": ["a", 2]}))
    assert pairs["Input latency"] == f"7.5{NBSP}ms"
    assert pairs["Rows"] == "200\u2009000"
    assert pairs["Seed"] == "20240101"
    assert pairs["Steps per block"] == "off 40, stage 73, input alone 90"
    assert (pairs["Shuffle"], pairs["Tags"]) == ("yes", "a, 2")


def test_environment_has_names_for_readers():
    pairs = dict(environment_pairs(ENVIRONMENT))
    assert pairs["TensorFlow"] == "2.21.0"
    assert pairs["tf.data's injected prefetch"] == "off"
    assert pairs["Inter op threads"] == "one per core"


def test_an_injected_prefetch_is_noted():
    assert prefetch_note(ENVIRONMENT) == []
    on = {**ENVIRONMENT, "tf.data inject_prefetch": "on", "tf.data prefetch of its own": "yes"}
    first, second = prefetch_note(on)
    assert "inject_prefetch is on" in first
    assert "prefetch written in it" in second
    assert compare_view(comparison(environment=on)).notes == (first, second)


def test_notes_of_variants_are_shown_once():
    noted = tuple(variant(label, 40, 1, notes=("It swapped.",)) for label in ("off", "stage"))
    assert compare_view(comparison(variants=noted)).notes == ("It swapped.",)


def test_what_sets_comparisons_apart_is_what_was_asked_for():
    one = setting_pairs({"input_latency_ms": 0.0, "batch_size": 512, "rounds": 6})
    other = setting_pairs({"input_latency_ms": 7.5, "batch_size": 512, "rounds": 8})
    assert differing([one, other]) == [f"input latency 0{NBSP}ms", f"input latency 7.5{NBSP}ms"]
    assert differing([one]) == [""]
    assert differing([one, one]) == ["", ""]


def test_what_was_predicted_stands_beside_what_was_measured():
    view = compare_view(planned_comparison())
    assert view.predicts
    assert [row.predicted for row in view.rows] == ["", "", "1.95×"]
    assert view.rows[1].predicted_at is None
    assert view.rows[2].predicted_at == pytest.approx(1.95 * 39.8 / 100)
    assert not compare_view(comparison()).predicts


def test_the_axis_has_room_for_a_prediction():
    far = ratio(2.0, 1.9, 2.1, "faster", "smart stage")
    far = dataclasses.replace(far, predicted=9.0)
    view = compare_view(planned_comparison(ratios=(far,)))
    assert view.rows[2].predicted_at == pytest.approx(9 * 39.8 / 400)


def test_a_variant_with_a_plan_is_listed():
    view = compare_view(planned_comparison())
    ((label, plan),) = view.plans
    assert label == "Smart stage"
    assert [stage.name for stage in plan.stages] == ["smart_stage_input", "smart_stage"]
    assert compare_view(comparison()).plans == ()


def test_tensors_at_the_peak_stand_in_a_column_where_traces_know_them():
    weighed = comparison(
        variants=(
            variant("off", 100, 1, trace=chain_trace(steps=3)),
            variant("stage", 160, 1, trace=unstaged_trace()),
        )
    )
    view = compare_view(weighed)
    assert view.weighs and [plain(row.memory) for row in view.rows] == ["170 B", ""]
    assert "tensors, peak" in text_of(weighed)
    assert "Tensors, peak" in fragment_of(weighed)
    table = weighed.to_pandas()
    assert table["peak_tensor_bytes"]["off"] == 170
    assert table["peak_tensor_bytes"].isna()["stage"]
    assert not compare_view(comparison()).weighs
    assert "Tensors, peak" not in fragment_of(comparison())
