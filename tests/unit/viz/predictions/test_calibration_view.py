"""What a calibration says, in its picture, in HTML and in text."""

from __future__ import annotations

import math
import re

import pytest

from tests.builders.predictions import check
from workbench.core.what_if.calibration import Calibration
from workbench.viz.notebook import bundle, text
from workbench.viz.predictions.calibration_view import CalibrationView, calibration_view
from workbench.viz.predictions.scatter import SHAPES, scatter_of

MET = check("smart stage", 1.25, 1.2)
OUTLIER = check("stage", 1.4, 1.1)
UNCLEAR = check("fused V1", 1.05, 1.01, 0.03)
WRONG = check("inline executor", 1.1, 0.9)


def plain(words: str) -> str:
    return words.replace("\u00a0", " ")


def view_of(*checks, **more) -> CalibrationView:
    return calibration_view(Calibration(checks=checks, **more))


def said(view: CalibrationView) -> str:
    return plain("".join(words for words, _ in view.sentence))


def html_of(calibration: Calibration) -> str:
    shown = bundle(calibration)[0]["text/html"]
    return plain(re.sub(r"<style>.*?</style>", "", shown, flags=re.S))


def test_error_signs_and_picks_are_the_answer():
    view = view_of(MET, UNCLEAR, WRONG)
    assert said(view) == (
        "Of 3 settings the mean error is 10 %; the sign is right in 1 of 2 that are clear; the "
        "best was picked in 1 of 1 program."
    )
    assert plain(view.note) == (
        "Intervals of prediction and measurement meet in 2 of 3. Picked is a setting that measures "
        "within 2 % of the best one; to leave all as it was traced counts as one."
    )


def test_without_a_clear_measurement_there_is_no_sign():
    assert said(view_of(UNCLEAR)) == (
        "Of one setting the error is 4.0 %; no measured interval excludes 1×, so there is no sign "
        "to predict; the best was picked in 1 of 1 program."
    )


def test_where_nothing_was_predicted_only_the_reasons_are_left():
    lost = Calibration(checks=(), missing=(("dlrm", "fused V1", "it builds no lookup"),))
    view = calibration_view(lost)
    assert said(view) == "No setting was both predicted and measured."
    assert (view.scatter, view.rows, view.note, view.opens) == (None, (), "", "")
    assert [(each.words, each.settings) for each in view.missing] == [
        ("It builds no lookup.", "fused V1")
    ]
    page = html_of(lost)
    assert "<svg" not in page and "Measured, not predicted" in page
    assert text(lost).endswith("Withheld: fused V1\n    It builds no lookup.")


def test_rows_come_by_their_error():
    first, second = view_of(MET, WRONG).rows
    assert (first.label, first.error, first.sign, first.intervals) == (
        "Inline executor",
        "+22\u00a0%",
        "wrong",
        "apart",
    )
    assert first.wrong and not second.wrong
    assert (second.predicted, second.predicted_range) == ("1.25×", "1.12–1.38")
    assert (second.measured, second.measured_range) == ("1.20×", "1.18–1.22")
    assert (second.sign, second.intervals) == ("right", "meet")
    assert view_of(UNCLEAR).rows[0].sign == "no sign"


def test_the_largest_errors_are_shown_first_and_all_on_request():
    many = [check(f"setting {n}", 1 + n / 100, 1.0) for n in range(30)]
    view = view_of(*many)
    assert view.opens == "Show all 30" and sum(row.first for row in view.rows) == 12
    assert view.rows[0].label == "Setting 29"
    page = html_of(Calibration(checks=tuple(many)))
    assert page.count("wbq-rest") == 18 and "<summary>Show all 30</summary>" in page
    assert "<details" not in html_of(Calibration(checks=(MET,)))


