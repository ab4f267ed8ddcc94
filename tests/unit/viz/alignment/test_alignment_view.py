"""An alignment's view: the answer in a sentence, the bars, both runs, the nodes."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.builders.alignments import staged, unstaged
from tests.builders.traces import MS, staged_trace, timed_trace, unstaged_trace
from workbench.core.analysis.alignment import align
from workbench.core.trace.meta import UntracedSteps
from workbench.viz import notebook
from workbench.viz.alignment.view import alignment_view
from workbench.viz.outlets import html_of, text_of
from workbench.viz.style import format

NBSP = "\u00a0"


def sentence(alignment):
    return "".join(text for text, _ in alignment_view(alignment).sentence).replace(NBSP, " ")


def test_an_alignment_as_text():
    alignment = align(unstaged(title="dlrm"), staged(title="dlrm"), labels=("All off", "Stage"))
    assert text_of(alignment).replace(NBSP, " ") == (
        "A step of Stage takes 6.0 ms, 4.0 ms less than one of All off with 10.0 ms (95 % interval "
        "of the difference −4.0 ms to −4.0 ms, of traced steps). The largest part is Input, "
        "decode, moved to the stage, 1 node: −4.0 ms.\n"
        "Nodes: 1 matched, 1 moved to the stage.\n"
        "\n"
        "                                                All off   Stage  difference\n"
        "Input, decode       moved to the stage, 1 node   4.0 ms    0 ms     −4.0 ms\n"
        "Dense matmul        1 node                       5.0 ms  5.0 ms        0 ms\n"
        "return of the step                               1.0 ms  1.0 ms        0 ms\n"
        "Step time                                       10.0 ms  6.0 ms     −4.0 ms\n"
        "Time in a step that is on the critical path: it sums to the step time. Ops that ran "
        "beside the path are not in it.\n"
        "\n"
        "Op time of nodes in a step, wherever they ran; of a stage, in one of its runs:\n"
        "Node  op            became              All off   Stage  difference  on the path\n"
        "read  ReaderReadV2  moved to the stage   4.0 ms  4.0 ms        0 ms      −4.0 ms\n"
        "\n"
        "The two traces:\n"
        "                         All off             Stage\n"
        "Step, mean        10.0 ms ± 0 ms     6.0 ms ± 0 ms\n"
        "Steps traced                   2                 3\n"
        "Captured (UTC)  2023-11-14 22:13  2023-11-14 22:13\n"
        "Title                       dlrm              dlrm\n"
        "Cores                          2                 2\n"
        "TensorFlow                2.21.0            2.21.0\n"
        "Tracer                  executor          executor"
    )


def test_bars_start_at_zero_and_the_largest_fills_its_side():
    view = alignment_view(align(unstaged(), staged()))
    assert view.zero == 1
    assert [(bar.at, bar.width, bar.kind) for bar in view.bars] == [
        (0, 1, "0"),
        (1, 0, "3"),
        (1, 0, "wait"),
        (0, 1, "sum"),
    ]


def test_bars_on_both_sides():
    a, b = (
        timed_trace([("x", "MatMul", x), ("y", "Gather", y)], title=title)
        for title, x, y in (("p", 4, 1), ("q", 1, 2))
    )
    view = alignment_view(align(a, b))
    first, second, _, total = view.bars
    # −3 ms, +1 ms, −2 ms on an axis of 4 ms
    assert (view.zero, first.at, first.width) == (0.75, 0, 0.75)
    assert (second.at, second.width) == (0.75, 0.25)
    assert (total.at, total.width) == (0.25, 0.5)


def test_what_is_not_clear_is_not_claimed():
    a = timed_trace([[("x", "MatMul", ms)] for ms in (1, 9, 1, 9)], steps=4, title="p")
    b = timed_trace([("x", "MatMul", 6)], steps=4, title="q")
    assert re.fullmatch(
        r"No clear difference: a step takes 5\.1 ms in p and 6\.1 ms in q \(95 % interval of the "
        r"difference −\d\.\d ms to \+\d\.\d ms, of traced steps\)\. The largest part is Dense "
        r"matmul, 1 node: \+1\.0 ms\.",
        sentence(align(a, b)),
    )


def test_a_single_step_has_no_interval():
    a, b = (timed_trace([("x", "MatMul", ms)], steps=1, title=t) for ms, t in ((1, "p"), (2, "q")))
    assert sentence(align(a, b)) == (
        "A step of q takes 2.1 ms, 1.0 ms more than one of p with 1.1 ms (a single traced step of "
        "one, so without an interval). The largest part is Dense matmul, 1 node: +1.0 ms."
    )


def test_a_trace_beside_itself():
    assert sentence(align(unstaged(), unstaged())) == (
        "No difference: a step takes 10.0 ms in both."
    )


def test_without_edges_the_caption_says_op_time():
    view = alignment_view(align(unstaged_trace(), staged_trace()))
    assert (
        view.caption == "Op time in a step, and what it leaves or exceeds: together the step time."
    )
    assert "no op, less what ran at the same time" in [bar.label for bar in view.bars]
    assert "on the path" not in view.nodes.heads


def test_many_parts_end_in_everything_else():
    ops = ["ReaderReadV2", "StringToHash", "Gather", "MatMul", "ReluGrad", "Assign", "Slice"]
    a = [(f"a/{op}", op, 9 - i) for i, op in enumerate([*ops, "Relu"])]
    b = [(f"b/{op}", op, 9) for op in [*ops, "Relu"]]
    alignment = align(timed_trace(a), timed_trace(b))
    bars = alignment_view(alignment).bars
    assert len(alignment.waterfall) == 17
    assert [bar.label for bar in bars[-2:]] == ["everything else (5)", "Step time"]
    assert bars[-1].difference == f"+28.0{NBSP}ms"
    assert len(bars) == 14


def test_untraced_steps_stand_beside_the_traced_ones():
    untraced = UntracedSteps(steps=9, step_ns=8 * MS)
    view = alignment_view(align(unstaged(untraced=untraced), staged()))
    assert ("Step without a tracer, mean", f"8.0{NBSP}ms", "–") in view.runs.rows


def test_nodes_name_the_lines_that_made_them():
    a = unstaged()
    a = dataclasses.replace(a, nodes=a.nodes.assign(source=["/me/train.py:7 build", ""]))
    view = alignment_view(align(a, staged()))
    assert view.nodes.heads[-1] == "source"
    assert [row[-1] for row in view.nodes.rows] == ["train.py:7 build"]


def test_a_notebook_shows_it():
    alignment = align(unstaged(), staged())
    data, _ = notebook.bundle(alignment)
    assert data == {"text/plain": text_of(alignment), "text/html": html_of(alignment)}


def test_html_holds_names_as_text():
    name = "<script>alert(1)</script>"
    a, b = (timed_trace([(name, "MatMul", ms)], title=f"{name}{ms}") for ms in (1, 2))
    page = html_of(align(a, b))
    assert "<script" not in page and "&lt;script&gt;" in page
    assert page.count("<table") == 3 and "<strong>1.0\u00a0ms more</strong>" in page


@pytest.mark.parametrize(
    ("ns", "words"),
    [(0, "0 ms"), (0.4, "0 ms"), (3_800_000, "+3.8 ms"), (-120_000, "−0.12 ms"), (None, "–")],
)
def test_a_difference_has_a_sign(ns, words):
    assert format.difference(ns) == words.replace(" ", NBSP)
