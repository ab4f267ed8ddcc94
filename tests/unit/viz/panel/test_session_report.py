"""The report of a session: which run stands first, what is said of it, and what to do next."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest

from tests.builders.sessions import INLINE, OFF, PROGRAM, STAGE, WIDE, measured, with_trace
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.session.session import Session
from workbench.viz.panel.report import session_report_html


def words(page):
    """What a reader sees, in one line."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", shown)).split())


@pytest.fixture
def session():
    """A wide stage at 80 steps/s that trains differently, and a stage at 60."""
    made = Session(PROGRAM)
    made.add(measured([OFF, STAGE]), [OFF, STAGE])
    wide = measured([OFF, WIDE])
    check = Equivalence(
        label=wide.variants[1].label,
        kind="bit-equal losses",
        passed=False,
        steps=30,
        detail="differ from step 2 on",
    )
    made.add(dataclasses.replace(wide, equivalence=(check,)), [OFF, WIDE])
    return made


def test_a_run_that_trains_the_same_stands_before_a_faster_one_that_does_not(session):
    page = words(session_report_html(session))
    assert "My stage, 1 thread trains 1.50× as fast as all off" in page
    assert "Train with wb.staged(…)." in page
    assert "trains differently" not in page.split("Train with")[0]
    assert "is clearly faster" not in page


def test_where_no_other_is_faster_the_one_that_trains_differently_says_what_to_do(session):
    session.delete_run(2)
    page = words(session_report_html(session))
    assert "2.00× as fast as all off" in page and "but it trains differently" in page
    assert "no variant that trains the same is clearly faster" in page


def test_of_the_baseline_alone_nothing_is_held_against_it(session):
    alone = Session(PROGRAM)
    alone.add(with_trace(measured([OFF])), [OFF])
    page = words(session_report_html(alone))
    assert "Only the baseline has run, so there is nothing to hold it against." in page
    assert "no trace of both runs" not in page


def test_the_table_has_what_is_faster_then_the_baseline_then_the_rest(session):
    session.add(measured([OFF, INLINE]), [OFF, INLINE])
    page = session_report_html(session)
    table = page[page.index("<tbody") : page.index("</tbody")]
    names = ("My stage, 1 thread", "My stage, 2 threads, capacity 2", "All off", "Inline executor")
    places = [words(table).index(name) for name in names]
    assert places == sorted(places)
