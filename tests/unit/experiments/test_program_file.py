"""Programs that stand in a file: what their place says, what stands there, and what is refused."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

import cloudpickle
import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.function_program import arguments_of_make, own_batch_size
from workbench.experiments.program.own import program_file
from workbench.experiments.program.own.program_file import find_program, program_at
from workbench.experiments.program.own.program_place import is_place, program_place

FILE = """
import functools
import workbench as wb
from beside import LOSS

class Model:
    def train_step(self, data):
        return LOSS

class Step:
    def get_concrete_function(self):
        return None

def build(optimizations):
    return wb.Built(train_op=("step", optimizations.batch_size), loss=LOSS)

def build_by_default(optimizations=None):
    return wb.Built(train_op="step")

def make():
    return "step", "data"

def make_wide(dim=8, **others):
    return "step", (dim, others)


def make_sized(batch_size=16):
    return "step", batch_size

def make_of(batch_size):
    return "step", batch_size

def several(first, second):
    return first, second

partial = functools.partial(several, 1)
program = wb.Program(name="mine", build=build, build_epoch=build, settings={"width": 3})
function = wb.FunctionProgram(name="fn", make=make_sized, settings={"width": 4})
model, step, dataset = Model(), Step(), [1, 2]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a file of programs and one that it imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    program_file._loaded.cache_clear()
    (tmp_path / "beside.py").write_text("LOSS = 0.5\n")
    (tmp_path / "my_model.py").write_text(FILE)
    return tmp_path


def travelled(text: str) -> Any:
    """The program of a place, as it arrives in a child process."""
    place = program_place(text)
    return cloudpickle.loads(cloudpickle.dumps(program_at(place, find_program(place))))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("my_model.py:build", True),
        ("package.module:make", True),
        ("my_model.py", True),
        ("folder/model", True),
        ("dlrm", False),
        ("bert", False),
    ],
)
def test_what_is_a_place(text, found):
    assert is_place(text) == found


def test_a_build_function_is_a_program_of_a_graph(folder):
    program = travelled("my_model.py:build")
    assert isinstance(program, wb.Program)
    assert program.name == "my_model"
    assert program.settings == {"program": "my_model.py:build"}
    assert program.origin.to_json() == {"place": "my_model.py:build"}
    built = program.build(Optimizations(batch_size=9))
    assert (built.train_op, built.loss) == (("step", 9), 0.5)
    assert program.build_epoch is None
    assert travelled("my_model.py:build_by_default").build(Optimizations()).train_op == "step"
    assert isinstance(travelled("my_model.py:partial"), wb.Program)


def test_a_make_function_is_a_program_of_a_function(folder):
    program = travelled("my_model.py:make")
    assert isinstance(program, wb.FunctionProgram)
    assert program.make() == ("step", "data")
    assert own_batch_size(program) is None


@pytest.mark.parametrize("name", ["make_sized", "function"])
def test_the_size_of_a_batch_can_be_chosen_where_make_has_one(folder, name):
    program = travelled(f"my_model.py:{name}")
    assert own_batch_size(program) == 16
    assert program.make() == ("step", 16)
    assert program.make(batch_size=64) == ("step", 64)


def test_own_toggles_reach_the_make_of_a_file(folder):
    program = travelled("my_model.py:make_wide")
    dim, width = wb.Toggle("dim", [8, 16]), wb.Toggle("width", [1, 2])
    setting = Optimizations(chosen=(dim.at(16), width.at(2)))
    given = arguments_of_make(program, setting)
    assert program.make(**given) == ("step", (16, {"width": 2}))
    assert own_batch_size(program) is None
    with pytest.raises(OptionError, match="make has no parameter 'dim'"):
        arguments_of_make(travelled("my_model.py:make_sized"), setting)


def test_a_program_keeps_its_name_parts_and_settings(folder):
    program = travelled("my_model.py:program")
    assert (program.name, program.settings["width"]) == ("mine", 3)
    assert program.build_epoch(Optimizations()).loss == 0.5
    assert program.build_input is None
    assert travelled("my_model.py:function").name == "fn"


def test_a_model_and_its_dataset_are_new_each_time(folder):
    program = travelled("my_model.py:model,dataset")
    (first, data), (second, _) = program.make(), program.make()
    assert type(first).__name__ == "Model"
    assert data == [1, 2]
    assert first is not second


