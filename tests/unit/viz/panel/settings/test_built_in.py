"""Workbench's own toggles: one table has the names that command line, labels and panel show."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.core.toggles.built_in import BATCH_SIZE, WITH_POSITIONS
from workbench.experiments.program.toggles import TOGGLES, optimizations_of
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.setting import PanelSetting, setting_of

POSITIONS = [(toggle, each) for toggle in WITH_POSITIONS for each in toggle.positions]


@pytest.mark.parametrize(
    ("toggle", "position"),
    [
        pytest.param(toggle, each, id=each.named)
        for toggle, each in POSITIONS
        if each.named in TOGGLES
    ],
)
def test_a_name_of_the_command_line_is_a_position_with_its_label(toggle, position):
    setting = optimizations_of(position.named, wb.StageOptions(), wb.SmartStageOptions())
    assert setting.label() == position.label
    in_panel = setting_of(setting)
    assert getattr(in_panel, toggle.key) == position.value
    assert name_of(in_panel, inside=True).split(",")[0] == toggle.name(position.value)


def test_every_name_of_the_command_line_is_in_the_table():
    assert [each.named for _, each in POSITIONS if each.named] == list(TOGGLES)


def test_the_panel_draws_each_position():
    groups = {group.key: group for group in groups_of(None, cut="-hash")}
    for toggle in WITH_POSITIONS:
        group = groups[toggle.key]
        assert (group.title, group.help) == (toggle.title, toggle.help)
        drawn = [(option.value, option.label, option.help) for option in group.options]
        assert drawn == [(each.value, each.title, each.help) for each in toggle.positions]
    assert groups[BATCH_SIZE.key].title == "Batch size"


def test_the_first_position_is_that_of_a_setting_that_is_all_off():
    for toggle in WITH_POSITIONS:
        assert getattr(PanelSetting(), toggle.key) == toggle.values[0]
