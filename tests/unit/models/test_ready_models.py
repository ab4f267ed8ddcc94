"""`wb.models.dlrm()` and its like: programs that are ready to run."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import pytest

import workbench as wb
from workbench.errors import DataError, OptionError
from workbench.models import MODELS
from workbench.models.data import generated_file
from workbench.models.data.criteo import check_criteo, generate_criteo

NAMES = ("dlrm", "deepfm", "wdl", "dssm", "din", "dien")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache directory is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/workbench/data"


@pytest.mark.parametrize("name", NAMES)
def test_each_generates_its_data_once(name, cache, monkeypatch):
    program = getattr(wb.models, name)(rows=30)
    assert isinstance(program, wb.Program)
    assert program.name == name
    (file,) = (path for path in cache.iterdir() if not path.name.endswith(".recipe.json"))
    assert program.settings["data"] == str(file)
    assert program.settings["rows"] == 30
    monkeypatch.setattr(generated_file, "replacing", lambda path: pytest.fail("written again"))
    assert getattr(wb.models, name)(rows=30).settings == program.settings


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_models_options(name):
    given = inspect.signature(getattr(wb.models, name)).parameters
    options = {field.name: field.default for field in dataclasses.fields(MODELS[name]().options)}
    del options["data"]
    defaults = {key: each.default for key, each in given.items() if key not in ("data", "rows")}
    assert defaults == options


def test_a_program_says_what_makes_it_again(cache):
    origin = wb.models.wdl(rows=30, batch_size=8, wide_learning_rate=0.5, seed=3).origin
    assert origin.to_json() == {
        "model": "wdl",
        "options": {
            "data": None,
            "rows": 30,
            "batch_size": 8,
            "input_latency_ms": 0.0,
            "learning_rate": 0.01,
            "seed": 3,
            "wide_learning_rate": 0.5,
            "table_learning_rate": 0.05,
        },
    }
    assert (cache / "clicks-30-3.tsv").is_file()


def test_a_file_of_ones_own_is_checked_and_named(tmp_path):
    path = generate_criteo(tmp_path / "mine.tsv", rows=40)
    program = wb.models.dlrm(path, rows=25)
    assert program.settings["rows"] == 25
    assert program.origin.options["data"] == str(path)
    assert wb.models.dlrm(str(path)).settings["rows"] == 40
    table = check_criteo(path)
    assert wb.models.dlrm(table).settings["rows"] == 40
    (tmp_path / "bad.tsv").write_text("0\t1\n")
    with pytest.raises(DataError, match=r"bad.tsv, row 1: 2 columns; expected 40"):
        wb.models.dlrm(tmp_path / "bad.tsv")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data": 5}, "data is 5; expected a path, a checked table or None"),
        ({"rows": 0}, "rows is 0; expected an integer of at least 1"),
        ({"rows": 2.5}, "rows is 2.5; expected an integer of at least 1"),
        ({"rows": 5, "batch_size": 0}, "batch_size is 0; expected at least 1"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(OptionError) as caught:
        wb.models.dlrm(**given)
    assert str(caught.value) == said


def test_rows_of_a_checked_table_are_known(tmp_path):
    table = check_criteo(generate_criteo(tmp_path / "mine.tsv", rows=9))
    with pytest.raises(OptionError, match="rows is 5, and data is a table of which 9 rows are"):
        wb.models.dlrm(table, rows=5)


def test_another_process_never_finds_a_file_without_its_recipe(tmp_path, monkeypatch):
    path, found = tmp_path / "clicks.tsv", []
    replacing = generated_file.replacing

    class Watched:
        def __init__(self, target):
            self.inner = replacing(target)

        def __enter__(self):
            return self.inner.__enter__()

        def __exit__(self, *error):
            ended = self.inner.__exit__(*error)
            found.append({file.name for file in tmp_path.iterdir() if ".part" not in file.name})
            return ended

    monkeypatch.setattr(generated_file, "replacing", Watched)
    generate_criteo(path, rows=5)
    assert found == [{"clicks.tsv.recipe.json"}, {"clicks.tsv.recipe.json", "clicks.tsv"}]


def test_two_processes_at_once_have_the_same_whole_file(cache):
    code = "import workbench as wb; print(wb.models.dlrm(rows=3000).settings['data'])"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=60)[0].strip() for each in running]
    assert [each.returncode for each in running] == [0, 0]
    assert said == [str(cache / "clicks-3000-1.tsv")] * 2
    assert check_criteo(cache / "clicks-3000-1.tsv").rows == 3000
    assert sorted(path.name for path in cache.iterdir()) == [
        "clicks-3000-1.tsv",
        "clicks-3000-1.tsv.recipe.json",
    ]


def test_importing_the_models_loads_nothing_heavy():
    code = (
        "import sys, workbench as wb; wb.models.dlrm\n"
        "print([m for m in ('numpy', 'tensorflow', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
