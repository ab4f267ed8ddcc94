"""What a Program refuses, what a Comparison says of itself, and that neither needs TensorFlow."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.builders.plans import towers
from workbench.core.options import StageOptions
from workbench.core.planning.planner import plan_stages
from workbench.errors import DataError, OptionError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison, load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.models.data.table_format import CheckedTable
from workbench.models.zoo.options import DlrmOptions


def build(optimizations):
    return Built(train_op=None)


PROGRAM = Program(name="mine", build=build)


@pytest.mark.parametrize("name", ["", None])
def test_a_program_needs_a_name(name):
    with pytest.raises(OptionError, match=r"Program\.name is .*; expected a name"):
        Program(name=name, build=build)


@pytest.mark.parametrize("name", ["rounds", "configuration", "took_s", "stage.capacity"])
def test_a_program_has_no_settings_that_a_comparison_makes(name):
    with pytest.raises(OptionError, match=rf"Program\.settings has '{name}', which says of a"):
        Program(name="mine", build=build, settings={name: 1})
    with pytest.raises(OptionError, match=r"FunctionProgram\.settings has"):
        FunctionProgram(name="mine", make=build, settings={name: 1})


def test_a_program_is_made_of_functions():
    with pytest.raises(OptionError, match=r"Program\.build is 3; expected a function"):
        Program(name="mine", build=3)
    with pytest.raises(OptionError, match=r"Program\.build_epoch is 'x'; expected a function"):
        Program(name="mine", build=build, build_epoch="x")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"toggles": ["stage", None]},
            "a toggle is None; expected a name, an Optimizations or a wb.Toggle",
        ),
        ({"toggles": 3}, "a toggle is 3; expected a name, an Optimizations or a wb.Toggle"),
        (
            {"toggles": ["turbo"]},
            "there is no toggle 'turbo'; expected one of stage, smart_stage, fused_v1, fused_v2, "
            "grouped, auto_fused, "
            "inline_executor, cost_model_executor, "
            "tf_data=prefetch|parallel_map|private_threads|not_deterministic|cache, "
            "xla=clusters|function, precision=bfloat16, onednn=off, "
            "grappler=off|no_memory_optimizer, caller_thread=on, freed_memory=given_back, "
            "gpu_threads=private, zentf=on, or several joined by +, also with "
            "inter_op_threads=N or intra_op_threads=N",
        ),
        (
            {"toggles": []},
            "no toggle was given; expected one of stage, smart_stage, fused_v1, fused_v2, "
            "grouped, auto_fused, "
            "inline_executor, cost_model_executor",
        ),
        ({"budget_s": 0}, "budget_s is 0; expected seconds above 0 and at most a day"),
        ({"trace_steps": -1}, "trace_steps is -1; expected an integer of at least 0"),
        ({"equivalence_steps": 1.5}, "equivalence_steps is 1.5; expected an integer of at least 0"),
    ],
)
def test_compare_refuses_before_it_starts_anything(arguments, said):
    with pytest.raises(OptionError) as caught:
        compare(PROGRAM, **arguments)
    assert str(caught.value) == said


def test_trace_wants_at_least_one_step():
    with pytest.raises(OptionError, match="steps is 0; expected an integer of at least 1"):
        trace(PROGRAM, steps=0)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("batch_size", 0, "batch_size is 0; expected at least 1"),
        ("input_latency_ms", -1.0, "input_latency_ms is -1.0; expected 0 to 60 000 milliseconds"),
    ],
)
def test_dlrm_options_are_checked(tmp_path, field, value, said):
    data = CheckedTable(path=tmp_path / "x", rows=1, more=False)
    with pytest.raises(OptionError) as caught:
        DlrmOptions(data=data, **{field: value})
    assert str(caught.value) == said


def comparison() -> Comparison:
    def variant(label, rate, **more):
        return MeasuredVariant(
            label=label,
            steps_per_s=rate,
            low=rate - 1,
            high=rate + 1,
            block_steps_per_s=(rate, rate),
            step_ms_median=1000 / rate,
            notes=("a note",),
            **more,
        )

    return Comparison(
        program="mine",
        variants=(
            variant("off", 50.0),
            variant("stage", 75.0, plan=plan_stages(towers())),
        ),
        baseline="off",
        ratios=(
            Ratio(label="stage", ratio=1.5, low=1.4, high=1.6, verdict="faster", predicted=1.625),
        ),
        equivalence=(
            Equivalence(
                label="stage", kind="bit-equal losses", passed=True, steps=200, detail="same"
            ),
        ),
        bounds=(Bound(name="limit", steps_per_s=80.0, detail="measured"),),
        environment={"cores": 2},
        command="workbench compare",
        settings={"stage": repr(StageOptions())},
    )


def test_a_comparison_is_a_frame_of_its_variants():
    frame = comparison().to_pandas()
    assert list(frame.index) == ["off", "stage"]
    assert frame.loc["stage", "ratio"] == 1.5
    assert frame.loc["stage", "ratio_predicted"] == 1.625
    assert list(frame["verdict"]) == ["baseline", "faster"]
    assert frame.loc["off", "same_training"] is None
    assert frame.loc["stage", "same_training"] is True


def test_a_comparison_survives_saving(tmp_path):
    saved = comparison().save(tmp_path / "results")
    assert load_comparison(saved) == comparison()
    assert {path.name for path in saved.iterdir()} == {"comparison.json", "boundary-1.json.gz"}


def test_a_saved_comparison_explains_what_stays(tmp_path):
    plan = load_comparison(comparison().save(tmp_path)).variants[1].plan
    assert plan.explain("net/lookup") == towers().explain("net/lookup")


def test_a_comparison_is_saved_as_facts_without_a_drawing(tmp_path):
    saved = comparison().save(tmp_path)
    text = (saved / "comparison.json").read_text()
    assert not any(word in text for word in ("boxes", "sentence", "families"))
    graph = json.loads(gzip.decompress((saved / "boundary-1.json.gz").read_bytes()))
    assert not {"boxes", "sentence", "families"} & set(graph)


def test_saving_again_replaces(tmp_path):
    comparison().save(tmp_path)
    comparison().save(tmp_path)
    assert load_comparison(tmp_path) == comparison()


def saved_as_format(version, directory):
    file = comparison().save(directory) / "comparison.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format_version": version}))


def test_a_newer_format_is_refused(tmp_path):
    saved_as_format(4, tmp_path)
    with pytest.raises(DataError, match=r"was saved in format 4, and this Workbench reads 3; up"):
        load_comparison(tmp_path)


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_format_says_how_to_measure_again(tmp_path, version):
    saved_as_format(version, tmp_path)
    with pytest.raises(DataError) as caught:
        load_comparison(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/comparison.json: was saved in format {version}, and this Workbench reads 3; "
        "measure again with: workbench compare"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not gzip", "is not a saved boundary: .*not a gzipped file"),
        (
            gzip.compress(b'{"format_version": 9}', mtime=0),
            "format version 9; this Workbench reads 1",
        ),
        (None, "No such file or directory"),
    ],
)
def test_a_damaged_boundary_is_named(tmp_path, content, reason):
    file = comparison().save(tmp_path) / "boundary-1.json.gz"
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(DataError, match=f"boundary-1.json.gz: .*{reason}"):
        load_comparison(tmp_path)


def test_a_damaged_plan_is_named(tmp_path):
    file = comparison().save(tmp_path) / "comparison.json"
    content = json.loads(file.read_text())
    content["variants"][1]["plan"]["format_version"] = 9
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match="comparison.json: .*the plan has format version 9"):
        load_comparison(tmp_path)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"format_version": 3}', '{"format_version": 3, "x": 2}']
)
def test_what_is_no_comparison_is_refused(tmp_path, text):
    (tmp_path / "comparison.json").write_text(text)
    with pytest.raises(DataError, match="comparison.json"):
        load_comparison(tmp_path)


def test_a_directory_without_one_is_named(tmp_path):
    with pytest.raises(DataError, match="holds no comparison.json; give a directory"):
        load_comparison(tmp_path)


def test_progress_tells_a_function_everything():
    said: list[str] = []
    progress = Progress(said.append)
    progress.phase("Starting a child process")
    progress.block(9, 24, 24.2)
    # A block that begins a moment later is not shown.
    progress.block(10, 24, 24.1)
    progress.end()
    assert said == ["Starting a child process", "Block 9 of 24, 25\u00a0s left"]


def test_progress_can_be_silent(capsys):
    progress = Progress(False)
    progress.phase("x")
    progress.block(1, 2, 3.0)
    progress.end()
    assert capsys.readouterr() == ("", "")


def test_a_log_gets_lines_but_not_every_block(capsys):
    progress = Progress(True)
    for number in range(1, 9):
        progress.block(number, 8, 1.0)
    assert capsys.readouterr().err == "Block 1 of 8, 1\u00a0s left\n"


def test_a_notebook_shows_one_line_in_place(monkeypatch):
    import IPython
    from IPython import display

    shown = []

    class Handle:
        def display(self, data, raw):
            shown.append(("display", data["text/plain"]))

        def update(self, data, raw):
            shown.append(("update", data["text/plain"]))

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(display, "DisplayHandle", Handle)
    progress = Progress(True)
    progress.phase("Warming up")
    progress.block(1, 2, 3.0)
    progress.end()
    assert shown == [
        ("display", "Warming up"),
        ("update", "Block 1 of 2, 3\u00a0s left"),
        ("update", ""),
    ]


def test_the_parent_of_an_experiment_loads_no_tensorflow():
    code = (
        "import sys, workbench.cli, workbench.experiments.comparison.compare\n"
        "import workbench.models.zoo.programs\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'ipywidgets')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
