"""What the list of predictions says, in HTML and in text."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.builders.predictions import (
    FUSED,
    INLINE,
    SMART,
    SMART_FUSED,
    STAGE,
    every_toggle,
    predicted,
    predictions,
)
from workbench.core.optimizations import Optimizations
from workbench.core.prediction.doubts import RUNS_ON, Doubt
from workbench.core.prediction.replay import Replay
from workbench.core.what_if.predictions import Predictions, Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.viz import outlets
from workbench.viz.notebook import bundle, text
from workbench.viz.predictions.view import PredictionsView, predictions_view

NO_LOOKUP = "the program builds no embedding lookup through Workbench"
NO_MATCH = "the traced steps take 41.2 ms, simulated 20.6 ms: nothing is predicted from it"


def plain(words: str) -> str:
    return words.replace("\u00a0", " ")


def said(view: PredictionsView) -> str:
    return plain("".join(words for words, _ in view.sentence))


def html_of(found: Predictions) -> str:
    return plain(re.sub(r"<style>.*?</style>", "", bundle(found)[0]["text/html"], flags=re.S))


def withheld(reason: str, *on: Optimizations) -> tuple[Withheld, ...]:
    return tuple(Withheld(scenario=Scenario(optimizations=each), reason=reason) for each in on)


def test_the_best_setting_is_the_answer_and_what_is_as_good_and_simpler():
    found = predictions(predicted(SMART_FUSED, 1.25), predicted(SMART, 1.2), predicted(FUSED, 1.1))
    view = predictions_view(found)
    assert said(view) == (
        "Best: smart stage + fused V1, predicted 1.25× as fast as all off (95 % interval "
        "1.14–1.39), 18.7 ms a step; none of it was run. One other lies within its interval; it is "
        "simpler: smart stage, 1.20×."
    )
    assert [words for words, strong in view.sentence if strong] == [
        "smart stage + fused V1, predicted 1.25×"
    ]


def test_several_that_are_as_good_are_counted():
    found = predictions(predicted(SMART_FUSED, 1.25), predicted(SMART, 1.2), predicted(STAGE, 1.22))
    assert said(predictions_view(found)).endswith(
        " 2 others lie within its interval; the simplest of them is stage, 1.22×."
    )
    alike = predictions(predicted(SMART, 1.25, 0.05), predicted(STAGE, 1.22))
    assert said(predictions_view(alike)).endswith(" One other lies within its interval.")
    apart = predictions(predicted(SMART, 1.5, 0.05), predicted(STAGE, 1.2))
    assert said(predictions_view(apart)).endswith("; none of it was run.")


def test_a_clear_setting_comes_before_a_higher_one_that_is_not():
    found = predictions(predicted(SMART, 1.2, 0.3), predicted(STAGE, 1.15, 0.05))
    assert said(predictions_view(found)) == (
        "Best: stage, predicted 1.15× as fast as all off (95 % interval 1.10–1.21), 20.3 ms a "
        "step; none of it was run. smart stage comes out higher, 1.20×, but its interval "
        "includes 1×."
    )


def test_where_none_is_clearly_faster_that_is_said():
    found = predictions(predicted(SMART, 1.05), predicted(INLINE, 0.8))
    assert said(predictions_view(found)) == (
        "No setting is predicted to be clearly faster than all off, which takes 23.4 ms a step. "
        "The nearest is smart stage, predicted 1.05× as fast as all off (95 % interval 0.95–1.17); "
        "none of it was run."
    )


def test_the_traced_setting_alone_is_no_choice():
    assert said(predictions_view(predictions())) == (
        "No other setting is predicted: of all off, the traced setting, nothing differs."
    )


def test_where_everything_is_withheld_the_reason_comes_first():
    lost = predictions(
        predicted=(),
        replay=Replay(measured_ms=41.2, simulated_ms=20.6, untraced_ms=41.2),
        withheld=withheld(NO_MATCH, Optimizations(), STAGE),
    )
    view = predictions_view(lost)
    assert said(view) == (
        "Nothing is predicted of 2 settings. The traced steps take 41.2 ms, simulated 20.6 ms: "
        "nothing is predicted from it."
    )
    assert (view.rows, view.withheld, view.assumptions) == ((), (), "")
    # the two times once
    assert plain(view.replay) == "They differ by too much."
    assert "<table" not in html_of(lost)
    assert plain(text(lost)).startswith("dlrm: Nothing is predicted of 2 settings. The traced")


def test_several_reasons_stand_below_the_answer():
    lost = predictions(
        predicted=(), withheld=withheld(NO_LOOKUP, FUSED) + withheld("it has no stage.", STAGE)
    )
    view = predictions_view(lost)
    assert said(view) == "Nothing is predicted of 2 settings, for the reasons below."
    assert [(each.words, each.settings) for each in view.withheld] == [
        ("The program builds no embedding lookup through Workbench.", "fused V1"),
        ("It has no stage.", "stage"),
    ]


def test_without_a_setting_there_is_nothing_to_say():
    view = predictions_view(predictions(predicted=()))
    assert said(view) == "There is no setting to predict."
    assert text(predictions(predicted=())).startswith("dlrm: There is no setting to predict.")


def test_whether_the_simulation_holds_is_said():
    assert plain(predictions_view(predictions()).replay) == (
        "Simulated, the traced step takes 24.3 ms; measured 23.4 ms (+3.8 %). Beyond 5 % intervals "
        "are wider by as much."
    )
    doubt = Doubt(node="dense", op="MatMul", ns=4e6, why=RUNS_ON)
    off = Replay(measured_ms=20.0, simulated_ms=24.0, untraced_ms=20.0, doubts=(doubt,))
    assert plain(predictions_view(predictions(replay=off)).replay) == (
        "Simulated, the traced step takes 24.0 ms; measured 20.0 ms (+20 %). Times that do not "
        "fit: dense (MatMul), 4 ms a step, ran on after what reads it had begun. Intervals are "
        "wider by as much, as that is beyond 5 %."
    )
    assert predictions_view(predictions(replay=None)).replay == (
        "Whether a simulation of the traced step takes as long as the step is not known."
    )


def test_a_row_has_the_setting_its_ratio_and_what_limits_it():
    plan = "widest in two chained stages, 1 thread"
    view = predictions_view(predictions(predicted(SMART, 1.25, limited_by="the cores", plan=plan)))
    first, traced = view.rows
    assert (first.label, first.ratio, first.interval) == ("Smart stage", "1.25×", "1.14–1.39")
    assert plain(f"{first.step}, {first.rate}") == "18.7 ms, 53.4"
    assert plain(f"{first.limited_by} {first.at_least}") == "the cores ≥ 16.8 ms"
    assert plain(first.plan) == plan and "1\u00a0thread" in first.plan
    assert first.clear and not first.traced
    assert (traced.label, traced.ratio, traced.interval) == ("All off", "measured", "")
    assert traced.traced and not traced.clear
    assert traced.low == traced.at == traced.high == view.one
    assert 0 <= view.one < first.low < first.at < first.high <= 1
    assert (view.one, "1×") in view.ticks
    assert view.plans and not predictions_view(predictions(predicted(INLINE, 0.8))).plans


def test_of_27_settings_the_best_8_and_each_toggle_alone_come_first():
    view = predictions_view(every_toggle())
    assert view.opens == "Show all 27" and len(view.rows) == 27
    shown = [row.label for row in view.rows if row.first]
    assert shown == [row.label for row in view.rows[:8]] + [
        "Fused V2",
        "Stage",
        "Fused V1",
        "Cost model executor",
        "All off",
        "Inline executor",
    ]
    page = html_of(every_toggle())
    assert page.count('<tr role="row" class="wbq-rest">') == 13
    assert "<summary>Show all 27</summary>" in page
    assert "<details" not in html_of(predictions(predicted(SMART, 1.2)))


def test_text_has_every_row():
    lines = plain(text(every_toggle())).splitlines()
    heads = next(n for n, line in enumerate(lines) if line.startswith("Setting"))
    assert lines[heads].split() == [
        "Setting",
        "ratio",
        "95",
        "%",
        "step",
        "steps/s",
        "limited",
        "by",
        "plan",
    ]
    assert len(lines[heads + 1 : lines.index("Steps/s against all off, the traced setting.")]) == 27
    assert lines[heads + 2].split()[:8] == [
        "Smart",
        "stage",
        "+",
        "fused",
        "V2",
        "1.49×",
        "1.36–1.66",
        "15.7",
    ]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"on": FUSED}, "fused ops take what a calibration of this machine says"),
        (
            {"on": INLINE},
            "between two ops an executor takes as long as on the machine of its benches",
        ),
        ({"on": STAGE, "cores": 4}, "other cores are as fast as the traced ones"),
        (
            {"on": STAGE, "inter_op_threads": 4},
            "ops take as long with any number of inter-op threads",
        ),
        (
            {"on": STAGE, "batch_ratio": 2.0},
            "all that follows from the input takes longer as the batch grows",
        ),
    ],
)
def test_what_is_assumed_is_said_where_it_is_used(changed, words):
    found = predictions(predicted(changed.pop("on"), 1.2, **changed))
    assert predictions_view(found).assumptions == f"Assumed: {words}."
    assert words in html_of(found) and words in text(found)


def test_nothing_is_assumed_for_a_stage_alone():
    assert predictions_view(predictions(predicted(STAGE, 1.2))).assumptions == ""


def test_batches_of_another_size_are_compared_by_their_samples():
    view = predictions_view(predictions(predicted(Optimizations(), 1.3, batch_ratio=2.0)))
    assert said(view).startswith(
        "Best: batch × 2, predicted 1.30× the samples/s of all off (95 % interval 1.18–1.44), 36.0 "
        "ms a step;"
    )
    assert view.caption == "Samples/s against all off, the traced setting"


def test_settings_share_the_reason_for_which_they_are_withheld():
    some = [dataclasses.replace(STAGE, fused_embeddings=v) for v in ("v1", "v2")]
    many = [dataclasses.replace(each.scenario.optimizations) for each in every_toggle().predicted]
    found = predictions(predicted(STAGE, 1.2), withheld=withheld(NO_LOOKUP, *some, FUSED))
    (reason,) = predictions_view(found).withheld
    assert reason.settings == "fused V1, stage + fused V1, stage + fused V2"
    page = html_of(found)
    assert "<dt>The program builds no embedding lookup through Workbench.</dt>" in page
    assert f"<dd>{reason.settings}</dd>" in page
    assert f"Withheld: {reason.settings}\n    The program builds no" in text(found)
    more = predictions(predicted(STAGE, 1.2), withheld=withheld(NO_LOOKUP, *many))
    assert predictions_view(more).withheld[0].settings.endswith(" and 19 more")


def test_the_page_needs_no_script_and_nothing_from_elsewhere():
    page = html_of(every_toggle())
    assert not re.search(r"<(script|link|img|iframe)|url\(|https?:", page)


def test_a_page_of_its_own_holds_the_same_and_its_title_is_text():
    found = predictions(predicted(STAGE, 1.2), title="<b>dlrm")
    page = outlets.predictions_page(found)
    assert page.startswith("<!DOCTYPE html>") and outlets.html_of(found) in page
    assert "<title>Workbench: predictions of &lt;b&gt;dlrm</title>" in page
    untitled = outlets.predictions_page(predictions(title=""))
    assert "<title>Workbench: predictions</title>" in untitled


def test_names_cannot_become_markup_or_steer_a_terminal():
    hostile = "<b>x\x1b[2J"
    found = predictions(
        predicted(STAGE, 1.2, plan=hostile, limited_by=hostile),
        title=hostile,
        withheld=withheld(hostile, FUSED),
    )
    page, words = html_of(found), text(found)
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "\x1b" not in page and "\x1b" not in words
