"""Arguments in, one clear line and an exit code out; nothing here runs a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.comparisons import comparison
from tests.builders.traces import staged_trace
from workbench.cli import arguments, main
from workbench.cli.commands import compare, demo
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace import chrome_json
from workbench.errors import OutputError, RunError
from workbench.experiments.comparison import compare as experiments
from workbench.experiments.comparison import trace as trace_module
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.worker import found_program
from workbench.models.data.criteo import generate_criteo
from workbench.viz.outlets import text_of


def run(*arguments: str) -> int:
    try:
        return main.main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_help_shows_examples_and_loads_nothing_heavy():
    code = (
        "import sys\nfrom workbench.cli import main\ntry: main.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('tensorflow', 'numpy', 'pandas') if m in sys.modules])"
    )
    for given in (["--help"], ["compare", "--help"], ["trace", "-h"], ["report", "-h"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *given], capture_output=True, text=True, check=True
        )
        assert "example" in done.stdout
        assert done.stdout.endswith("[]\n")


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("workbench ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare"], "the following arguments are required: PROGRAM"),
        (["compare", "bert"], "invalid choice: 'bert' (choose from dlrm, deepfm"),
        (["compare", "bert"], "or give a program of your own, as in my_model.py:build)"),
        (
            ["compare", "dlrm", "--toggle", "turbo"],
            "there is no toggle 'turbo'; expected one of stage",
        ),
        (
            ["compare", "dlrm", "--toggle", "inline_executor+cost_model_executor"],
            "has two executors; a session has one",
        ),
        (["compare", "dlrm", "--all", "--toggle", "stage"], "not allowed with argument --all"),
        (["trace", "dlrm", "--all"], "unrecognized arguments: --all"),
        (["predict", "dlrm", "--batch-ratio", "0"], "'0' is not a number above 0"),
        (["predict", "dlrm", "--batch-ratio", "twice"], "'twice' is not a number above 0"),
        (["predict", "dlrm", "--cores", "0"], "'0' is not a whole number of at least 1"),
        (["compare", "dlrm", "--budget", "soon"], "'soon' is not a time such as 60s or 2min"),
        (["compare", "dlrm", "--budget", "0"], "'0' is not a time"),
        (["compare", "dlrm", "--threads", "0"], "'0' is not a whole number of at least 1"),
        (["compare", "dlrm", "--batch-size", "many"], "'many' is not a whole number"),
        (["compare", "dlrm", "--input-latency", "long"], "'long' is neither auto nor milliseconds"),
        (["compare", "dlrm", "--data", "x", "--generate", "5"], "not allowed with argument"),
        ([], "required: COMMAND"),
    ],
)
def test_mistakes_in_the_arguments_exit_with_2(capsys, arguments, said):
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("2min", 120.0), ("1.5m", 90.0), ("45", 45.0)]
)
def test_times(text, seconds):
    assert arguments.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "ms"), [("auto", arguments.AUTO), ("12.5", 12.5), ("8ms", 8.0), ("0", 0.0)]
)
def test_latencies(text, ms):
    assert arguments.latency(text) == ms


@pytest.mark.parametrize("command", ["compare", "trace"])
def test_a_mistake_in_the_data_is_one_line_and_leaves_nothing(tmp_path, capsys, command):
    out = tmp_path / "out"
    assert run(command, "dlrm", "--data", str(tmp_path / "no.tsv"), "--out", str(out / "x")) == 2
    shown = capsys.readouterr()
    assert shown.err == (
        f"workbench: error: {tmp_path / 'no.tsv'}: no such file; give the path of a click log\n"
    )
    assert shown.out == ""
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "dlrm", "--generate", "50", "--out"],
        ["compare", "dlrm", "--data", "log", "--out"],
        ["trace", "dlrm", "--data", "log", "--chrome", "no/t.json", "--out"],
        ["trace", "dlrm", "--generate", "50", "--out", "t.parquet", "--chrome"],
        ["predict", "dlrm", "--generate", "50", "--out"],
        ["demo", "--rows", "50", "--out"],
        ["report", "saved", "--out"],
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_anything_runs(
    tmp_path, monkeypatch, capsys, arguments
):
    monkeypatch.chdir(tmp_path)
    generate_criteo(tmp_path / "log", rows=5)
    comparison().save(tmp_path / "saved")
    (tmp_path / "file").write_text("in the way")
    capsys.readouterr()  # Progress, where that took long.
    before = sorted(tmp_path.rglob("*"))
    for module, name in ((experiments, "compare"), (trace_module, "trace")):
        monkeypatch.setattr(module, name, lambda *a, **o: pytest.fail("it ran"))
    assert run(*arguments, "file/out") == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("workbench: error: file")
    assert shown.err.endswith(f": cannot be written: {tmp_path}/file is not a directory\n")
    assert len(shown.err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["report.html", "trace.parquet"])
def test_a_directory_in_the_place_of_a_result_is_found_first(tmp_path, capsys, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    assert run("compare", "dlrm", "--generate", "50", "--out", str(tmp_path / "out")) == 2
    assert f"out/{name}: cannot be written: it is a directory" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize(
    "arguments", [["compare", "dlrm", "--generate", "50"], ["demo", "--rows", "50"]]
)
def test_what_was_measured_is_printed_though_it_cannot_be_written(
    tmp_path, monkeypatch, capsys, arguments
):
    monkeypatch.setattr(experiments, "compare", lambda *a, **o: comparison())

    def no_space(*arguments):
        raise OutputError("out: cannot be written: No space left on device")

    monkeypatch.setattr(Comparison, "save", no_space)
    assert run(*arguments, "--out", str(tmp_path / "out")) == 2
    shown = capsys.readouterr()
    assert text_of(comparison()) in shown.out
    assert shown.err == "workbench: error: out: cannot be written: No space left on device\n"


def test_a_disk_that_fills_with_chrome_json_leaves_the_trace_and_no_half_file(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(trace_module, "trace", lambda *a, **o: staged_trace())
    data = generate_criteo(tmp_path / "clicks.tsv", rows=5)
    half_written = []

    def filling(path, *arguments, **options):
        file = Path(path).open(*arguments, **options)  # noqa: SIM115  the caller closes it
        file.write("{")
        file.flush()
        half_written.append(path)
        with open("/dev/full", "w") as full:
            os.dup2(full.fileno(), file.fileno())
        return file

    monkeypatch.setattr(chrome_json, "open", filling, raising=False)
    out, chrome = tmp_path / "out" / "t.parquet", tmp_path / "out" / "t.json"
    assert (
        run("trace", "dlrm", "--data", str(data), "--out", str(out), "--chrome", str(chrome)) == 2
    )
    shown = capsys.readouterr()
    assert shown.err == (
        f"workbench: error: {chrome}: cannot be written: No space left on device\n"
    )
    assert shown.out.splitlines()[-1] == f"Wrote {out}"
    assert len(half_written) == 1
    assert list(out.parent.iterdir()) == [out]


def test_a_wrong_row_is_named(tmp_path, capsys):
    data = tmp_path / "clicks.tsv"
    data.write_text("0\t1\t2\n")
    assert run("compare", "dlrm", "--data", str(data), "--out", str(tmp_path / "out")) == 2
    assert f"{data}, row 1: 3 columns; expected 40" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_report_of_nothing_says_where_to_look(tmp_path, capsys):
    assert run("report", str(tmp_path)) == 2
    assert "holds no comparison.json" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_130_and_says_so(capsys, monkeypatch):
    def cancelled(chosen):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_demo", cancelled)
    assert run("demo") == 130
    assert capsys.readouterr().err == "\nCancelled. Nothing was kept; no process is left.\n"


@pytest.mark.parametrize("traceback", [False, True])
def test_a_failed_run_is_1_and_shows_its_traceback_on_request(capsys, monkeypatch, traceback):
    def failing(chosen):
        error = RunError("`train.py`, line 41: ValueError: no")
        error.add_note("Traceback of the child process: …")
        raise error

    monkeypatch.setattr(compare, "_compare", failing)
    assert run("compare", "dlrm", *(["--traceback"] if traceback else [])) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("workbench: error: `train.py`, line 41: ValueError: no\n")
    assert ("Traceback of the child" in shown) == traceback


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What a command asks of `compare` or `trace`, which end at once."""
    seen = {}

    def stop(program, *arguments, **options):
        seen.update(arguments=arguments, **options)
        raise RunError("enough")

    monkeypatch.setattr(experiments, "compare", stop)
    monkeypatch.setattr(trace_module, "trace", stop)
    data = generate_criteo(tmp_path / "clicks.tsv", rows=5)

    def ask(command, *arguments):
        assert run(command, "dlrm", "--data", str(data), *arguments) == 1
        return seen

    return ask


