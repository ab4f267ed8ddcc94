"""A comparison with stale lookups: nothing says that it trains the same, both curves are there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.comparisons import comparison, variant
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.measurement.equivalence import other_losses
from workbench.viz.comparison.answer import answer
from workbench.viz.comparison.loss_curves import loss_curves
from workbench.viz.comparison.receipt import receipt
from workbench.viz.comparison.view import compare_view
from workbench.viz.outlets import fragment_of, text_of

LABEL = "smart stage, 1 step stale"
EXACT, STALE = np.linspace(0.7, 0.5, 200), np.linspace(0.7, 0.6, 200)
CHECK = other_losses(LABEL, EXACT, STALE, 1)


def measured(ratio=1.4, low=1.3, high=1.5, verdict="faster"):
    values = (Ratio(label=LABEL, ratio=ratio, low=low, high=high, verdict=verdict),)
    return comparison(
        variants=(variant("off", 40.0, 0.4), variant(LABEL, 40.0 * ratio, 0.4)),
        ratios=values,
        equivalence=(CHECK,),
    )


def test_the_check_says_how_stale_and_never_passes():
    assert (CHECK.kind, CHECK.passed, CHECK.steps) == ("exact losses", False, 200)
    assert CHECK.detail == (
        "its lookups are 1 step stale, as was asked: this is another training, whose loss goes "
        "from 0.7 to 0.6, the baseline's from 0.7 to 0.5; at most 2.0e-01 apart"
    )
    same = other_losses(LABEL, EXACT, EXACT, 2)
    assert not same.passed and "2 steps stale" in same.detail
    assert not other_losses(LABEL, EXACT[:0], EXACT[:0], 2).passed


def test_the_receipt_claims_nothing_and_has_both_curves():
    found = receipt([CHECK])
    assert found.sentence == (
        "Smart stage, 1 step stale: it trains another way, as was asked; its losses stand beside "
        "the baseline's."
    )
    (row,) = found.exceptions
    assert (row.kind, row.result, row.harm) == (
        "Losses",
        "1 step stale, 200 steps compared",
        False,
    )
    (curves,) = found.curves
    assert [line.label for line in curves.lines] == ["Baseline", "Smart stage, 1 step stale"]
    assert curves.rows[0] == ("1", "0.7", "0.7") and curves.rows[-1] == ("200", "0.5", "0.6")
    assert (curves.low, curves.high, curves.steps) == ("0.5", "0.7", "200")
    assert all(len(line.points) == 100 for line in curves.lines)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for line in curves.lines for x, y in line.points)


def test_others_beside_it_keep_their_receipt():
    plain = comparison().equivalence
    found = receipt([*plain, CHECK])
    assert found.sentence.startswith("1 of 2 variants trains the same: bit-equal losses over 200")
    assert found.sentence.endswith("its losses stand beside the baseline's.")
    assert receipt(plain).curves == ()


def test_losses_that_are_no_numbers_are_left_out_of_a_curve():
    losses = STALE.copy()
    losses[100:] = np.nan
    curves = loss_curves(other_losses(LABEL, EXACT, losses, 1))
    assert curves is not None and len(curves.lines[1].points) == 50
    assert curves.rows[-1][2] == "nan"
    assert loss_curves(other_losses(LABEL, EXACT[:1], STALE[:1], 1)) is None
    assert loss_curves(other_losses(LABEL, EXACT * np.nan, STALE * np.nan, 1)) is None


def test_the_answer_says_how_stale_and_what_to_look_at():
    said = answer(measured())
    assert "".join(text for text, _ in said.sentence).endswith(
        "; it trains another way: 1 step stale."
    )
    assert said.next_step == (
        "Look at its losses beside the baseline's before you train with smart stage, 1 step stale; "
        "no variant that trains the same is clearly faster."
    )


def test_every_outlet_shows_it():
    view = compare_view(measured())
    assert view.rows[1].training == "1 step stale" and view.rows[1].differs
    text = text_of(measured())
    for part in ("1 step stale", "Losses of the first 200 steps", "0.550251"):
        assert part in text
    assert "train the same" not in text and "trains the same:" not in text
    page = fragment_of(measured())
    assert page.count("<polyline") == 2 and "Losses of the first 200 steps" in page


def test_it_goes_through_a_file(tmp_path):
    found = measured()
    found.save(tmp_path)
    assert load_comparison(tmp_path).equivalence == found.equivalence


@pytest.mark.parametrize("name", ["stale_lookups", "losses", "baseline_losses"])
def test_files_of_before_are_read(tmp_path, name):
    exact = comparison()
    exact.save(tmp_path)
    assert getattr(load_comparison(tmp_path).equivalence[0], name) == getattr(
        dataclasses.replace(exact.equivalence[0]), name
    )
