"""Settings of the panel: the same toggles in Python, in a key, and in the browser."""

from __future__ import annotations

import pytest
from hypothesis import given

import workbench as wb
from tests.builders.javascript import evaluate
from tests.builders.panel_settings import settings
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.setting import PanelSetting, setting_of

DIM, JIT = wb.Toggle("dim", [16, 32]), wb.Toggle("jit", [False, True])


@given(settings)
def test_a_setting_comes_back_from_its_optimizations(setting):
    again = setting_of(setting.optimizations())
    # A stage of one's own has one thread and one item where nothing is said.
    expected = setting
    if setting.stage == "own":
        expected = setting.changed(capacity=setting.capacity or 1, threads=setting.threads or 1)
    assert again == expected


@given(settings, settings)
def test_keys_tell_settings_apart(one, other):
    assert (one.key == other.key) == (one.optimizations() == other.optimizations())


@given(settings, settings)
def test_names_differ_where_toggles_do(one, other):
    shown = ("stage", "fusion", "executor", "inter_op_threads", "batch_size", "chosen")
    if any(getattr(one, name) != getattr(other, name) for name in shown):
        assert name_of(one) != name_of(other)


def test_the_browser_makes_the_same_keys():
    made = [
        PanelSetting(),
        PanelSetting(stage="smart", capacity=2, threads=3, thread_pool=True, fusion="v2"),
        PanelSetting(stage="own", executor="inline", inter_op_threads=2, batch_size=1024),
        PanelSetting(stage="moved", threads=2, stale_lookups=2, cut="-parse -net/hash"),
        PanelSetting(chosen=(wb.toggles.XLA.at("clusters"), DIM.at(32), JIT.at(True))),
    ]
    # What the toggles of an absent stage say counts for nothing.
    raw = [each.state() for each in made]
    raw.append({**raw[0], "capacity": 5, "threads": 2, "thread_pool": True, "cut": "-hash"})
    # Nor do stale lookups of one that is not found.
    raw += [{**raw[0], "stale_lookups": 1}, {**raw[2], "stale_lookups": 1}]
    keys = evaluate("value.map(settingKey)", raw)
    assert keys == [*(each.key for each in made), made[0].key, made[0].key, made[2].key]


@pytest.mark.parametrize(
    ("optimizations", "name"),
    [
        (Optimizations(), "All off"),
        (Optimizations(stage=StageOptions()), "My stage, 1 thread"),
        (
            Optimizations(smart_stage=SmartStageOptions(num_threads=2, capacity=4, reorder=True)),
            "SmartStage, 2 threads, capacity 4",
        ),
        (
            Optimizations(smart_stage=SmartStageOptions(exclude=("net/in/hash", "b"), capacity=2)),
            "Moved boundary without in/hash and 1 more, capacity 2",
        ),
        (
            Optimizations(smart_stage=SmartStageOptions(stale_lookups=1)),
            "SmartStage, 1 step stale",
        ),
        (
            Optimizations(smart_stage=SmartStageOptions(exclude=("hash",), stale_lookups=2)),
            "Moved boundary without hash, 2 steps stale",
        ),
        (
            Optimizations(smart_stage=SmartStageOptions(include=())),
            "Moved boundary up to the input",
        ),
        (
            Optimizations(fused_embeddings="v1", executor="cost_model", batch_size=64),
            "Fused V1 + cost model executor + batch 64",
        ),
        (
            Optimizations(batch_size=64, chosen=(wb.toggles.GRAPPLER.at("off"), DIM.at(32))),
            "Batch 64 + dim 32 + Grappler off",
        ),
    ],
)
def test_a_setting_is_named_after_what_differs_from_all_off(optimizations, name):
    assert name_of(setting_of(optimizations)) == name


@pytest.mark.parametrize(
    ("optimizations", "alone", "inside"),
    [
        (Optimizations(), "All off", "all off"),
        (
            Optimizations(smart_stage=SmartStageOptions(num_threads=2)),
            "SmartStage, 2 threads",
            "SmartStage, 2 threads",
        ),
        (Optimizations(fused_embeddings="v1"), "Fused V1", "fused V1"),
        (Optimizations(chosen=(wb.toggles.ONEDNN.at("off"),)), "oneDNN off", "oneDNN off"),
        (Optimizations(chosen=(DIM.at(32),)), "Dim 32", "dim 32"),
    ],
)
def test_a_name_inside_a_sentence_keeps_a_proper_name(optimizations, alone, inside):
    setting = setting_of(optimizations)
    assert (name_of(setting), name_of(setting, inside=True)) == (alone, inside)


def test_usual_choices_make_no_other_setting():
    setting = setting_of(Optimizations(chosen=(DIM.at(16), wb.toggles.XLA.at("off"))))
    assert setting == PanelSetting() and setting.key == PanelSetting().key


def test_a_value_that_is_none_is_refused():
    with pytest.raises(OptionError, match="stage is 'mine'; expected one of 'off', 'own', 'smart'"):
        PanelSetting(stage="mine")


def test_a_moved_boundary_needs_one():
    with pytest.raises(OptionError, match="stage is 'moved' and no boundary was moved; move ops"):
        PanelSetting(stage="moved")
    with pytest.raises(OptionError, match="cut is 'a b'; expected names of nodes, such as '-a -b'"):
        PanelSetting(stage="moved", cut="a b")


def test_a_moved_boundary_is_the_names_that_it_is_moved_by():
    smart = PanelSetting(stage="moved", cut="+a/b -c").optimizations().smart_stage
    assert smart is not None
    assert (smart.include, smart.exclude) == (("a/b",), ("c",))


def test_several_threads_of_a_smart_stage_may_reorder():
    made = PanelSetting(stage="smart", threads=2).optimizations().smart_stage
    assert made is not None
    assert (made.num_threads, made.reorder) == (2, True)


@pytest.mark.parametrize("stage", ["off", "own"])
def test_only_a_found_stage_has_stale_lookups(stage):
    assert PanelSetting(stage=stage, stale_lookups=2) == PanelSetting(stage=stage)