@pytest.mark.parametrize(
    ("arguments", "toggles"),
    [
        ([], ("stage", "smart_stage")),
        (["--toggle", "stage"], ("stage",)),
        (
            ["--toggle", "smart_stage", "--toggle", "stage+smart_stage"],
            ("smart_stage", "stage+smart_stage"),
        ),
    ],
)
def test_compare_measures_each_toggle_by_itself(asked, arguments, toggles):
    assert asked("compare", *arguments)["arguments"] == (toggles,)


def test_all_is_left_to_compare_which_knows_what_a_program_has(asked):
    seen = asked("compare", "--all")
    assert (seen["arguments"], seen["all"]) == ((None,), True)
    assert asked("compare", "--toggle", "stage")["all"] is False


def test_help_says_what_all_costs(capsys):
    assert run("compare", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "--all measures each of the eight alone, and stage+smart_stage+fused_v2+cost_model" in said
    )
    assert "ten processes are in memory at the same time" in said


def test_threads_say_whether_batches_may_change_their_order(asked):
    several = asked("compare", "--threads", "3", "--capacity", "4")
    assert several["stage"] == StageOptions(num_threads=3, capacity=4)
    assert several["smart_stage"] == SmartStageOptions(reorder=True)
    assert asked("compare", "--threads", "1")["smart_stage"] == SmartStageOptions()


