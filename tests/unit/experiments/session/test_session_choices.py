"""Sessions of settings with choices: an author's toggles, the environment's and TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.builders.sessions import OFF, PROGRAM, SMART, fake_compare, learned, measured, with_trace
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.errors import OptionError
from workbench.experiments.session import session as sessions
from workbench.experiments.session.load_session import load_session
from workbench.experiments.session.session import Session

DIM = wb.Toggle("dim", [16, 32])
LAYOUT = wb.Toggle("layout", ["a", "b"], training="same")
VARIABLE = wb.toggles.EnvironmentToggle("TF_SOMETHING", ["0", "1"])
GRAPPLER_OFF = wb.toggles.GRAPPLER.at("off")


def on(*choices: Any, **fields: Any) -> wb.Optimizations:
    return wb.Optimizations(chosen=choices, **fields)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(sessions, "compare", fake_compare(made, traced=True))
    monkeypatch.setattr(
        "workbench.experiments.session.setting_predictions.learned_graphs",
        lambda *_: learned(),
    )
    return made


def test_every_setting_has_a_choice_of_each_own_toggle(calls: list[dict[str, Any]]) -> None:
    session = Session(PROGRAM, toggles=[DIM])
    run = session.run(on(GRAPPLER_OFF))
    assert session.baseline == on(DIM.at(16)) == calls[0]["baseline"]
    assert calls[0]["toggles"] == [on(DIM.at(16), GRAPPLER_OFF)] == [run.optimizations]
    assert [each.label for each in session.runs] == ["off", "Grappler off"]
    assert session.run(on(DIM.at(32))).label == "dim 32"
    assert session.toggles == (DIM,)


def test_a_setting_is_the_same_however_its_usual_choices_are_said(
    calls: list[dict[str, Any]],
) -> None:
    session = Session(PROGRAM, toggles=[DIM])
    run = session.run(on(GRAPPLER_OFF))
    said = on(GRAPPLER_OFF, wb.toggles.XLA.at("off"), DIM.at(16))
    assert session.run_of(said) is session.run_of(on(GRAPPLER_OFF)) is run
    assert session.run_of(on(wb.toggles.GRAPPLER.at("default"))) is session.runs[0]


def test_the_toggles_of_a_run_are_known_though_nobody_gave_them(
    calls: list[dict[str, Any]],
) -> None:
    session = Session(PROGRAM)
    session.run(on(DIM.at(32)))
    assert session.toggles == (DIM,)


@pytest.mark.parametrize(
    ("toggles", "words"),
    [
        (["grappler=off"], "toggles has 'grappler=off'; expected toggles"),
        (DIM, "expected a list"),
        ([DIM, wb.Toggle("dim", [1, 2])], "another toggle is named 'dim'"),
        ([wb.Toggle("stage", [1, 2])], "another toggle is named 'stage'"),
    ],
)
def test_what_are_no_toggles(toggles: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Session(PROGRAM, toggles=toggles)


def test_what_excludes_each_other_is_refused(calls: list[dict[str, Any]]) -> None:
    session = Session(PROGRAM)
    with pytest.raises(OptionError, match="caller thread on and inter-op threads exclude"):
        session.run(on(wb.toggles.CALLER_THREAD.at("on"), inter_op_threads=2))
    with pytest.raises(
        OptionError, match="cannot have XLA clusters: clusters are of a session's graph"
    ):
        Session(
            wb.FunctionProgram(name="f", make=lambda: None),
            baseline=on(wb.toggles.XLA.at("clusters")),
        )
    assert calls == []


@pytest.mark.parametrize(
    ("toggles", "searched"),
    [
        ([], None),
        # It trains another way, and nobody said that it may.
        ([DIM], None),
        ([DIM, LAYOUT], [LAYOUT]),
    ],
    ids=["none", "another training", "the same training"],
)
def test_a_search_has_the_toggles_that_keep_the_training(
    monkeypatch: pytest.MonkeyPatch, toggles: list[wb.Toggle], searched: list[wb.Toggle] | None
) -> None:
    asked: list[dict[str, Any]] = []

    def search(program: Any, **options: Any) -> Any:
        asked.append(options)
        raise OptionError("enough")

    monkeypatch.setattr(sessions, "find_best", search)
    job = Session(PROGRAM, toggles=toggles).start_search()
    assert job.wait(60) and str(job.error) == "enough"
    assert [options["toggles"] for options in asked] == [searched]
    # Every toggle of the author stands somewhere in what the others are compared with.
    assert [each.toggle for each in asked[0]["baseline"].chosen] == toggles


class TestPredictions:
    def of(self, setting: wb.Optimizations, baseline: wb.Optimizations = OFF) -> Any:
        session = Session(PROGRAM, baseline=baseline, toggles=[DIM])
        found = with_trace(measured([session.baseline]))
        session.add(found, [baseline])
        session._foreseen.known = learned()
        return session.predict(setting)

    def test_none_of_a_choice_that_nothing_was_traced_with(self) -> None:
        for choice in (GRAPPLER_OFF, DIM.at(32)):
            found = self.of(on(choice, smart_stage=wb.SmartStageOptions()))
            assert isinstance(found, Withheld)
            words = f"what {choice.label} gives is measured, and no model predicts it"
            assert found.reason == words

    def test_beside_a_baseline_with_that_choice_there_are(self) -> None:
        base = on(GRAPPLER_OFF)
        found = self.of(on(GRAPPLER_OFF, smart_stage=wb.SmartStageOptions()), base)
        plain = self.of(SMART)
        assert isinstance(found, Predicted) or found.reason == plain.reason
        gone = self.of(OFF, base)
        assert isinstance(gone, Withheld) and "what Grappler default gives" in gone.reason

    def test_every_combination_keeps_the_choices_of_the_baseline(self) -> None:
        base = on(wb.toggles.XLA.at("clusters"))
        session = Session(PROGRAM, baseline=base)
        session.add(with_trace(measured([base])), [base])
        session._foreseen.known = learned()
        predictions = session.predictions
        assert predictions is not None
        scenarios = [each.scenario for each in (*predictions.predicted, *predictions.withheld)]
        assert all(each.optimizations["xla"] == "clusters" for each in scenarios)
        # XLA excludes lookups that are fused as they are built.
        assert {each.optimizations.fused_embeddings for each in scenarios} == {None, "auto"}
        fused = session.predict(on(wb.toggles.XLA.at("clusters"), fused_embeddings="v2"))
        assert isinstance(fused, Withheld) and "XLA has no fused lookups" in fused.reason

    def test_the_boundary_of_another_choice_of_your_own_is_not_known(self) -> None:
        session = Session(PROGRAM, toggles=[DIM])
        session._foreseen.known = learned()
        assert session.boundary_of(on(GRAPPLER_OFF)) is not None
        assert session.boundary_of(on(DIM.at(32))) is None


class TestSaved:
    def saved(self, tmp_path: Path) -> Path:
        session = Session(PROGRAM, toggles=[DIM, VARIABLE])
        for setting in (on(DIM.at(32)), on(VARIABLE.at("1"), GRAPPLER_OFF)):
            session.add(measured([OFF, setting]), [OFF, setting])
        return session.save(tmp_path / "session")

    def test_choices_come_back_and_are_shown_without_the_program(self, tmp_path: Path) -> None:
        again = load_session(self.saved(tmp_path))
        labels = ["off", "dim 32", "TF_SOMETHING 1 + Grappler off"]
        assert [each.label for each in again.runs] == labels
        assert again.runs[1].optimizations["dim"] == 32
        assert [each.name for each in again.toggles] == ["TF_SOMETHING", "dim"]
        assert again.run_of(on(DIM.at(32))) is again.runs[1]
        with pytest.raises(OptionError, match="loaded without its program 'tiny'"):
            again.run(on(DIM.at(32)))

    def test_with_the_program_only_a_variable_that_is_given_is_set(
        self, tmp_path: Path, calls: list[dict[str, Any]]
    ) -> None:
        path = self.saved(tmp_path)
        again = load_session(path, PROGRAM)
        again.run(on(DIM.at(32)))
        with pytest.raises(OptionError, match="give wb.toggles.EnvironmentToggle in Python"):
            again.run(again.runs[2].optimizations)
        assert len(calls) == 1
        given = load_session(path, PROGRAM, toggles=[VARIABLE])
        assert given.run_of(on(VARIABLE.at("1"), GRAPPLER_OFF)) is given.runs[2]
        given.run(given.runs[2].optimizations)
        (choice,) = [each for each in calls[1]["toggles"][0].chosen if each.toggle == VARIABLE]
        assert choice.toggle.environment(choice.value) == {"TF_SOMETHING": "1"}

    def test_one_from_before_there_were_choices(self, tmp_path: Path) -> None:
        session = Session(PROGRAM)
        session.add(measured([OFF, SMART]), [OFF, SMART])
        home = session.save(tmp_path / "old")
        index = home / "session.json"
        document = json.loads(index.read_text("utf-8"))
        for each in (document["baseline"], *(run["optimizations"] for run in document["runs"])):
            assert each.pop("chosen") == []
        index.write_text(json.dumps(document), "utf-8")
        again = load_session(home, PROGRAM, toggles=[DIM])
        assert [each.label for each in again.runs] == ["off", "smart stage"]
        assert again.run_of(on(DIM.at(16))) is again.runs[0]
