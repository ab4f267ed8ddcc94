"""The view of a critical path: what it says, from traces solved by hand."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.critical_paths import three_steps, waiting_step
from tests.builders.traces import MS
from workbench.core.analysis.critical_path import critical_path
from workbench.errors import OptionError
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.style import colors

NBSP = "\u00a0"


def view_of(trace, **options):
    return critical_path_view(critical_path(trace), **options)


def words(view) -> str:
    return "".join(text for text, _ in view.sentence).replace(NBSP, " ")


def test_the_sentence_sums_to_the_step():
    view = view_of(three_steps())
    assert words(view) == (
        "A step takes 110 ms: 91.0 ms are ops on the critical path, most of them Dense matmul "
        "(60.0 ms); 10.0 ms are the return of the step, 5.0 ms waits for a thread and 4.0 ms "
        "the call of the step."
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


def test_the_step_nearest_to_the_median_is_shown_without_fillers():
    view = view_of(three_steps())
    assert view.step == f"Step 1, 100{NBSP}ms"
    assert [(bar.name, bar.more, bar.family, bar.ns // MS) for bar in view.bars] == [
        ("call of the step", "", colors.WAIT, 4),
        # the Identity behind it belongs to it
        ("read", "", 0, 21),
        ("wait for a thread", "", colors.WAIT, 5),
        ("top/join", "", 3, 60),
        ("return of the step", "", colors.WAIT, 10),
    ]
    assert view.bars[2].title == "wait for a thread, the longest before top/join"


def test_each_bar_begins_where_the_one_above_ends_and_they_sum_to_the_step():
    view = view_of(three_steps(), step=3)
    assert view.step == f"Step 3, 130{NBSP}ms"
    assert sum(bar.ns for bar in view.bars) == 130 * MS
    ends = [bar.left + bar.width for bar in view.bars]
    assert [bar.left for bar in view.bars[1:]] == pytest.approx(ends[:-1])
    assert view.bars[0].left == 0 and ends[-1] == pytest.approx(1)


def test_a_step_that_the_trace_does_not_hold():
    with pytest.raises(OptionError, match="step is 9; the trace holds the steps 1 to 3"):
        view_of(three_steps(), step=9)


def test_bars_of_the_stage_say_so():
    bars = view_of(waiting_step()).bars
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
