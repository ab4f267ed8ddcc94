"""What the result of a search says, in HTML and in text."""

from __future__ import annotations

import json
import re

import workbench as wb
from tests.builders.predictions import SMART, SMART_FUSED
from tests.builders.searches import OFF, measured, raced, search
from workbench.experiments.program.as_code import compare_code
from workbench.experiments.search.best import NotRaced
from workbench.viz.documents import document
from workbench.viz.notebook import bundle, text
from workbench.viz.search.view import SearchView, search_view


def plain(words: str) -> str:
    return words.replace("\u00a0", " ").replace("\u2060", "")


def said(view: SearchView) -> str:
    return plain("".join(words for words, _ in view.sentence))


def html_of(found) -> str:
    return plain(re.sub(r"<style>.*?</style>", "", bundle(found)[0]["text/html"], flags=re.S))


def test_the_best_setting_is_the_answer_and_what_is_simpler_and_nearly_as_good():
    view = search_view(search())
    assert said(view) == (
        "Best: smart stage + fused V1, 1.31× as fast as all off (95 % interval 1.28–1.34). Smart "
        "stage is simpler and gives 1.30× (95 % interval 1.27–1.33)."
    )
    assert [words for words, strong in view.sentence if strong] == ["smart stage + fused V1, 1.31×"]
    assert view.receipt.startswith("Smart stage + fused V1 trains the same")


def test_time_memory_and_how_many_were_measured_are_said():
    view = search_view(search())
    assert plain(view.spent) == (
        "5 of 9 settings measured in 31 rounds; 96 s of a budget of 120 s; 3.1 GB of 8.0 GB of "
        "memory at most."
    )
    free = search_view(search(memory_limit_bytes=None))
    assert "3.1 GB of memory at most" in plain(free.spent)


def test_every_row_says_what_became_of_it():
    rows = search_view(search()).rows
    assert [row.label for row in rows] == [
        "Smart stage + fused V1", "Smart stage", "Fused V1", "Inline executor", "Stage",
    ]  # fmt: skip
    assert [row.best for row in rows] == [True] + [False] * 4
    assert rows[0].outcome == "Best" and rows[0].clear
    assert plain(rows[2].outcome) == "Slower: 0.86× of smart stage; out after 48.2 s"
    assert rows[4].outcome == "Still in the race when the time was up"
    assert (rows[4].interval, rows[4].known, rows[4].predicted) == ("too few rounds", False, "")
    assert 0 <= rows[3].low <= rows[3].at <= rows[3].high < rows[0].low <= 1


def test_where_nothing_is_clearly_faster_that_is_said():
    near = raced(SMART, 1.02, 0.05)
    assert search_view(search(near)).rows[0].outcome == "Highest ratio, not clearly faster"
    assert said(search_view(search(near))) == (
        "No setting is clearly faster than all off. The nearest is smart stage, 1.02× (95 % "
        "interval 0.97–1.07)."
    )
    best = raced(OFF, 1.0, 0.0, predicted=None)
    found = search(best, raced(SMART, 0.97), comparison=measured(SMART, 0.97))
    view = search_view(found)
    assert said(view) == (
        "No setting is faster than all off. The nearest is smart stage, 0.97× (95 % interval "
        "0.94–1.00)."
    )
    assert (
        view.rows[0].ratio == "baseline" and view.rows[0].outcome == "Best" and view.receipt == ""
    )
    assert plain(view.spent).startswith("1 of 5 settings measured")


def test_wide_intervals_of_few_rounds_are_cut_at_the_axis():
    wide = raced(SMART, 1.5, low=0.3, high=7.9)
    first, second = search_view(search(wide, raced(SMART_FUSED, 1.2))).rows
    assert (first.low, first.high, first.low_cut, first.high_cut) == (0.0, 1.0, True, True)
    assert not second.low_cut and not second.high_cut
    assert 0.4 < first.at < 1 and first.interval == "0.30–7.90"


def test_no_simpler_one_is_named_where_none_is_near():
    found = search(raced(SMART_FUSED, 1.31), raced(SMART, 1.2))
    assert "simpler" not in said(search_view(found))


def test_what_was_not_measured_has_its_reason_once():
    view = search_view(search())
    assert [reason.words for reason in view.not_measured] == [
        "The time was up before it was its turn.",
        "Expected to give 0.80× at most; smart stage + fused V1 gives 1.28× at least.",
    ]
    shown = html_of(search())
    assert shown.count("The time was up before it was its turn.") == 1


def test_html_and_text_have_the_same_words():
    found = search(notes=("Nothing is predicted: too short.",))
    view, shown, words = search_view(found), html_of(found), plain(text(found))
    assert "<script" not in shown and "http" not in shown
    for row in view.rows:
        assert f">{row.label}</th>" in shown and row.label in words
    for part in (view.notes[0], "wb.compare(", "config = tf.compat.v1.ConfigProto()"):
        assert part in shown and part in words
    assert words.splitlines()[0].startswith("dlrm: Best: smart stage + fused V1, 1.31×")
    assert "Measure it again:\n    import workbench as wb" in words
    assert "Not measured: " in words


def test_a_hostile_name_stays_text():
    shown = html_of(search(program="<script>alert(1)</script>\n\x1b[2J"))
    assert "<script>" not in shown and "\x1b" not in shown


def test_the_table_of_all_settings():
    frame = search().df
    assert frame.index.name == "setting" and len(frame) == 9
    assert frame.loc["smart stage + fused V1", "ratio"] == 1.31
    assert frame.loc["cost model executor", "reason"] == "the time was up before it was its turn"
    assert frame["measured"].sum() == 5
    assert repr(search()) == ("Best('smart stage + fused V1', 1.31×, 4 runners-up, 4 not measured)")
    assert str(search()) == text(search())


def test_choices_are_named_in_the_answer_the_page_and_the_json():
    layout = wb.Toggle("layout", ["rows", "columns"], training="same")
    off = wb.Optimizations(chosen=(layout.at("rows"),))
    best = wb.Optimizations(
        chosen=(layout.at("columns"), wb.toggles.GRAPPLER.at("off")), fused_embeddings="v2"
    )
    label = "fused V2 + Grappler off + layout columns"
    found = search(
        raced(best, 1.4),
        baseline=off,
        code=compare_code([best], off),
        not_measured=(
            NotRaced(
                optimizations=wb.Optimizations(chosen=(wb.toggles.ONEDNN.at("off"),)),
                reason="too little time was left",
            ),
        ),
    )
    view = search_view(found)
    assert said(view).startswith(f"Best: {label}, 1.40× as fast as all off")
    assert "Not measured: oneDNN off" in plain(view.describe())
    html = html_of(found)
    assert "layout columns" in html and "wb.toggles.GRAPPLER.at(" in html
    saved = json.loads(json.dumps(document(found)))
    assert (saved["best"]["label"], saved["not_measured"][0]["label"]) == (label, "oneDNN off")
    assert label in saved["answer"]
