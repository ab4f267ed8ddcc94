"""The answer of comparisons: the best variant over toggles and inputs, and what to do next."""

from __future__ import annotations

from tests.builders.comparisons import SETTINGS, comparison, every_toggle_comparison, variant
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.viz.comparison.answer import answer, best_ratio, overall_answer
from workbench.viz.report import report_html

NBSP = "\u00a0"
ALL = "stage + smart stage + fused V2 + cost model executor"


def measured(*ratios, failed=(), **changes):
    """A comparison of these (label, ratio, low, high); `failed` train differently."""
    made = tuple(
        Ratio(label=label, ratio=value, low=low, high=high, verdict=verdict(low, high))
        for label, value, low, high in ratios
    )
    checks = tuple(
        Equivalence(
            label=ratio.label,
            kind="bit-equal losses",
            passed=ratio.label not in failed,
            steps=200,
            detail="some detail",
        )
        for ratio in made
    )
    variants = (variant("off", 40, 1), *(variant(r.label, 40 * r.ratio, 1) for r in made))
    return comparison(**{"variants": variants, "ratios": made, "equivalence": checks, **changes})


def verdict(low, high):
    return "faster" if low > 1 else "slower" if high < 1 else "no clear difference"


def said(found):
    return "".join(text for text, _ in found.sentence).replace(NBSP, " ")


def strong(found):
    return [text for text, is_strong in found.sentence if is_strong]


def test_the_clearly_faster_variant_wins_over_a_larger_mean():
    found = measured(("smart stage", 1.1349, 0.93, 1.37), ("stage", 1.13, 1.03, 1.24))
    assert best_ratio(found).label == "stage"
    assert said(answer(found)) == (
        "Stage trains 1.13× as fast as all off (95 % interval 1.03–1.24), the best of 2 variants, "
        "and the training is the same."
    )
    assert strong(answer(found)) == ["1.13× as fast"]
    assert answer(found).next_step == "Train with wb.staged(…)."


def test_the_winner_among_many_says_which_others_are_as_good():
    found = measured(
        ("stage", 1.40, 1.37, 1.43),
        ("fused V1", 1.20, 1.15, 1.25),
        (ALL, 1.45, 1.38, 1.52),
        ("fused V2", 1.39, 1.30, 1.48),
        ("inline executor", 0.8, 0.7, 0.9),
    )
    assert said(answer(found)).startswith(
        "Stage + smart stage + fused V2 + cost model executor trains 1.45× as fast"
    )
    assert answer(found).next_step == (
        "Train with wb.staged(…); wb.smart_stage(…), or wb.prepare_config(…) for a session; "
        'wb.fused_embeddings("v2"); wb.executor("cost_model"), or '
        'wb.executor_options("cost_model") for a session. Stage (1.40×) and fused V2 (1.39×) lie '
        "within its interval: take what is simplest to switch on."
    )


def test_a_variant_of_the_users_own_is_named_as_it_is():
    assert answer(measured(("mine", 1.4, 1.3, 1.5))).next_step == "Train with mine."


def test_none_that_is_clearly_faster():
    found = measured(
        ("stage", 1.05, 0.98, 1.12), ("smart stage", 1.01, 0.99, 1.03), ("fused V1", 0.9, 0.8, 0.95)
    )
    assert said(answer(found)) == (
        "No clear difference: none of 3 variants trains clearly faster than all off. The nearest "
        "is stage, 1.05× as fast (95 % interval 0.98–1.12), and the training is the same."
    )
    assert answer(found).next_step == (
        "Leave all off, or measure longer if a difference this small matters: four times the "
        "budget makes the interval about half as wide."
    )


def test_every_variant_is_slower():
    found = measured(("stage", 0.94, 0.92, 0.95), ("inline executor", 0.7, 0.6, 0.8))
    assert said(answer(found)) == (
        "Every variant is slower than all off. The least slow of 2 variants is stage, 0.94× as "
        "fast (95 % interval 0.92–0.95), and the training is the same."
    )
    assert strong(answer(found)) == ["Every variant is slower"]
    assert answer(found).next_step.startswith("Leave all off for this model, data and machine.")


