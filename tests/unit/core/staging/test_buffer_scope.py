"""Which stage a take op is of."""

from __future__ import annotations

from workbench.core.staging.buffer_scope import stages_of_takes


def test_a_stage_of_the_users_and_one_of_a_plan():
    takes = ["in/take", "smart_stage_buffer/take", "smart_stage_input_buffer/take"]
    assert stages_of_takes(takes, ["in", "smart_stage", "smart_stage_input"]) == {
        "in/take": "in",
        "smart_stage_buffer/take": "smart_stage",
        "smart_stage_input_buffer/take": "smart_stage_input",
    }


def test_a_widened_stage_has_the_only_take_that_is_left():
    assert stages_of_takes(["smart_stage_buffer/take"], ["in"]) == {"smart_stage_buffer/take": "in"}
    assert stages_of_takes(["a_buffer/take", "b_buffer/take"], ["in"]) == {}
    assert stages_of_takes(["model/in/take"], ["model/in", "model"]) == {
        "model/in/take": "model/in"
    }
