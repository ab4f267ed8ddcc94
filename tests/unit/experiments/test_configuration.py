"""The configuration of a comparison, read from a file that may come from anybody."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.errors import DataError
from workbench.experiments.program.configuration import configuration_from, configuration_of


def document() -> dict[str, Any]:
    program = wb.Program(name="mine", build=lambda optimizations: None)
    measured = {"budget_s": 7.5, "trace_steps": 4, "step_stats": False, "equivalence_steps": 30}
    measured |= {"verify": True, "stop_when_clear": True}
    return configuration_of(program, [wb.Optimizations()], **measured, seed=3).to_json()


def test_it_is_read_as_it_was_written() -> None:
    assert configuration_from(document()).to_json() == document()
    assert configuration_from(document()).stop_when_clear


def test_one_of_before_there_was_a_field_has_its_usual_value() -> None:
    older = {key: value for key, value in document().items() if key != "stop_when_clear"}
    assert not configuration_from(older).stop_when_clear


@pytest.mark.parametrize("name", ["budget_s", "trace_steps", "equivalence_steps", "seed"])
@pytest.mark.parametrize(
    "number",
    [10**400, -(10**400), float("inf"), float("nan"), -1, True, "7", None],
    ids=["larger than a float", "smaller", "inf", "nan", "below 0", "bool", "text", "none"],
)
def test_what_is_no_number_in_range_is_one_sentence(name: str, number: Any) -> None:
    with pytest.raises(DataError, match=f"has no {name} from"):
        configuration_from({**document(), name: number})
