"""Programs travel as bytes, and their code knows its files on the other side."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
import types
import xml.etree.ElementTree

import cloudpickle
import pytest

from workbench.experiments.program.pickled import pickled

FACTOR = 3


@pytest.fixture(params=["this one's", "<dynamic-code>"], autouse=True)
def _names(request, monkeypatch):
    """Files are named as this cloudpickle does, or not at all, as releases since 3.1.3 do."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    if request.param == "<dynamic-code>":
        table = cloudpickle.Pickler.dispatch_table
        reduced = table[types.CodeType]

        def nameless(code):
            return reduced(code.replace(co_filename=request.param))

        monkeypatch.setitem(table, types.CodeType, nameless)
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def outer(number):
    def inner(more):
        return (number + more) * FACTOR

    return inner


def test_functions_come_back_with_their_files_and_what_they_use():
    inner = cloudpickle.loads(pickled(outer))(4)
    assert inner(5) == 27
    assert inner.__code__.co_filename == outer.__code__.co_filename == __file__
    assert cloudpickle.loads(pickled(outer(1)))(1) == 6
    assert cloudpickle.loads(pickled(lambda: 1)).__code__.co_filename == __file__


def test_code_does_too():
    code = cloudpickle.loads(pickled(compile("a = 1", "<cell 5>", "exec")))
    assert code.co_filename == "<cell 5>"


def test_what_cannot_be_pickled_is_refused_as_before():
    with pytest.raises(TypeError, match="cannot pickle"):
        pickled(sys._getframe())


def in_another_process(written: bytes) -> str:
    """What a function gives that was written, in a process that has this one's paths."""
    program = "import sys, cloudpickle; print(cloudpickle.loads(sys.stdin.buffer.read())())"
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", program], input=written, env=environment, capture_output=True
    )
    return (done.stdout or done.stderr).decode().strip()


class TestModules:
    CODE = (
        "import helper_of_mine\n"
        "class Kept: value = 40\n"
        "def make(): return Kept.value + helper_of_mine.two()"
    )
    HELPER = "def two(): return 2"

    def load(self, name, file, monkeypatch):
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    @pytest.mark.parametrize("name", ["__mp_main__", "mine_alone", "json"])
    def test_what_no_import_finds_travels_whole(self, tmp_path, monkeypatch, name):
        (tmp_path / "helper.py").write_text(self.HELPER)
        (tmp_path / "script.py").write_text(self.CODE)
        self.load("helper_of_mine", tmp_path / "helper.py", monkeypatch)
        module = self.load(name, tmp_path / "script.py", monkeypatch)
        registered = cloudpickle.list_registry_pickle_by_value()
        written = pickled(module.make)
        assert cloudpickle.list_registry_pickle_by_value() == registered
        assert in_another_process(written) == "42"

    def test_a_module_made_in_memory_does_too(self, monkeypatch):
        module = types.ModuleType("made_in_memory")
        exec("def make(): return 42", module.__dict__)
        monkeypatch.setitem(sys.modules, "made_in_memory", module)
        assert in_another_process(pickled(module.make)) == "42"

    def test_what_an_import_finds_travels_by_name(self):
        for function in (textwrap.dedent, os.path.join, xml.etree.ElementTree.parse):
            written = pickled(function)
            assert len(written) < 100
            assert cloudpickle.loads(written) is function