def test_several_programs_have_a_row_and_a_mark_each():
    other = check("stage", 0.9, 0.8, program="wdl")
    view = view_of(MET, WRONG, other, missing=(("wdl", "fused V1", "no lookup"),))
    assert said(view).endswith("the best was picked in 2 of 2 programs.")
    assert view.programs is not None
    assert [tuple(map(plain, row)) for row in view.programs.rows] == [
        ("dlrm", "2", "13 %", "1 of 2", "smart stage 1.20×", "smart stage 1.20×", "yes"),
        ("wdl", "1", "12 %", "1 of 1", "as traced", "as traced", "yes"),
    ]
    assert view.scatter is not None
    assert view.scatter.legend == (("circle", "dlrm"), ("square", "wdl"))
    assert [point.shape for point in view.scatter.points] == ["circle", "circle", "square"]
    assert view.missing[0].settings == "wdl: fused V1"
    page = html_of(Calibration(checks=(MET, other)))
    assert "<td>wdl</td>" in page and "<caption>Each program</caption>" in page
    words = text(Calibration(checks=(MET, other)))
    assert "wdl: Stage" in words and "Each program" not in words and "mean error" in words


def test_a_program_whose_best_was_not_picked_says_so():
    view = view_of(MET, check("stage", 1.1, 1.5), check("stage", 1.2, 1.2, program="wdl"))
    assert view.programs is not None
    assert view.programs.rows[0][4:] == ("smart stage 1.20×", "stage 1.50×", "no")


def test_programs_beyond_the_marks_share_the_last():
    names = [f"model {n}" for n in range(9)]
    found = scatter_of([check("stage", 1.2, 1.2, program=name) for name in names], names)
    assert [point.shape for point in found.points] == [*SHAPES, SHAPES[-1], SHAPES[-1]]
    assert found.legend[-1] == (SHAPES[-1], "model 6, model 7, model 8")


def test_a_mark_says_what_it_is_and_outliers_have_their_name_beside_them():
    view = view_of(MET, OUTLIER)
    assert view.scatter is not None
    met, outlier = view.scatter.points
    assert met.title == (
        "dlrm: smart stage; predicted 1.25× (1.12–1.38), measured 1.20× (1.18–1.22)"
    )
    assert met.words is None
    assert outlier.words is not None and outlier.words.text == "stage"
    # below the diagonal, so to the right
    assert not outlier.words.ends and outlier.words.x > outlier.x > outlier.y
    page = html_of(Calibration(checks=(MET, OUTLIER)))
    assert f"<title>{met.title}</title>" in page
    assert re.search(r'<text class="wbq-name"[^>]*>stage</text>', page)


def test_a_name_without_room_is_left_to_the_table():
    crowd = [check(f"{n} stage", 1.4 + n / 1000, 1.1 + n / 1000) for n in range(8)]
    found = scatter_of(crowd, ("dlrm",))
    assert sum(point.words is not None for point in found.points) < 6


def test_a_long_name_is_cut():
    found = scatter_of([check("stage " * 20, 0.5, 1.4)], ("dlrm",))
    assert all(p.words is None or len(p.words.text) <= 44 for p in found.points)


@pytest.mark.parametrize("checks", [[MET, OUTLIER, WRONG], [check("stage", 9.0, 0.2)]])
def test_all_that_is_drawn_stands_in_the_plot_on_equal_axes(checks):
    found = scatter_of(checks, ("dlrm",))
    for point in found.points:
        assert 0 <= point.x_low <= point.x <= point.x_high <= 1
        assert 0 <= point.y_low <= point.y <= point.y_high <= 1
    assert (found.one, "1×") in found.ticks
    assert all(0 <= at <= 1 for at, _ in found.ticks)


def test_an_interval_without_an_end_is_not_known():
    endless = check("stage", 1.2, 1.1, measured_high=math.inf)
    assert view_of(endless).rows[0].measured_range == "–"
    (point,) = scatter_of([endless], ("dlrm",)).points
    assert point.y_high == 1.0


def test_names_cannot_become_markup_or_steer_a_terminal():
    hostile = "<b>x\x1b[2J"
    bad = Calibration(
        checks=(check(hostile, 1.4, 1.1, program=hostile), MET),
        missing=((hostile, hostile, hostile),),
    )
    page, words = html_of(bad), text(bad)
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "\x1b" not in page and "\x1b" not in words


def test_the_page_needs_no_script_and_nothing_from_elsewhere():
    page = html_of(Calibration(checks=(MET, OUTLIER)))
    assert not re.search(r"<(script|link|img|iframe)|url\(|https?:", page)
