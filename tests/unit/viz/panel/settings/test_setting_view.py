"""The column of toggles: predicted and measured gains, and what is not known, in words."""

from __future__ import annotations

import pytest

import workbench as wb
from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import OFF, PROGRAM, SMART, STAGE, measured, with_trace
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.settings.setting import PanelSetting, setting_of
from workbench.viz.panel.settings.setting_view import setting_view


@pytest.fixture
def session(monkeypatch):
    return panel_session(monkeypatch)


def seen(session, setting):
    return setting_view(session, setting, groups_of(PROGRAM), "program")


def test_before_any_run_it_says_what_to_do():
    said = seen(Session(PROGRAM), PanelSetting())
    assert (said.source, said.rate, said.ran) == ("", "", False)
    assert said.beside.startswith("Nothing has run. Run measures this setting")


def test_what_was_measured_comes_before_what_is_predicted(session):
    said = seen(session, setting_of(STAGE))
    assert (said.source, said.rate, said.half) == ("measured", "60.0", "± 1.2")
    assert said.beside == "1.50× all off"
    assert said.ran
    chips = said.chips["stage"]
    assert [chip.kind for chip in chips] == ["predicted", "measured"]
    assert chips[1].text == "measured +50\u00a0%"


def test_a_prediction_has_its_range_and_rests_on_the_measured_baseline(session):
    said = seen(session, setting_of(SMART))
    found = session.predict(SMART)
    assert said.source == "predicted"
    assert float(said.rate) == pytest.approx(40 * found.ratio, abs=0.06)
    assert said.half.startswith("(")
    assert said.half.endswith(")")


def test_a_toggle_that_is_off_shows_what_its_best_option_would_give(session):
    chips = seen(session, PanelSetting()).chips
    assert chips["stage"][0].kind == "predicted"
    assert chips["stage"][0].text.split()[0] in ("Mine", "SmartStage")
    # Nothing is predicted of lookups that the program has not.
    assert chips["fusion"] == ()


def test_what_is_predicted_to_be_faster_and_was_not_run_is_offered(session):
    offered = seen(session, PanelSetting()).untried
    # The program's own stage has run.
    assert [(each.group, each.value, each.label) for each in offered] == [
        ("stage", "smart", "Stage: SmartStage")
    ]
    assert offered[0].gain.startswith("+")
    # Once it has run, it is offered no more; nor is anything before a prediction.
    found = measured([OFF, SMART])
    session.add(with_trace(found), [OFF, SMART])
    assert seen(session, PanelSetting()).untried == ()
    assert seen(Session(PROGRAM), PanelSetting()).untried == ()


def test_no_percentage_of_a_difference_that_may_be_none(session):
    found = measured([OFF, STAGE], half=0.6)
    session.add(with_trace(found), [OFF, STAGE])
    chip = seen(session, setting_of(STAGE)).chips["stage"][1]
    assert chip.text == "no clear difference"


def test_what_is_withheld_says_why(session):
    said = seen(session, PanelSetting(intra_op_threads=3))
    assert said.rate == ""
    words = "Not predicted: what ops take with another number of intra-op threads"
    assert said.beside.startswith(words)
    assert said.chips["intra_op_threads"][0].text == "not predicted"


def test_the_code_is_of_the_setting(session):
    assert "wb.SmartStageOptions()" in seen(session, setting_of(SMART)).code


def chosen(*choices, **fields):
    return PanelSetting(chosen=choices, **fields)


class TestChoices:
    OFF = wb.toggles.GRAPPLER.at("off")
    KEY = "chosen.grappler"

    def test_what_none_predicts_says_so_and_why(self, session):
        said = seen(session, chosen(self.OFF))
        words = "Not predicted: what Grappler off gives is measured, and no model predicts it."
        assert (said.name, said.rate, said.beside) == ("Grappler off", "", words)
        texts = [(chip.text, chip.title) for chip in said.chips[self.KEY]]
        assert texts[0] == ("not predicted", words) and texts[1][0] == "not run"

    def test_what_was_measured_stands_beside_the_toggle_on_and_off(self, session):
        setting = wb.Optimizations(chosen=(self.OFF,))
        session.add(measured([OFF, setting]), [OFF, setting])
        said = seen(session, chosen(self.OFF))
        assert (said.source, said.rate, said.ran) == ("measured", "50.0", True)
        assert said.chips[self.KEY][1].text == "measured +25\u00a0%"
        assert said.name != "All off" and "wb.toggles.GRAPPLER" in said.code
        (chip,) = seen(session, PanelSetting()).chips[self.KEY]
        assert (chip.kind, chip.text) == ("measured", "Off: measured +25\u00a0%")

    def test_what_excludes_each_other_is_greyed_on_both_sides(self, session):
        on = wb.toggles.CALLER_THREAD.at("on")
        excluded = seen(session, chosen(on)).excluded
        assert {*excluded} == {"executor", "inter_op_threads"}
        assert {*excluded["executor"]} == {"inline", "cost_model"}
        assert excluded["executor"]["inline"].startswith("Inline, Cost model: caller thread")
        assert excluded["inter_op_threads"]["number"] == (
            "Caller thread on and inter-op threads exclude each other: the calling thread is the "
            "only one."
        )
        other_side = seen(session, PanelSetting(executor="inline")).excluded
        assert {*other_side} == {"chosen.caller_thread"}
        assert {*other_side["chosen.caller_thread"]} == {"on"}
        assert seen(session, PanelSetting()).excluded == {}

    def test_a_setting_that_cannot_be_is_one_sentence(self, session):
        setting = chosen(wb.toggles.CALLER_THREAD.at("on"), executor="inline")
        said = seen(session, setting)
        assert said.beside.startswith("The program cannot have caller thread on and an executor")
        assert said.excluded == {}
