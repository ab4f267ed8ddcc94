"""Executor policies as wishes: names, what the cost model refuses, toggles, settings."""

from __future__ import annotations

import pytest

from tests.builders.plans import predictions, stage_plan
from workbench.core.optimizations import Optimizations
from workbench.core.options import CostModelOptions, ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.program.variant import LEARNING, Variant, variants_of

STAGE, SMART = StageOptions(), SmartStageOptions()


def test_a_policy_is_its_name():
    assert ExecutorPolicy("inline") is ExecutorPolicy.INLINE
    assert ExecutorPolicy.COST_MODEL == "cost_model"
    assert ExecutorPolicy(ExecutorPolicy.NORMAL) is ExecutorPolicy.NORMAL


@pytest.mark.parametrize("name", ["turbo", "INLINE", 1, None])
def test_an_unknown_policy_is_refused_by_name(name):
    with pytest.raises(OptionError) as caught:
        ExecutorPolicy(name)
    assert str(caught.value) == (
        f"there is no executor policy {name!r}; expected one of 'normal', 'inline', 'cost_model'"
    )


def test_defaults_of_the_cost_model_are_those_of_the_document():
    options = CostModelOptions()
    assert (options.start_step, options.stop_step) == (100, 200)
    assert (options.batch_ns, options.batch_ops) == (5_000, 100)


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (-1, 10), (10, 10), (200, 100), (0, 0)])
def test_steps_that_never_let_it_learn_are_refused_with_the_rule(start, stop):
    assert not CostModelOptions.learns(start, stop)
    with pytest.raises(OptionError) as caught:
        CostModelOptions(start_step=start, stop_step=stop)
    said = str(caught.value)
    assert said.startswith(f"with start_step={start} and stop_step={stop} the cost model never")
    assert "active only if 0 < START < STOP" in said
    assert "start_step=100, stop_step=200" in said


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("start_step", 1.5, "expected an integer"),
        ("stop_step", "200", "expected an integer"),
        ("start_step", True, "expected an integer"),
        ("batch_ns", 0, "expected an integer of at least 1"),
        ("batch_ops", -3, "expected an integer of at least 1"),
        ("stop_step", 2**63, "expected at most 2**63 - 1"),
        ("batch_ns", 2**63, "expected at most 2**63 - 1"),
    ],
)
def test_numbers_of_the_cost_model_are_checked(field, value, said):
    with pytest.raises(OptionError) as caught:
        CostModelOptions(**{field: value})
    assert f"CostModelOptions.{field} is {value!r}; {said}" in str(caught.value)


def test_optimizations_take_a_policy_or_its_name():
    assert Optimizations(executor="inline").executor is ExecutorPolicy.INLINE
    assert Optimizations(executor="inline") == Optimizations(executor=ExecutorPolicy.INLINE)
    assert Optimizations().executor is None
    with pytest.raises(OptionError, match="there is no executor policy 'fast'"):
        Optimizations(executor="fast")


@pytest.mark.parametrize(
    ("toggle", "policy", "label"),
    [
        ("inline_executor", ExecutorPolicy.INLINE, "inline executor"),
        ("cost_model_executor", ExecutorPolicy.COST_MODEL, "cost model executor"),
        ("inline_executor+stage", ExecutorPolicy.INLINE, "stage + inline executor"),
        (
            "fused_v2+cost_model_executor",
            ExecutorPolicy.COST_MODEL,
            "fused V2 + cost model executor",
        ),
    ],
)
def test_toggles_choose_the_executor(toggle, policy, label):
    made = optimizations_of(toggle, STAGE, SMART)
    assert made.executor is policy
    assert made.label() == label


@pytest.mark.parametrize(
    "toggle", ["inline_executor+cost_model_executor", "cost_model_executor+stage+inline_executor"]
)
def test_a_session_has_one_executor(toggle):
    with pytest.raises(OptionError) as caught:
        optimizations_of(toggle, STAGE, SMART)
    assert str(caught.value) == (
        f"toggle {toggle!r} has two executors; a session has one, so expected one of them"
    )


def test_a_setting_waits_until_its_executor_has_learned():
    off, inline, learning = variants_of(["inline_executor", "cost_model_executor"], STAGE, SMART)
    assert (off.learning_steps, inline.learning_steps) == (0, 0)
    assert learning.learning_steps > LEARNING.stop_step > LEARNING.start_step > 0
    assert learning.with_threads(1).optimizations.executor is ExecutorPolicy.COST_MODEL


def test_a_plan_does_not_speak_for_what_an_executor_gains():
    plan = stage_plan(predictions=predictions(12.0, 8.0))
    plain = Variant(label="x", optimizations=Optimizations(smart_stage=SMART), plan=plan)
    inline = Optimizations(smart_stage=SMART, executor="inline")
    assert plain.predicted == pytest.approx(1.5)
    assert Variant(label="x", optimizations=inline, plan=plan).predicted is None
