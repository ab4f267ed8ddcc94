"""The contenders with their predictions; nothing is built or run."""

from __future__ import annotations

import pytest

from tests.builders.predictions import predicted, predictions
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.what_if.predictions import Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.errors import RunError
from workbench.experiments.comparison.applicable_toggles import NO_LOOKUP, NO_STAGE
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.experiments.search import search_input
from workbench.experiments.search.contenders import settings_of
from workbench.experiments.search.search_input import search_input_of

OFF, STAGE, SMART = Optimizations(), StageOptions(), SmartStageOptions()
GRAPH = Program(name="mine", build=lambda optimizations: Built(train_op=None))
FUNCTION = FunctionProgram(name="mine", make=lambda: None)


@pytest.fixture
def seeded(monkeypatch):
    """The seed where `predicted` answers as a function of the scenarios says."""
    asked = []

    def ask(answer, *, program=GRAPH, toggles=("stage", "fused_v1"), **changes):
        asked.clear()

        def predict(trace, program, scenarios, *options, traced, samples_each, progress):
            asked[:] = [scenarios, traced, samples_each]
            found = answer(scenarios)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(search_input, "predicted", predict)
        baseline = changes.get("baseline", OFF)
        values = {
            "stage": STAGE,
            "smart_stage": SMART,
            "left_s": 100.0,
            "graphs_s": lambda count: 5.0 + 2 * count,
            "progress": False,
            "baseline": baseline,
            "traced": lambda: None,
        }
        settings = settings_of(toggles, STAGE, SMART, baseline)
        found = search_input_of(program, settings, **{**values, **changes})
        return found, asked

    return ask


def every_one(scenarios):
    found = (predicted(each.optimizations, 1.1) for each in scenarios)
    return predictions(*(each for each in found if each.scenario.optimizations != OFF))


def test_each_setting_has_its_prediction(seeded):
    found, asked = seeded(every_one)
    assert [each.label for each in found.contenders] == [
        "fused V1", "stage", "stage + fused V1",
    ]  # fmt: skip
    assert all(each.predicted.ratio == 1.1 for each in found.contenders)
    assert (found.without_effect, found.notes, asked[1]) == ({}, (), OFF)


def test_what_the_program_has_no_use_for_is_left_out_and_other_reasons_are_not(seeded):
    def none(scenarios):
        reasons = {"stage": NO_STAGE, "fused V1": NO_LOOKUP}
        return predictions(
            withheld=tuple(
                Withheld(scenario=each, reason=reasons.get(each.label, "sizes are not known"))
                for each in scenarios
            )
        )

    found, _ = seeded(none)
    assert found.without_effect == {"stage": NO_STAGE, "fused V1": NO_LOOKUP}
    assert [each.predicted for each in found.contenders] == [None] * 3


def test_a_stage_of_ones_own_is_nothing_for_a_function(seeded):
    found, asked = seeded(every_one, program=FUNCTION)
    assert set(found.without_effect) == {"stage", "stage + fused V1"}
    assert "is a FunctionProgram" in found.without_effect["stage"]
    assert [each.label for each in asked[0]] == ["fused V1"]


def test_where_the_replay_does_not_hold_that_is_said(seeded):
    reason = "the traced steps take 41 ms, simulated 20 ms"
    found, _ = seeded(
        lambda scenarios: predictions(
            predicted=(),
            withheld=tuple(Withheld(scenario=each, reason=reason) for each in scenarios),
        )
    )
    assert found.notes == (f"Nothing is predicted: {reason}.",)
    assert found.without_effect == {}


def test_a_short_budget_is_spent_on_measuring(seeded):
    found, asked = seeded(
        every_one, left_s=30.0, graphs_s=lambda count: 10.0 * count, traced=lambda: 1 / 0
    )
    assert asked == []
    assert [note.replace("\u00a0", " ") for note in found.notes] == [
        "Nothing is predicted: building the graphs for it would take about 20 s of the 30 s that "
        "were left, so they were spent on measuring."
    ]
    assert len(found.contenders) == 3


def test_fused_graphs_are_not_traced_within_a_short_budget(seeded):
    # four graphs and one that is traced, in 5 + 2 * 5 + 3.5 s
    found, asked = seeded(every_one, left_s=46.0)
    assert [each.label for each in asked[0]] == ["stage"]
    assert found.notes[0].startswith("Of fused ops nothing is predicted: the budget is too short")
    found, asked = seeded(every_one, left_s=47.0)
    assert len(asked[0]) == 3 and found.notes == ()


@pytest.mark.parametrize(("left_s", "each"), [(54.0, True), (53.0, False)])
def test_steps_of_the_inline_executor_are_traced_where_the_budget_allows(seeded, left_s, each):
    # two graphs, one to trace, in 5 + 2 * 3 s; three samples of 3.5 s, or one
    toggles = ("inline_executor", "fused_v1", "fused_v1+inline_executor")
    found, asked = seeded(every_one, toggles=toggles, left_s=left_s)
    assert len(asked[0]) == 3 and found.notes == ()
    assert asked[2] is each


def test_a_failure_of_the_predictions_is_a_note(seeded):
    found, _ = seeded(lambda scenarios: RunError("`train.py`, line 41: ValueError: no"))
    assert found.notes == ("Nothing is predicted: `train.py`, line 41: ValueError: no.",)


def test_threads_of_the_baseline_are_no_change(seeded):
    baseline = Optimizations(inter_op_threads=2, fused_embeddings="v1")
    own = Optimizations(inter_op_threads=4)
    _, asked = seeded(every_one, baseline=baseline, toggles=["fused_v2", own])
    scenarios, traced, _ = asked
    assert traced == Optimizations(fused_embeddings="v1")
    assert Scenario(optimizations=Optimizations(fused_embeddings="v2")) in scenarios
    assert Scenario(optimizations=OFF, inter_op_threads=4) in scenarios
