"""The view of a critical path: what it says, from traces solved by hand."""

from __future__ import annotations

import dataclasses
import itertools

import pandas as pd
import pytest

from tests.builders.critical_paths import (
    JOIN,
    KEEP,
    LOOKUP,
    NODES,
    POOL,
    READ,
    STEP,
    TRACKS,
    three_steps,
    waiting_step,
)
from tests.builders.embedding_lenses import stock_trace
from tests.builders.traces import MS, START_NS, make_trace
from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.path.walk import SEGMENT_KINDS
from workbench.errors import OptionError
from workbench.viz.critical_path.merging import merged
from workbench.viz.critical_path.slack import _note
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.critical_path.waterfall import _rest, short_name
from workbench.viz.style import colors

NBSP = "\u00a0"
WAIT_FOR_THREAD = colors.WAIT + SEGMENT_KINDS.index("wait for a thread")


def view_of(trace, **options):
    return critical_path_view(critical_path(trace), **options)


def words(view) -> str:
    return "".join(text for text, _ in view.sentence).replace(NBSP, " ")


def test_the_sentence_sums_to_the_step():
    view = view_of(three_steps())
    assert words(view) == (
        "A traced step takes 110 ms, the mean of 3: 91.0 ms are ops on the critical path, most of "
        "them Dense matmul (60.0 ms); 10.0 ms are the return of the step, 5.0 ms waits for a "
        "thread and 4.0 ms the call of the step."
    )
    assert [text for text, strong in view.sentence if strong] == [
        f"110{NBSP}ms",
        f"91.0{NBSP}ms are ops",
    ]


def test_the_sentence_says_what_passes_in_the_stage():
    assert words(view_of(waiting_step())).endswith(
        "Of a step, 84.0 ms (84 %) passes in the stage, which the step waits for."
    )
    used = dataclasses.replace(three_steps(), items=waiting_step().items)
    assert words(view_of(used)).endswith("the call of the step. It never passes through the stage.")


def test_the_sentence_says_that_a_few_long_steps_lift_the_mean():
    trace = three_steps()
    last = trace.runs["number"] == 3
    longer = trace.runs.assign(end_ns=trace.runs["end_ns"] + 100 * MS * last)
    lifted = "Half of the steps take at most 100 ms: a few long ones lift the mean."
    assert words(view_of(dataclasses.replace(trace, runs=longer))).endswith(lifted)
    assert lifted not in words(view_of(trace))