def test_lookups_are_stale_only_where_that_is_asked(asked, capsys):
    seen = asked("compare", "--threads", "1", "--stale-lookups", "2", "--toggle", "smart_stage")
    assert seen["smart_stage"] == SmartStageOptions(stale_lookups=2)
    assert run("compare", "dlrm", "--stale-lookups", "-1") == 2
    assert run("compare", "dlrm", "--stale-lookups", "some") == 2
    assert "'some' is not a whole number of at least 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ([], "off"),
        (["--toggle", "stage"], "stage"),
        (["--toggle", "smart_stage"], "smart stage"),
        (["--toggle", "stage", "--toggle", "smart_stage"], "stage + smart stage"),
        (["--toggle", "stage+smart_stage"], "stage + smart stage"),
        (["--toggle", "stage", "--toggle", "inline_executor"], "stage + inline executor"),
        (["--toggle", "cost_model_executor"], "cost model executor"),
    ],
)
def test_trace_switches_on_all_toggles_together(asked, arguments, label):
    (optimizations,) = asked("trace", *arguments)["arguments"]
    assert optimizations.label() == label


@pytest.mark.parametrize("command", ["trace", "compare"])
def test_step_stats_are_left_out_unless_asked_for(asked, command):
    assert asked(command)["step_stats"] is False
    assert asked(command, "--step-stats")["step_stats"] is True


