"""What measured ceilings say, in their list, in HTML and in text."""

from __future__ import annotations

import re

import pytest

from tests.builders.predictions import ceiling, ceilings
from workbench.core.what_if.ceilings import Ceilings
from workbench.viz.notebook import bundle, text
from workbench.viz.predictions.ceilings_view import ceilings_view

DENSE = ceiling("dense", 1.83, simulated=1.7)
LOOKUPS = ceiling("lookups", 1.31, 0.04)
INPUT = ceiling("input", 1.01, 0.03, simulated=1.0)
WHY = "the step has no work of the kind 'ids'"


def plain(words: str) -> str:
    return words.replace("\u00a0", " ")


def said(found: Ceilings) -> str:
    return plain("".join(words for words, _ in ceilings_view(found).sentence))


def test_the_kind_that_could_give_most_is_the_answer():
    assert said(ceilings(DENSE, LOOKUPS, INPUT)) == (
        "Without its dense part the step is 1.83× as fast (95 % interval 1.74–1.92; simulated "
        "1.70×): the most that one kind of work could give."
    )


def test_what_may_give_as_much_is_named():
    near = ceiling("lookups", 1.75)
    assert said(ceilings(DENSE, near, INPUT)).endswith(
        " As much may: embedding lookups, their gradients and updates, 1.75× without."
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((), "No kind of work could be left out."),
        (
            (INPUT, ceiling("ids", 0.99)),
            "No kind of work is shown to bound the step: no interval lies above 1×. The nearest is "
            "its input, 1.01× without (95 % interval 0.98–1.04).",
        ),
    ],
)
def test_where_nothing_is_clear_nothing_is_claimed(found, words: str):
    assert said(ceilings(*found)) == words


def test_what_one_batch_gives_is_said():
    (note, _) = ceilings_view(ceilings(DENSE)).notes
    assert note == (
        "Every step but the one as it is works on one batch again and again, while the input "
        "delivers new ones, unless it is left out; with all its work that is 1.25× as fast as on "
        "new ones (1.20–1.30)."
    )
    same = ceilings(DENSE, one_batch_ratio=1.0, one_batch_low=0.9, one_batch_high=1.1)
    assert ceilings_view(same).notes[0].endswith("new ones (0.90–1.10), no clear difference.")


@pytest.mark.parametrize(
    ("found", "note"),
    [
        ((DENSE, INPUT), "Simulated ratios are off by 4 % in the mean of 2."),
        ((INPUT,), "The simulated ratio is off by 1 %."),
    ],
)
def test_how_right_the_simulation_is(found, note: str):
    assert plain(ceilings_view(ceilings(*found)).notes[1]) == note


def test_why_nothing_is_simulated():
    found = ceilings(LOOKUPS, simulation_problem="the trace has a stage")
    assert ceilings_view(found).notes[1] == "Nothing is simulated. The trace has a stage."
    assert "Simulated" not in bundle(ceilings(LOOKUPS))[0]["text/html"]


def test_rows_begin_with_the_step_as_it_is():
    view = ceilings_view(ceilings(DENSE, INPUT))
    assert [(row.label, row.ratio, row.interval, row.ops) for row in view.rows] == [
        ("As it is", "0.80×", "0.77–0.83", ""),
        ("One batch", "1.00×", "", ""),
        ("No dense", "1.83×", "1.74–1.92", "120"),
        ("No input", "1.01×", "0.98–1.04", "120"),
    ]
    assert [row.clear for row in view.rows] == [True, False, True, False]


def test_text_and_html_show_the_same():
    found = ceilings(DENSE, INPUT, withheld=(("ids", WHY),))
    shown = re.sub(r"<style>.*?</style>", "", bundle(found)[0]["text/html"], flags=re.S)
    for outlet in (text(found), plain(shown).replace("\u2060", "")):
        for words in ("1.74–1.92", "1.70×", "91.5", "120", "Withheld", "no ids"):
            assert words in outlet


def test_table_and_names():
    found = ceilings(DENSE, INPUT, withheld=(("ids", WHY),))
    assert list(found.df.index) == ["as it is", "one batch", "no dense", "no input", "no ids"]
    assert found.df.loc["no dense", "simulated"] == pytest.approx(1.7)
    assert found.df.loc["no ids", "withheld"] == WHY
    assert found.most is DENSE and found.of("input") is INPUT and found.of("ids") is None
    assert DENSE.error == pytest.approx(1.7 / 1.83 - 1) and LOOKUPS.error is None
    assert repr(found) == "Ceilings(2 kinds of work, 1 withheld)"
