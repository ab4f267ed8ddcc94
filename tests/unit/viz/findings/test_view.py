"""What the list of findings says, in HTML and in text."""

from __future__ import annotations

import pandas as pd

from tests.builders.comparisons import comparison, variant
from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.analysis.findings.find import find
from workbench.experiments.comparison.findings import findings
from workbench.viz.findings.fill import fill_line
from workbench.viz.findings.view import compared_views, findings_view
from workbench.viz.notebook import bundle, text

# The path's last op is ready at 20, waits until 60 behind another, then 20 for nothing.
LATE = (
    ("first", "MatMul", 0, 0, 0, 20),
    ("other", "Mul", 0, 0, 20, 60),
    ("late", "MatMul", 0, 20, 80, 120),
)

BLOCK = """\
40 µs a step  The critical path waits behind ops that could run later
    Ops of the critical path are ready, but their thread runs others first: 40 µs a step. Longest:
    other (40 µs); all have slack. In no order can 2 threads do the ops of a step in less than
    50 µs.
    Mend: Start first what the longest path depends on (cost model). Toggle: cost_model_executor.
    Gives at most 40 µs a step.
    model.py:7 tower
"""


def late_trace():
    trace = step_trace(LATE, chain("first", "late"), step_us=120)
    trace.nodes["source"] = pd.array(["", "model.py:7 tower", ""], dtype="str")
    return trace


def plain(words: str) -> str:
    return words.replace("\u00a0", " ")


def test_a_cause_is_the_answer():
    view = findings_view(find(waiting_steps()))
    assert plain("".join(view.sentence)) == (
        "One thread of the stage waits for the input: that is 100 % of the wait of 40 µs a step."
    )
    assert plain(view.summary) == (
        "6 steps of 0.10 ms; in each, 40 µs of the critical path are wait. The input is the "
        "bottleneck: 6 of 6 takes find the buffer empty, 0 find it full; it holds 0.0 of 1 on "
        "average."
    )
    assert plain(view.rows[0].cause) == "explains 100 % of the wait"
    assert view.rest is None and view.nothing == ""


def test_without_a_cause_the_verdict_is_and_the_rest_is_not_explained():
    view = findings_view(find(late_trace()))
    assert view.sentence[0] == "The step is the bottleneck, not its input: "
    assert plain(view.summary) == (
        "2 steps of 0.12 ms; in each, 60 µs of the critical path are wait. No finding alone "
        "explains 80 % of the wait, so none is called its cause. Findings may share time, so their "
        "costs do not add up."
    )
    row = view.rows[0]
    assert (plain(row.cost), row.bar, row.cause) == ("40 µs", 1.0, "")
    assert row.toggle == "cost_model_executor" and plain(row.gain) == "at most 40 µs a step"
    assert row.names == ("other",) and row.sources == ("model.py:7 tower",)
    assert ("other", True) in row.evidence
    assert tuple(map(plain, view.rest or ())) == (
        "20 µs",
        "Not explained",
        "33 % of the wait; no finding says where it comes from.",
    )


def test_as_text_it_is_a_block_each():
    shown = plain(text(find(late_trace())))
    assert BLOCK in shown
    assert shown.endswith(
        "20 µs a step  Not explained\n    33 % of the wait; no finding says where it comes from."
    )


def test_nothing_found_is_said():
    ops = (("a", "MatMul", 0, 0, 0, 100),)
    found = find(step_trace(ops, [("a", "a")], step_us=100))
    assert "No open findings for this setting." in text(found)
    assert "No open findings for this setting." in bundle(found)[0]["text/html"]


def test_the_page_holds_all_of_it_and_no_script():
    shown = bundle(find(waiting_steps()))[0]["text/html"]
    name = '<code><span data-node="input/next">input/<wbr>next</span></code>'
    assert name in shown and "No toggle does this." in shown
    assert 'role="img" aria-label="Items in the buffer of stage, 0 to 1;' in shown
    assert "<script" not in shown


def test_names_cannot_become_markup_or_steer_a_terminal():
    ops = (LATE[0], ("<b>\x1b[2J", "Mul", 0, 0, 20, 60), LATE[2])
    found = find(step_trace(ops, chain("first", "late"), step_us=120))
    shown, words = bundle(found)[0]["text/html"], text(found)
    assert "<b>" not in shown and "&lt;b&gt;" in shown
    assert "\x1b" not in words and "\x1b" not in shown


def test_a_comparison_shows_what_is_gone_in_a_variant():
    variants = (
        variant("off", 40, 1, trace=waiting_steps()),
        variant("stage", 70, 1, trace=late_trace()),
    )
    compared = findings(comparison(variants=variants))
    first, second = compared_views(compared)
    assert (first.label, second.label) == ("All off", "Stage")
    assert first.gone == ()
    assert [(title, plain(cost)) for title, cost in second.gone] == [
        ("One thread of the stage waits for the input", "40 µs")
    ]
    words = plain(text(compared))
    assert words.startswith("All off\n\n") and "\n\nStage\n\n" in words
    assert "gone  One thread of the stage waits for the input (40 µs a step)" in words
    assert "Cost 40\u00a0µs a step in the first variant." in bundle(compared)[0]["text/html"]


def test_a_buffers_line_is_its_mean_in_each_window():
    changes = pd.DataFrame({"time_ns": [0, 100 * US], "count": [2, 0]})
    line = fill_line("s", changes, 200 * US, 2)
    # Full for the first half, then empty: from the top of 38 px to its foot.
    assert (
        line.top == 2 and line.line.startswith("M0 1.0V1.0H5") and line.line.endswith("V37.0H1000")
    )
    assert "V1.0H500 V37.0H505" in line.line
    assert line.area == line.line + "V38H0Z"


def test_a_buffer_of_unknown_capacity_is_as_high_as_it_was_full():
    changes = pd.DataFrame({"time_ns": [0], "count": [3]})
    assert fill_line("s", changes, 10, None).top == 3
    assert fill_line("s", changes.assign(count=0), 10, None).top == 1
