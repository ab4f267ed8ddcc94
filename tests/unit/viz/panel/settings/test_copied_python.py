"""Copied Python: it is what the panel measures, and runs as it stands."""

from __future__ import annotations

import ast
import types

import pytest
from hypothesis import given

import workbench as wb
from tests.builders.panel_settings import settings
from workbench.core.optimizations import Optimizations
from workbench.experiments.program.as_code import compare_code, options_code
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.program import Program
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.program_expression import program_expression


def build(optimizations):
    raise AssertionError


PROGRAM = Program(name="mine", build=build)
OTHER = Program(name="other", build=build)
SESSION = Session(PROGRAM)
PANEL = types.SimpleNamespace(session=SESSION)


@given(settings)
def test_options_are_written_so_that_python_reads_the_same(setting):
    wish = setting.optimizations()
    assert eval(options_code(wish), {"wb": wb}) == wish


def called(code, **names):
    """What the one call of `wb.compare` in a cell is given."""
    asked = {}

    class Fake:
        Optimizations = wb.Optimizations
        SmartStageOptions = wb.SmartStageOptions
        StageOptions = wb.StageOptions
        Toggle = wb.Toggle
        toggles = wb.toggles

        @staticmethod
        def compare(program, toggles, **options):
            asked.update(program=program, toggles=toggles, **options)

    lines = code.replace("import workbench as wb", "")
    exec(compile(ast.parse(lines), "cell", "exec"), {"wb": Fake, **names})
    return asked


@given(settings)
def test_a_cell_measures_the_setting_beside_the_baseline(setting):
    wish = setting.optimizations()
    wishes = [] if wish == Optimizations() else [wish]
    code = compare_code(wishes, Optimizations(), "program", budget_s=20.0, trace_steps=10)
    asked = called(code, program=PROGRAM)
    assert asked["program"] is PROGRAM
    assert asked["toggles"] == wishes
    assert (asked["budget_s"], asked["trace_steps"]) == (20, 10)
    # Nothing to compare needs its baseline, which then is what is measured.
    assert asked.get("baseline", Optimizations()) == Optimizations()


def test_another_baseline_stands_in_the_cell():
    base = Optimizations(fused_embeddings="v1")
    code = compare_code([Optimizations()], base, "p", budget_s=5, trace_steps=0)
    asked = called(code, p=PROGRAM)
    assert (asked["toggles"], asked["baseline"]) == ([Optimizations()], base)


@pytest.mark.parametrize(
    ("program", "variables", "expression"),
    [
        (PROGRAM, {"x": 1, "mine": PROGRAM}, "mine"),
        (PROGRAM, {"other": Session(OTHER), "runs": SESSION}, "runs.program"),
        (
            PROGRAM,
            {"_": SESSION, "x": types.SimpleNamespace(session=3), "panel": PANEL},
            "panel.session.program",
        ),
        (
            Program(
                name="dlrm",
                build=build,
                origin=Origin(model="dlrm", options={"data": None, "batch_size": 64}),
            ),
            {},
            "wb.models.dlrm(batch_size=64)",
        ),
        (
            PROGRAM,
            {"_": PROGRAM},
            "program  # the wb.Program or wb.FunctionProgram that the panel was made with",
        ),
        (
            None,
            {"nothing": None},
            "program  # the wb.Program or wb.FunctionProgram that the panel was made with",
        ),
    ],
)
def test_a_program_is_named_as_the_notebook_names_it(program, variables, expression):
    assert program_expression(program, variables) == expression
