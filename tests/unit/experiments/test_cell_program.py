"""The code of a cell as a program: what it defines, what travels with it, what is refused."""

from __future__ import annotations

import textwrap
import threading

import cloudpickle
import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.own.cell_program import program_of_cell, toggles_of_cell


def cell(source, **notebook):
    """The program of a cell, as it arrives in a child process."""
    program = program_of_cell("\n" + textwrap.dedent(source).strip(), "<cell>", notebook)
    return cloudpickle.loads(cloudpickle.dumps(program))


def test_a_cell_with_a_train_op_is_a_graph():
    program = cell("train_op = ('op', optimizations.batch_size)\nloss = width / 2", width=3)
    assert isinstance(program, wb.Program)
    built = program.build(Optimizations(batch_size=8))
    assert (built.train_op, built.loss, built.fingerprint) == (("op", 8), 1.5, None)


@pytest.mark.parametrize("name", ["step", "train_step", "model"])
def test_a_cell_with_a_step_and_its_data_is_a_function(name):
    program = cell(f"def {name}(x):\n    return x\ndataset = [1, 2]")
    assert isinstance(program, wb.FunctionProgram)
    step, dataset = program.make()
    assert (step(5), dataset) == (5, [1, 2])
    assert program.make()[1] is not dataset  # new each time


def test_a_step_counts_before_the_model_that_it_trains():
    assert cell("model = 'm'\nstep = 's'\ndataset = 'd'").make() == ("s", "d")
    assert isinstance(cell("train_op = 1\nstep = 2\ndataset = 3"), wb.Program)


def test_what_the_cell_uses_travels_and_nothing_else():
    def helper(x):
        return x + 1

    source = """
        def inner():
            return [helper(each) for each in (lambda: numbers)()]
        class Kept:
            size = width
        train_op = inner(), Kept.size
    """
    lock = threading.Lock()  # cannot travel, and need not
    program = cell(source, helper=helper, numbers=[1, 2], width=7, lock=lock, train_op=lock)
    assert program.build(Optimizations()).train_op == ([2, 3], 7)


def test_what_the_notebook_holds_of_a_name_that_the_cell_defines_is_left_there():
    program = cell("loss = 2\ntrain_op = loss", loss=threading.Lock())
    assert program.build(Optimizations()).train_op == 2


def test_a_variable_of_the_notebook_is_no_loss_of_the_cell():
    built = cell("train_op = loss", loss=5).build(Optimizations())
    assert (built.train_op, built.loss) == (5, None)


def test_variables_are_copies():
    program = cell("numbers.append(1)\ntrain_op = len(numbers)", numbers=[])
    assert [program.build(Optimizations()).train_op for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("source", "toggles"),
    [
        ("train_op = 1", ("smart_stage",)),
        ("train_op = optimizations.stage", ("stage", "smart_stage")),
        ("def f():\n    return optimizations\ntrain_op = f()", ("stage", "smart_stage")),
        ("step = 1\ndataset = 2", ("smart_stage",)),
    ],
)
def test_a_stage_is_measured_where_the_cell_can_have_one(source, toggles):
    assert toggles_of_cell(cell(source)) == toggles


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "the cell defines x; expected train_op, and loss if it has one, in the graph"),
        ("step = 1", "the cell defines step; expected train_op"),
        ("print(1)", "the cell defines nothing; expected train_op"),
        ("x = 1\ny = = 2", "notebook cell, line 3: SyntaxError: invalid syntax"),
        ("def f(:", "notebook cell, line 2: SyntaxError: "),
        ("train_op = lock", "uses the variable 'lock' of the notebook, which cannot travel to a"),
    ],
)
def test_what_is_no_program(source, said):
    with pytest.raises(OptionError) as caught:
        cell(source, lock=threading.Lock())
    assert said in str(caught.value)


def test_a_name_that_is_set_in_some_cases_only():
    with pytest.raises(OptionError, match="has run without setting train_op; set it in every"):
        cell("if optimizations.stage:\n    train_op = 1").build(Optimizations())
    with pytest.raises(OptionError, match="has run without setting dataset; set it in every"):
        cell("step = 1\nif 0:\n    dataset = 1").make()


def test_a_line_has_the_number_that_it_has_in_the_notebook():
    with pytest.raises(ZeroDivisionError) as caught:
        cell("train_op = 1\nx = 1 / 0").build(Optimizations())
    assert caught.traceback[-1].lineno + 1 == 3
