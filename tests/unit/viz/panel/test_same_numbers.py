"""Each number that is the same fact is the same number, in whichever tab it stands."""

from __future__ import annotations

import html
import re

import pytest

from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import OFF, STAGE, measured
from workbench.viz.before_after.html import before_after_pane
from workbench.viz.panel.page import panel_page
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.settings.known_settings import said_of
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.tabs.contents import (
    BOUNDARY,
    FINDINGS,
    LENS,
    MEMORY,
    PATH,
    TABS,
    THROUGHPUT,
    TIMELINE,
    TWO_RUNS,
    WHAT_IF,
    Contents,
)
from workbench.viz.panel.tabs.runs import runs_view

_TIME = r"\d+(?:\.\d+)?\s(?:ns|µs|ms|s)"


@pytest.fixture
def session(monkeypatch):
    """Two of three runs have a trace whose steps take less than the measured ones."""
    return panel_session(monkeypatch, traced=2)


def words(content):
    """What a tab says, as one line."""
    if content.timeline is not None:
        return "".join(text for text, _ in content.timeline.sentence)
    drawn = content.html if content.pair is None else before_after_pane(content.pair)
    markup = re.sub(r"<[^>]*>", " ", drawn)
    return re.sub(r"\s+", " ", html.unescape(markup).replace("\u2060", ""))


def one(pattern, text):
    """The only thing that a text says in this way."""
    found = set(re.findall(pattern, text))
    assert len(found) == 1, (pattern, found, text[:300])
    return found.pop().replace("\u00a0", " ")


@pytest.fixture
def tabs(session):
    """The words of every tab of the second run, and the line above each."""
    off, stage, _ = session.runs
    contents = Contents(session)
    return {key: (contents.lead(stage, key), words(contents.of(stage, off, key))) for key in TABS}


def test_every_tab_of_a_run_begins_with_the_same_step(tabs):
    leads = {key: lead for key, (lead, _) in tabs.items()}
    of_all_runs = {key for key, lead in leads.items() if not lead}
    assert of_all_runs == {THROUGHPUT, WHAT_IF}
    assert len(set(leads.values()) - {""}) == 1
    assert leads[TIMELINE].replace("\u00a0", " ") == (
        "Step: 16.7 ms in the median, 60.0 steps/s, measured without a tracer. "
        "Traced: 20.6 ms in the mean, 20.6 ms in the median."
    )
    assert {PATH, FINDINGS, BOUNDARY, LENS, MEMORY, TWO_RUNS} <= leads.keys() - of_all_runs


def test_the_measured_step_is_one_number(session, tabs):
    lead, timeline = tabs[TIMELINE]
    measured = one(rf"Step: ({_TIME}) in the median", lead)
    assert one(rf"traced, ({_TIME}) measured", timeline) == measured
    row = runs_view(session, session.runs[1], session.runs[0]).rows[1].row
    assert row.step_time.replace("\u00a0", " ") == measured
    assert row.rate == one(r"([\d.]+) steps/s, measured without", lead)


def test_the_traced_step_is_one_number(tabs):
    lead, timeline = tabs[TIMELINE]
    mean = one(rf"Traced: ({_TIME}) in the mean", lead)
    assert one(rf"A step takes ({_TIME}) traced", timeline) == one(
        rf"mean, ({_TIME}) in the median", lead
    )
    assert one(rf"A traced step takes ({_TIME})", tabs[PATH][1]) == mean
    assert one(rf"steps of ({_TIME}); in each", tabs[FINDINGS][1]) == mean
    assert mean in tabs[TWO_RUNS][1].replace("\u00a0", " ")


def test_predictions_are_in_the_time_that_was_measured(session, tabs):
    off = session.runs[0]
    assert (off.measured.steps_per_s, off.measured.step_ms_median) == (40.0, 25.0)
    # The steps beside the trace took 20.6 ms.
    predictions = session.predictions
    assert predictions.replay.untraced_ms == pytest.approx(20.6)
    traced = predictions.of("off")
    assert traced.step_ms == pytest.approx(25.0)
    for found in (predictions, session.ceilings):
        as_it_is = next(each for each in found.predicted if each.scenario == found.traced)
        assert as_it_is.step_ms == pytest.approx(25.0)
    assert session.predict(OFF).step_ms == pytest.approx(25.0)
    said = tabs[WHAT_IF][1].replace("\u00a0", " ")
    assert re.search(r"All off measured .*?25\.0 ms .*?40\.0", said), said[:400]
    stage = predictions.of("stage")
    assert stage.ratio == pytest.approx(25.0 / stage.step_ms)


def test_a_rate_and_a_ratio_of_the_table_never_contradict(session):
    """The machine was three times as fast when the baseline ran again."""
    again = measured([OFF, STAGE])
    faster = [
        type(each)(
            **{
                **{f: getattr(each, f) for f in each.__dataclass_fields__},
                "steps_per_s": 3 * each.steps_per_s,
                "low": 3 * each.low,
                "high": 3 * each.high,
                "block_steps_per_s": tuple(3 * rate for rate in each.block_steps_per_s),
            }
        )
        for each in again.variants
    ]
    (run,) = session.add(type(again)(**{**vars(again), "variants": tuple(faster)}), [OFF, STAGE])
    rows = {row.number: row for row in runs_view(session, run, session.runs[0]).rows}
    assert rows[run.number].row.rate == "180.0"
    # the same ratio, so the same bar, and what the ratio is to
    assert rows[run.number].row.ratio == rows[2].row.ratio == "1.50×"
    assert rows[run.number].row.bar == pytest.approx(rows[2].row.bar)
    assert rows[run.number].beside == "baseline then: 120.0"
    assert rows[2].beside == ""
    view = runs_view(session, run, session.runs[0])
    assert rows[1].row.bar == pytest.approx(view.one)


def test_the_column_of_toggles_says_what_the_table_says(session):
    groups = groups_of(session.program)
    for run in session.runs:
        row = runs_view(session, run, session.runs[0]).rows[run.number - 1].row
        said = said_of(session, setting_of(run.optimizations), groups)
        assert (said["rate"], said["half"]) == (row.rate, row.half)
        expected = "the baseline" if run.is_baseline else f"{row.ratio} all off"
        assert said["beside"] == expected


def test_no_number_stands_for_a_difference_that_may_be_none(session):
    (run,) = session.add(measured([OFF, STAGE], half=0.9), [OFF, STAGE])
    said = said_of(session, setting_of(STAGE), groups_of(session.program))
    assert said["beside"].startswith("no clear difference to all off (0.61–3.69)")
    row = runs_view(session, run, session.runs[0]).rows[-1].row
    # half of the interval would say that the rate may be below 0
    assert row.half.startswith("(") and "±" not in row.half


def test_a_page_without_a_kernel_says_the_same(session, tabs):
    off, stage, _ = session.runs
    page = panel_page(session, Contents(session), {}, {}, (), [stage], off, 100_000)
    for key in (PATH, FINDINGS, LENS, MEMORY):
        assert page.contents[f"2/{key}"]["lead"] == tabs[key][0]
    kept = page.contents[f"2/{TIMELINE}"]
    said = "".join(text for text, _ in kept["timeline"]["sentence"])
    assert said == tabs[TIMELINE][1]
    assert kept["lead"] == tabs[TIMELINE][0]
