"""`%%workbench` in a shell: its options, its result, its mistakes; nothing here runs a program."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import workbench
from workbench import magics
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.experiments.comparison import compare as compare_module
from workbench.experiments.comparison import trace as trace_module
from workbench.experiments.program.function_program import arguments_of_make
from workbench.experiments.what_if import predict as predict_module

GRAPH = "batch = optimizations.stage\ntrain_op = batch\n"
RESULT = object()


@pytest.fixture
def shell(monkeypatch):
    # A shell takes the place of __main__, and keeps a history on disk.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell(config=config, colors="nocolor")
    workbench.load_ipython_extension(made)
    return made


@pytest.fixture
def asked(shell, monkeypatch):
    """Runs the magic on a cell; what it asked for."""
    seen = {}

    def noted(name):
        def note(program, *arguments, **options):
            seen.update(name=name, program=program, arguments=arguments, **options)
            return RESULT

        return note

    monkeypatch.setattr(compare_module, "compare", noted("compare"))
    monkeypatch.setattr(trace_module, "trace", noted("trace"))
    monkeypatch.setattr(predict_module, "predict", noted("predict"))

    def ask(line="", body=GRAPH):
        seen["found"] = magics.run_cell(shell, line, body)
        return seen

    return ask


def test_the_usual_is_measured(asked):
    seen = asked()
    assert (seen["name"], seen["arguments"]) == ("compare", (("stage", "smart_stage"),))
    assert (seen["budget_s"], seen["trace_steps"], seen["progress"]) == (60.0, 30, True)
    assert (seen["stage"], seen["smart_stage"]) == (StageOptions(), SmartStageOptions())
    assert (seen["baseline"], seen["all"], seen["command"]) == (None, False, "%%workbench")
    assert seen["program"].name == "cell"
    assert seen["found"] is RESULT


def test_options_are_those_of_compare(asked):
    line = (
        "--toggle smart_stage --toggle stage+inline_executor --baseline stage --threads 3 "
        "--capacity 4 --budget 2min --steps 5 --step-stats --equivalence-steps 0 --seed 9 "
        "--name 'my model' --quiet"
    )
    seen = asked(line)
    assert seen["arguments"] == (["smart_stage", "stage+inline_executor"],)
    assert seen["baseline"] == Optimizations(stage=StageOptions(num_threads=3, capacity=4))
    assert seen["smart_stage"] == SmartStageOptions(num_threads=3, capacity=4, reorder=True)
    assert (seen["budget_s"], seen["trace_steps"], seen["step_stats"]) == (120.0, 5, True)
    assert (seen["equivalence_steps"], seen["seed"], seen["progress"]) == (0, 9, False)
    assert seen["program"].name == "my model"
    assert seen["command"] == f"%%workbench {line}"


def test_all_is_left_to_compare(asked):
    seen = asked("--all")
    assert (seen["arguments"], seen["all"]) == ((None,), True)


def test_it_traces_and_predicts_instead(asked):
    seen = asked("--trace --toggle stage --toggle inline_executor --steps 4")
    assert (seen["name"], seen["steps"]) == ("trace", 4)
    assert seen["arguments"][0].label() == "stage + inline executor"
    seen = asked("--predict --toggle stage")
    assert seen["name"] == "predict"
    assert seen["program"] is RESULT  # the trace comes first
    assert seen["arguments"][1] == ["stage"]


def test_own_toggles_are_read_by_the_cell(asked):
    body = "train_op = optimizations['dim']\n"
    line = "--own dim=16,32 --toggle dim=32+grappler=off --baseline intra_op_threads=1"
    seen = asked(line, body)
    dim = workbench.Toggle("dim", [16, 32])
    assert seen["arguments"] == (["dim=32+grappler=off", dim],)
    assert seen["program"].build(Optimizations(chosen=(dim.at(32),))).train_op == 32
    seen = asked("--own dim=16,32", body)
    assert seen["arguments"] == ([dim],)
    seen = asked("--trace --own dim=16,32", body)
    assert seen["arguments"][0] == Optimizations(chosen=(dim.at(16),))
    seen = asked("--own dim=16,32", "step = optimizations['dim']\ndataset = 1\n")
    arguments = arguments_of_make(seen["program"], Optimizations(chosen=(dim.at(32),)))
    assert seen["program"].make(**arguments) == (32, 1)


def test_a_cell_that_reads_no_toggle_says_so(asked):
    for body in ("train_op = 1\n", "step = 1\ndataset = 1\n"):
        with pytest.raises(OptionError, match="reads no toggle: write optimizations.'dim'."):
            asked("--own dim=16,32", body)


def test_labels_without_scores_are_something_else(asked):
    built = asked("", "train_op = 1\nlabels = 'mine'\n")["program"].build(Optimizations())
    assert built.labels is None
    built = asked("", "train_op, labels, scores = 1, 2, 3\n")["program"].build(Optimizations())
    assert (built.labels, built.scores) == (2, 3)


def test_the_panel_is_opened_for_the_program(asked, monkeypatch):
    monkeypatch.setattr(workbench, "Workbench", lambda program, toggles: (program, toggles))
    program, toggles = asked("--panel --name mine")["found"]
    assert (program.name, toggles) == ("mine", [])
    body = "train_op = optimizations['dim']\n"
    _, toggles = asked("--panel --own dim=16,32", body)["found"]
    assert toggles == [workbench.Toggle("dim", [16, 32])]


def test_the_result_is_kept_in_a_variable(asked, shell):
    asked("-o found")
    assert shell.user_ns["found"] is RESULT


def test_variables_and_functions_of_the_notebook_are_there(asked, shell):
    shell.run_cell("def double(x):\n    return 2 * x\nwidth = 4\n")
    program = asked("", "train_op = double(width)\n")["program"]
    assert program.build(Optimizations()).train_op == 8


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--bugdet 3", "unrecognized arguments: --bugdet 3; %%workbench? shows all options"),
        ("--toggle turbo", "there is no toggle 'turbo'; expected one of stage"),
        ("--budget soon", "'soon' is not a time such as 60s or 2min"),
        ("--steps -1", "'-1' is not a whole number of at least 1"),
        ("--trace --panel", "not allowed with argument --trace"),
        ("--all --toggle stage", "not allowed with argument --all"),
        ("--own dim=16", "Toggle 'dim' has 1 choices"),
        ("--own stage=0,1", "another toggle is named 'stage'"),
        ("--own d-m=0,1", "has no name; expected at most 64 letters"),
        ("--own dim=16,32 --toggle dim=7", "no choice '7'"),
        ("--toggle dim=32", "there is no toggle 'dim'"),
        ("--own dim=16,32 --all", "leave out --all"),
        ("-o 5x", "-o '5x' is no name of a variable"),
        ("--name 'x", "No closing quotation"),
    ],
)
def test_a_mistake_in_the_line_is_a_usage_error(asked, line, said):
    with pytest.raises(UsageError) as caught:
        asked(line)
    assert said in str(caught.value)


def test_the_shell_shows_help_and_one_line_for_a_mistake_in_the_cell(shell, capsys):
    shell.run_cell("%%workbench?")
    assert "The cell is the body of the program" in " ".join(capsys.readouterr().out.split())
    shell.run_cell("%%workbench\nx = 1\ny = = 2", store_history=True)
    assert capsys.readouterr().out == (
        "OptionError: notebook cell, line 3: SyntaxError: invalid syntax\n"
        "%tb shows the whole traceback.\n"
    )


def test_importing_workbench_loads_no_ipython():
    code = (
        "import sys, workbench; workbench.load_ipython_extension; print('IPython' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
