"""The models' registry, their options, and what the command line makes of them; no TensorFlow."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from workbench.cli.main import main
from workbench.errors import OptionError, RunError
from workbench.experiments.comparison import compare as experiments
from workbench.models import MODELS
from workbench.models.data.table_format import CheckedTable

NAMES = ("dlrm", "deepfm", "wdl", "dssm", "din", "dien")


def test_the_zoo_has_six_models():
    assert tuple(MODELS) == NAMES


def test_naming_them_loads_nothing_heavy_and_making_them_no_tensorflow():
    code = (
        "import sys\nfrom workbench.models import MODELS\n"
        "loaded = lambda *names: [n for n in names if n in sys.modules]\n"
        "print(loaded('numpy', 'pandas', 'tensorflow'))\n"
        "for make in MODELS.values(): make()\n"
        "print(loaded('tensorflow', 'keras'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_generates_what_it_checks_and_has_all_parts(tmp_path, name):
    model = MODELS[name]()
    data = model.check(model.generate(tmp_path / model.file_name, rows=20, seed=2))
    assert (data.rows, data.more) == (20, False)
    options = model.options(data=data)
    program = model.program(options)
    assert program.name == name
    assert program.build_epoch and program.build_input and program.build_compute
    given = {field.name for field in dataclasses.fields(options)} - {"data"}
    assert given | {"data", "rows"} == set(program.settings)
    assert {"batch_size", "input_latency_ms", "learning_rate", "seed"} <= given


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("batch_size", 0, "batch_size is 0; expected at least 1"),
        ("input_latency_ms", -1.0, "input_latency_ms is -1.0; expected 0 to 60 000 milliseconds"),
        ("learning_rate", 0, "learning_rate is 0; expected a number above 0"),
        ("learning_rate", float("nan"), "learning_rate is nan; expected a number above 0"),
    ],
)
def test_options_are_checked(tmp_path, name, field, value, said):
    data = CheckedTable(path=tmp_path / "x", rows=1, more=False)
    with pytest.raises(OptionError) as caught:
        MODELS[name]().options(data=data, **{field: value})
    assert str(caught.value) == said


def test_every_learning_rate_is_checked(tmp_path):
    data = CheckedTable(path=tmp_path / "x", rows=1, more=False)
    with pytest.raises(OptionError, match=r"wide_learning_rate is inf; expected a number above 0"):
        MODELS["wdl"]().options(data=data, wide_learning_rate=float("inf"))


@pytest.mark.parametrize(
    ("name", "file", "batch_size"),
    [
        ("dlrm", "clicks-9-1.tsv", 512),
        ("wdl", "clicks-9-1.tsv", 512),
        ("dssm", "advertisements-9-1.csv", 4096),
        ("din", "sequences-9-1.tsv", 512),
        ("dien", "sequences-passed-over-9-1.tsv", 512),
    ],
)
def test_the_command_line_runs_each_on_generated_data(
    tmp_path, monkeypatch, capsys, name, file, batch_size
):
    seen = []

    def stop(program, *arguments, **options):
        seen.append(program)
        raise RunError("enough")

    monkeypatch.setattr(experiments, "compare", stop)
    command = ["compare", name, "--generate", "9", "--out", str(tmp_path)]
    assert main(command) == 1
    assert main([*command, "--batch-size", "3"]) == 1
    assert [program.name for program in seen] == [name, name]
    assert [program.settings["batch_size"] for program in seen] == [batch_size, 3]
    assert (tmp_path / file).is_file()
    assert f"{tmp_path / file}, 9 rows" in capsys.readouterr().out


def test_data_of_another_model_is_refused_by_its_columns(tmp_path, capsys):
    clicks = MODELS["dlrm"]().generate(tmp_path / "clicks.tsv", rows=2)
    assert main(["compare", "din", "--data", str(clicks), "--out", str(tmp_path / "x")]) == 2
    assert "clicks.tsv, row 1: 40 columns; expected 6 (CLICKED, UID" in capsys.readouterr().err