def test_a_module_is_found_from_the_working_directory(folder):
    (folder / "package").mkdir()
    (folder / "package/__init__.py").write_text("")
    (folder / "package/model.py").write_text("def make():\n    return 'step', 'data'\n")
    program = travelled("package.model:make")
    assert (program.name, program.make()) == ("package.model", ("step", "data"))


def test_a_file_with_the_name_of_a_module_does_not_replace_it(folder):
    (folder / "json.py").write_text("def make():\n    return 'mine', 'data'\n")
    assert travelled("json.py:make").make() == ("mine", "data")
    assert sys.modules["json"].dumps(1) == "1"


def test_the_file_runs_where_the_program_arrives(folder):
    place = program_place("my_model.py:build")
    program = program_at(place, find_program(place))
    program_file._loaded.cache_clear()
    (folder / "my_model.py").write_text("import no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        cloudpickle.loads(cloudpickle.dumps(program))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("my_model.py", "'my_model.py' names a file and nothing in it; expected FILE.py:NAME"),
        ("no.py:build", "no.py: no such file; expected FILE.py:NAME or package.module:NAME"),
        ("book.ipynb", "'book.ipynb' names a file and nothing in it"),
        ("book.ipynb:build", "'book.ipynb:build' is a notebook; measure a cell of it there"),
        ("my_model.py:", "'my_model.py:' ends in '', which names nothing"),
        ("my_model.py:a,b,c", "ends in 'a,b,c', which names nothing"),
        ("my_model.py:os.system('x')", "which names nothing; expected FILE.py:NAME"),
        ("../x:build", "'../x:build' is neither a Python file nor a module"),
        (".:build", "'.:build' is neither a Python file nor a module"),
        ("no.such\n:build", "'no.such\\\\n:build' is neither a Python file nor a module"),
        ("folder.py:build", "folder.py: cannot be read: Is a directory"),
        ("broken.py:build", "`broken.py`, line 2: SyntaxError: "),
        ("binary.py:build", "binary.py"),
        ("nul.py:build", "null bytes"),
    ],
)
def test_a_place_that_cannot_be_read(folder, text, said):
    (folder / "folder.py").mkdir()
    (folder / "broken.py").write_text("x = 1\ndef build(:\n")
    (folder / "binary.py").write_bytes(b"x = '\xff\xfe'\n")
    (folder / "nul.py").write_bytes(b"x = 1\0\n")
    with pytest.raises(OptionError) as caught:
        program_place(text)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("my_model.py:bild", "my_model.py has no 'bild'; did you mean 'build'?"),
        ("my_model.py:zzzzzz", "my_model.py has no 'zzzzzz'; it defines Model, Step, build, "),
        (
            "my_model.py:model",
            "'model' is a model, which is trained on a dataset; name both, as in ",
        ),
        ("my_model.py:step", "'step' is a tf.function, which is trained on a dataset; name both"),
        ("my_model.py:dataset", "'dataset' is of type list and no function; expected build(opt"),
        ("my_model.py:Model", "'Model' is a model"),
        ("my_model.py:make_of", "'make_of' needs a batch_size; give that parameter a default"),
        ("my_model.py:several", "'several' takes first and second; expected build(optimizations)"),
        ("my_model.py:model,data", "my_model.py has no 'data'; did you mean 'dataset'?"),
        ("ends.py:build", "ends.py ends its process while it is imported; put what it runs as a"),
        ("no_such.module:build", "there is no module 'no_such' in "),
    ],
)
def test_what_cannot_be_run(folder, text, said):
    (folder / "ends.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(OptionError) as caught:
        find_program(program_place(text))
    assert said in str(caught.value)


def test_an_import_that_fails_inside_a_module_is_the_users_own_error(folder):
    (folder / "inner.py").write_text("import no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        find_program(program_place("inner:build"))


def test_every_callable_of_a_file_says_what_it_takes(folder):
    assert list(inspect.signature(travelled("my_model.py:make").make).parameters) == []
    sized = travelled("my_model.py:make_sized").make
    assert list(inspect.signature(sized).parameters) == ["batch_size"]


def test_functions_of_the_file_keep_their_source_for_autograph(folder):
    build = program_file._loaded(program_place("my_model.py:build")).build
    assert textwrap.dedent(inspect.getsource(build)).startswith("def build(optimizations):")