def test_the_step_nearest_to_the_median_is_shown_without_fillers():
    view = view_of(three_steps())
    assert view.step.heading == f"Step 1, 100{NBSP}ms"
    assert [(bar.name, bar.more, bar.family, bar.ns // MS) for bar in view.step.bars] == [
        ("call of the step", "", colors.WAIT, 4),
        # the Identity behind it belongs to it
        ("read", "", 0, 21),
        ("wait for a thread", "", colors.WAIT, 5),
        ("top/join", "", 3, 60),
        ("return of the step", "", colors.WAIT, 10),
    ]
    assert view.step.bars[2].title == "wait for a thread, the longest before top/join"


def test_each_bar_begins_where_the_one_above_ends_and_they_sum_to_the_step():
    view = view_of(three_steps(), step=3)
    assert view.step.heading == f"Step 3, 130{NBSP}ms"
    assert sum(bar.ns for bar in view.step.bars) == 130 * MS
    ends = [bar.left + bar.width for bar in view.step.bars]
    assert [bar.left for bar in view.step.bars[1:]] == pytest.approx(ends[:-1])
    assert view.step.bars[0].left == 0 and ends[-1] == pytest.approx(1)


def test_the_fastest_and_the_slowest_step_stand_beside_it():
    (slowest,) = view_of(three_steps()).others
    assert slowest.heading == f"Slowest step, 3, 130{NBSP}ms"
    assert sum(bar.ns for bar in slowest.bars) == 130 * MS
    (fastest,) = view_of(three_steps(), step=3).others
    assert fastest.heading == f"Fastest step, 1, 100{NBSP}ms"
    assert view_of(waiting_step()).others == ()


def test_a_step_that_the_trace_does_not_hold():
    with pytest.raises(OptionError, match="step is 9; the trace holds the steps 1 to 3"):
        view_of(three_steps(), step=9)


def test_bars_of_the_stage_say_so():
    bars = view_of(waiting_step()).step.bars
    assert [(bar.name, bar.detail) for bar in bars if bar.family == 0] == [("read", "in the stage")]
    assert sum(bar.ns for bar in bars) == 100 * MS


def test_shares_name_families_then_waits_and_sum_to_the_path():
    view = view_of(three_steps())
    assert view.parts_caption == "Share of the path, mean of 3 steps"
    assert [(part.name, part.time.replace(NBSP, " ")) for part in view.parts] == [
        ("Dense matmul", "60.0 ms"),
        ("Input, decode", "30.0 ms"),
        ("Control, other", "1.0 ms"),
        ("Return of the step", "10.0 ms"),
        ("Wait for a thread", "5.0 ms"),
        ("Call of the step", "4.0 ms"),
    ]
    assert sum(part.width for part in view.parts) == pytest.approx(1)


def test_slack_of_the_groups_that_may_slip():
    slack = view_of(three_steps()).slack
    assert [(bar.name, bar.slack, bar.width) for bar in slack.bars] == [
        ("Lookup, a", f"55.0{NBSP}ms", 1.0)
    ]
    assert slack.note == (
        "How long the tightest op of a group may slip before the step ends later. "
        "2 groups have none."
    )
    assert view_of(waiting_step()).slack.note == "No op may slip: 1 group has none."


def test_the_tables():
    view = view_of(three_steps())
    assert view.kinds.caption == "By kind, mean of 3 steps"
    assert view.kinds.rows[0] == ("op", f"91.0{NBSP}ms", f"83{NBSP}%")
    assert view_of(waiting_step()).kinds.rows[0][0] == "op, in the stage"
    assert view.scopes.rows[0] == ("top", f"60.0{NBSP}ms", f"55{NBSP}%")
    assert view.nodes_caption == "All 6 ops and waits on the path, mean of 3 steps"
    read = view.nodes[1]
    assert (read.name, read.kind, read.side, read.slack) == (
        "read", "Input, decode", "step", "none",
    )  # fmt: skip
    assert (read.source, read.source_title) == ("train.py:7 lines", "/home/me/train.py:7 lines")
    wait = next(row for row in view.nodes if row.kind == "wait for a thread")
    assert (wait.name, wait.family) == ("top/join", colors.WAIT)
    assert view.nodes[2].slack == "–"


def test_the_time_of_each_embedding_table_and_of_each_thread():
    view = view_of(stock_trace())
    assert view.features is not None
    assert view.features.heads == ("Table", "lookup", "gradient", "update", "a step", "share")
    assert view.features.rows == (
        ("table", f"50{NBSP}µs", f"10{NBSP}µs", f"20{NBSP}µs", f"80{NBSP}µs", f"80{NBSP}%"),
    )
    assert view.lanes.caption == "Where the time of each thread goes"
    assert view.lanes.heads[:2] == ("Thread", "busy")
    assert view.lanes.rows[0][1] == f"100{NBSP}%"
    assert view_of(three_steps()).features is None


def test_tables_that_hardly_count_are_one_row():
    path = critical_path(stock_trace())
    of_table = path.by_feature()
    tiny = of_table.assign(feature="tiny", share=0.0001)
    other = of_table.assign(feature="other", share=0.0002)
    rows = pd.concat([of_table, tiny, other], ignore_index=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(path), "by_feature", lambda _: rows)
        view = critical_path_view(path)
        patch.setattr(type(path), "by_feature", lambda _: rows.head(2))
        one = critical_path_view(path)
    assert view.features is not None and one.features is not None
    assert [row[0] for row in view.features.rows] == ["table", "2 other tables"]
    assert [row[0] for row in one.features.rows] == ["table", "1 other table"]


def one_step(ops: list[tuple[int, int]], whole: int = 100):
    """A step of `whole` ms whose ops (node, ms) follow each other from its begin."""
    events, at = [], START_NS
    for node, duration in ops:
        events.append((at, duration * MS, 0, node, POOL, 1))
        at += duration * MS
    chain = [(one, other, 0) for (one, _), (other, _) in itertools.pairwise(ops)]
    return make_trace(
        events,
        nodes=NODES,
        tracks=TRACKS,
        runs=[(STEP, 1, START_NS, START_NS + whole * MS)],
        edges=chain or [(KEEP, READ, 0)],
    )


def test_a_step_of_one_family():
    assert words(view_of(one_step([(READ, 100)]))) == (
        "A traced step takes 100 ms: 100 ms are ops on the critical path, all of them Input, "
        "decode."
    )


def test_waits_that_hardly_count_are_summed():
    assert words(view_of(one_step([(READ, 99)]))).endswith("; 1.0 ms are waits between them.")
    view = view_of(one_step([(READ, 40), (LOOKUP, 30), (JOIN, 29)]))
    assert "first of all Input, decode (40.0 ms); 1.0 ms are" in words(view)
    trace = one_step([(READ, 92)])
    later = trace.events.assign(start_ns=trace.events["start_ns"] + 1 * MS)
    view = view_of(dataclasses.replace(trace, events=later))
    assert words(view).endswith("; 7.0 ms are the return of the step and 1.0 ms the rest.")


def test_the_words_about_groups_without_slack():
    assert _note(0, 0) == "The step has no ops."
    assert _note(2, 0) == "No op may slip: 2 groups have none."
    assert _note(0, 1) == "How long the tightest op of a group may slip before the step ends later."
    assert _note(1, 20) == (
        "How long the tightest op of a group may slip before the step ends later; the 12 of 20 "
        "groups whose ops take longest. 1 group has none."
    )


def test_waits_in_a_bar_of_ops_are_named():
    (group,) = merged([60, 6, 30], [3, WAIT_FOR_THREAD, 3], most=1)
    assert group.kind == 3
    assert _rest(group, waits=False) == f"6{NBSP}ns waits"
    (group,) = merged([60, 6], [WAIT_FOR_THREAD, 3], most=1)
    assert _rest(group, waits=True) == f"6{NBSP}ns ops"
    (group,) = merged([60, 2], [3, WAIT_FOR_THREAD], most=1)
    assert _rest(group, waits=False) == ""


def test_short_names_say_what_an_op_is_of():
    names = {
        "read": "read",
        "dlrm/top_0/Relu": "top_0/Relu",
        "gradients/dlrm/top_0/MatMul_grad/MatMul_1": "top_0/MatMul_grad/MatMul_1",
        "dien/extraction/scan/while/body/_2/Sigmoid": "scan/Sigmoid",
    }
    assert {name: short_name(name) for name in names} == names