@pytest.mark.parametrize("command", ["trace", "compare", "demo"])
def test_help_says_what_step_stats_cost(capsys, command):
    assert run(command, "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "--step-stats trace with TensorFlow's own step stats, which lengthen every step and op"
    ) in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "x"], "--data is for the models dlrm, deepfm, wdl, dssm, din, dien, and 'm:b'"),
        (["--generate", "5"], "is a program of your own: it reads its data itself"),
        (["--rows", "5"], "--rows is for the models"),
        (["--batch-size", "5"], "of your own: write the size of its batches in the file"),
        (["--input-latency", "0"], "of your own: write in the file what its input waits for"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "trace", "predict"])
def test_options_of_models_are_refused_for_a_program_of_ones_own(
    tmp_path, monkeypatch, capsys, command, arguments, said
):
    monkeypatch.chdir(tmp_path)
    assert run(command, "m:b", *arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_ones_own_is_measured_with_what_suits_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    seen = []
    functional = FunctionProgram(name="mine", make=lambda: None)
    monkeypatch.setattr(found_program, "found_program", lambda text: functional)

    def stop(program, toggles, **options):
        seen.append((program, toggles))
        raise RunError("enough")

    monkeypatch.setattr(experiments, "compare", stop)
    assert run("compare", "m:b") == 1
    assert seen == [(functional, ("smart_stage",))]
    assert capsys.readouterr().out == "Reading m:b\n"


def test_a_setting_that_failed_is_an_error_after_the_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = FunctionProgram(name="mine", make=lambda dim: None)
    monkeypatch.setattr(found_program, "found_program", lambda text: program)
    seen = []

    def measured(program, toggles, **options):
        seen.append(toggles)
        return comparison(failed={"dim 32": "Dim 32: too wide"})

    monkeypatch.setattr(experiments, "compare", measured)
    assert run("compare", "m:b", "--own", "dim=16,32", "--toggle", "dim=32+grappler=off") == 1
    assert seen == [("dim=32+grappler=off", Toggle("dim", [16, 32]))]
    said = capsys.readouterr()
    assert "Dim 32: too wide; the others were measured" in said.err
    assert (tmp_path / "results/report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--own", "stage=0,1"], "another toggle is named 'stage'"),
        (["--own", "1st=0,1"], "has no name; expected at most 64 letters"),
        (["--own", "dim=16,32", "--toggle", "dim=7"], "no choice '7'"),
        (["--toggle", "dim=7"], "there is no toggle 'dim'"),
    ],
)
def test_own_toggles_that_cannot_be_are_refused_before_anything_runs(capsys, arguments, said):
    assert run("compare", "m:b", *arguments) == 2
    assert said in capsys.readouterr().err


def test_options_of_several_values_add_up_where_they_are_repeated(monkeypatch):
    from workbench.experiments.serving import serve_bench, served_model

    seen = {}

    def asked(program, toggles, **options):
        seen.update(options)
        raise OutputError("far enough")

    monkeypatch.setattr(served_model, "served", lambda model, **options: seen.update(options))
    monkeypatch.setattr(serve_bench, "serve_bench", asked)
    repeated = ("--rate", "200", "--rate", "600,700", "--rows", "1", "--rows", "8")
    run("serve-bench", "m", *repeated, "--clients", "2", "--clients", "4")
    assert seen["rates"] == [200, 600, 700]
    assert (seen["rows"], seen["clients"]) == ([1, 8], [2, 4])
    run("serve-bench", "m")
    assert (seen["rates"], seen["rows"], seen["clients"]) == ([], [1], [1, 8, 32])


def test_no_option_of_several_values_forgets_the_ones_before():
    commands = main._parser()._subparsers._group_actions[0].choices
    options = [each for command in commands.values() for each in command._actions]
    several = [each for each in options if "," in str(each.metavar)]
    assert {each.dest for each in several} >= {"rate", "rows", "clients", "own"}
    assert [each.dest for each in several if type(each).__name__ == "_StoreAction"] == []
