"""What a FunctionProgram refuses, and that making one needs no TensorFlow."""

from __future__ import annotations

import subprocess
import sys

import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.errors import OptionError, UnsupportedError
from workbench.experiments.program.function_program import (
    FunctionProgram,
    require_possible,
    require_program,
    untraced,
    usual_toggles,
)
from workbench.experiments.program.program import Program


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_is_needed(name):
    with pytest.raises(OptionError, match=r"FunctionProgram.name is .*; expected a name"):
        FunctionProgram(name=name, make=print)


def test_make_is_a_function():
    with pytest.raises(OptionError, match=r"FunctionProgram.make is 5; expected a function that"):
        FunctionProgram(name="mine", make=5)


def test_it_has_no_parts():
    program = FunctionProgram(name="mine", make=print)
    assert (program.build_epoch, program.build_input, program.build_compute) == (None,) * 3


def test_a_stage_of_the_users_own_is_refused_in_a_function_alone():
    wish = Optimizations(stage=StageOptions())
    with pytest.raises(OptionError, match=r"toggle 'stage' .*use toggles=\['smart_stage'\]"):
        require_possible(FunctionProgram(name="mine", make=print), wish)
    require_possible(Program(name="mine", build=print), wish)


def test_the_usual_toggles_are_possible_ones():
    assert usual_toggles(FunctionProgram(name="mine", make=print)) == ("smart_stage",)
    assert usual_toggles(Program(name="mine", build=print)) == ("stage", "smart_stage")


def test_it_loads_no_tensorflow():
    code = (
        "import sys, workbench as wb; wb.FunctionProgram(name='x', make=print); "
        "print('tensorflow' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def build(optimizations):
    """A user's function."""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (build, r"got the function 'build'; give wb\.Program\(name='build', build=build\)"),
        (
            None,
            r"expected a wb\.Program, whose build\(optimizations\) returns wb\.Built.* a NoneType",
        ),
        (3, "or a wb.FunctionProgram, whose make.* got a int"),
    ],
)
def test_what_is_no_program_is_told_what_one_is(given, words):
    with pytest.raises(OptionError, match=words):
        require_program(given)
    with pytest.raises(OptionError, match=words):
        wb.compare(given, progress=False)
    with pytest.raises(OptionError, match=words):
        wb.trace(given, progress=False)


def test_programs_are_programs():
    require_program(Program(name="a", build=build))
    require_program(FunctionProgram(name="a", make=build))


def test_without_executors_a_policy_is_refused_and_a_function_is_not_traced(without_executors):
    program = FunctionProgram(name="mine", make=print)
    with pytest.raises(UnsupportedError, match="'inline' needs Workbench's executors, which this"):
        require_possible(program, Optimizations(executor="inline"))
    require_possible(program, Optimizations())
    assert untraced(program).startswith("Nothing is traced: a trace of a tf.function needs Workb")
    with pytest.raises(UnsupportedError, match="^a trace of a tf.function needs Workbench's"):
        wb.trace(program, progress=False)
    assert untraced(Program(name="mine", build=print)) == ""


def test_with_executors_both_are_traced():
    assert untraced(FunctionProgram(name="mine", make=print)) == ""
    assert untraced(Program(name="mine", build=print)) == ""
