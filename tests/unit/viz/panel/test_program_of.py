"""What the panel is given, and what it says to what is no program."""

from __future__ import annotations

import types

import pytest

from tests.builders.served_models import served
from tests.builders.sessions import PROGRAM, build
from workbench.errors import OptionError
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.serving.served_model import ServedModel
from workbench.viz.panel.program_of import program_of


def make():
    return None, None


def make_batches(batch_size=64):
    return None, None


def test_functions_become_programs():
    assert program_of(PROGRAM) is PROGRAM
    assert program_of(build) == Program(name="build", build=build)
    assert program_of(make) == FunctionProgram(name="make", make=make)
    assert program_of(make_batches) == FunctionProgram(name="make_batches", make=make_batches)


def two(a, b):
    return a, b


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (two, "two\\(a, b\\) needs 2 arguments; expected build\\(optimizations\\)"),
        (
            types.SimpleNamespace(name="m", train_step=1, fit=2),
            "the model 'm' cannot travel to a child process",
        ),
        (3, "expected a wb.Program"),
        (
            ServedModel(path="/models/ranker/1", name="ranker"),
            "'ranker' is a served model; call wb.serve_bench\\(program, \\[",
        ),
        (served(), "this is a measurement of the served model 'ranker'; the value shows itself"),
    ],
)
def test_what_is_no_program_is_told_what_one_is(given, words):
    with pytest.raises(OptionError, match=words):
        program_of(given)