def test_what_trains_differently_is_no_winner():
    found = measured(("fused V1", 2.0, 1.9, 2.1), ("stage", 1.1, 1.05, 1.15), failed=("fused V1",))
    assert said(answer(found)).startswith("Stage trains 1.10× as fast")
    alone = measured(("fused V1", 2.0, 1.9, 2.1), ("stage", 1.0, 0.9, 1.1), failed=("fused V1",))
    assert said(answer(alone)) == (
        "Fused V1 trains 2.00× as fast as all off (95 % interval 1.90–2.10); the training is not "
        "the same."
    )
    assert answer(alone).next_step == (
        "Leave fused V1 off until the difference in the equivalence receipt is understood; no "
        "variant that trains the same is clearly faster."
    )


def test_a_baseline_alone_asks_for_something_to_compare():
    alone = comparison(variants=(variant("off", 41.3, 0.4),), ratios=(), equivalence=())
    assert answer(alone).next_step == "Measure it beside an optimization: give compare a toggle."


def test_fused_and_executor_parts_are_not_hidden_by_a_plan_that_moves_nothing():
    note = f"{ALL}: its plan moves nothing ahead of the step (keep stage: it holds all)."
    found = measured((ALL, 1.8, 1.7, 1.9))
    noted = (found.variants[0], variant(ALL, 72, 1, notes=(note,)))
    found = measured((ALL, 1.8, 1.7, 1.9), variants=noted)
    assert "1.80× as fast" in said(answer(found))
    assert "changed nothing" not in report_html(found)


def test_over_several_inputs_the_best_names_its_input():
    disk = measured(("stage", 1.13, 1.03, 1.24), ("smart stage", 1.2, 0.9, 1.5))
    slow = measured(("stage", 1.80, 1.7, 1.9), ("smart stage", 1.95, 1.9, 2.0))
    found = overall_answer([("from disk", disk), ("with input latency 12 ms", slow)])
    assert said(found) == (
        "Smart stage trains 1.95× as fast as all off (95 % interval 1.90–2.00) with input latency "
        "12 ms, the best of 4 results with 2 inputs, and the training is the same."
    )
    # what lies within the interval with another input says nothing about this one
    assert found.next_step == "Train with wb.smart_stage(…), or wb.prepare_config(…) for a session."


def test_over_several_inputs_without_a_winner():
    even = measured(("stage", 1.01, 0.97, 1.05))
    slower = measured(("stage", 0.9, 0.8, 0.95))
    found = overall_answer([("from disk", slower), ("with batch size 64", even)])
    assert said(found).startswith(
        "No clear difference: none of 2 results with 2 inputs trains clearly faster than all off. "
        "The nearest is stage with batch size 64, 1.01× as fast"
    )


def test_a_report_of_several_comparisons_opens_with_the_best_of_all():
    disk = measured(("stage", 1.1, 1.05, 1.15), settings={**SETTINGS, "input_latency_ms": 0.0})
    slow = measured(("smart stage", 2.1, 2.0, 2.2))
    page = report_html([disk, slow])
    first = page[page.index("<main>") :]
    best = (
        "(95\u00a0% interval 2.00\u2060–\u20602.20) with input latency 7.5\u00a0ms, the best of 2"
    )
    assert first.index(best) < first.index("<nav") < first.index("<table")
    other = measured(("stage", 1.05, 1.01, 1.09), program="wdl")
    assert "1.05–1.15) in dlrm with" not in report_html([slow, other])
    assert "2.20) in dlrm, the best" in report_html([slow, other]).replace("\u2060", "")


def test_many_variants_have_a_winner_and_one_line_of_receipt():
    page = report_html(every_toggle_comparison())
    assert "2.30× as fast" in page
    assert "All 7 variants train the same" in page


def test_a_moved_boundary_is_switched_on_by_its_names():
    found = answer(measured(("moved boundary", 1.3, 1.2, 1.4)))
    assert found.next_step.startswith("Train with wb.smart_stage(…), or wb.prepare_config(…)")
    assert "with its include=… and exclude=…" in found.next_step
