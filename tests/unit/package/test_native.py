"""Finding and refusing a native library, without loading one."""

from __future__ import annotations

import ctypes
import json
import pathlib
from types import SimpleNamespace

import pytest

from workbench import _native
from workbench.errors import NativeError

STAMP = _native.Stamp(tensorflow="2.21.0", cxx11_abi=1, workbench="0.1.0")


def write_library(folder: pathlib.Path, **stamp: object) -> pathlib.Path:
    path = folder / "_workbench.so"
    path.write_bytes(b"")
    whole = {"format_version": 1, "tensorflow": "2.21.0", "cxx11_abi": 1, "workbench": "0.1.0"}
    path.with_name("_workbench.json").write_text(json.dumps({**whole, **stamp}))
    return path


def test_a_library_for_this_tensorflow_passes(tmp_path):
    path = write_library(tmp_path)
    assert _native.library_path([tmp_path / "elsewhere", tmp_path]) == path
    assert _native.read_stamp(path) == STAMP
    _native.check(STAMP, tensorflow="2.21.0", cxx11_abi=1)


def test_a_release_candidate_has_two_spellings(tmp_path):
    stamp = _native.read_stamp(write_library(tmp_path, tensorflow="2.22.0rc1"))
    _native.check(stamp, tensorflow="2.22.0-rc1", cxx11_abi=1)


def test_a_missing_library_names_the_places_and_the_command(tmp_path):
    with pytest.raises(NativeError) as caught:
        _native.library_path([tmp_path])
    for part in ("_workbench.so is not in", str(tmp_path), "build it: ", _native.rebuild()):
        assert part in str(caught.value)


def test_another_tensorflow_is_refused_with_both_versions():
    with pytest.raises(NativeError) as caught:
        _native.check(STAMP, tensorflow="2.22.1", cxx11_abi=1)
    for part in ("built for TensorFlow 2.21.0", "TensorFlow 2.22.1 is running", _native.rebuild()):
        assert part in str(caught.value)


def test_another_abi_is_refused_with_both():
    with pytest.raises(NativeError) as caught:
        _native.check(STAMP, tensorflow="2.21.0", cxx11_abi=0)
    for part in ("built with C++11 ABI 1", "has ABI 0", _native.rebuild()):
        assert part in str(caught.value)


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "not json", '{"format_version": 1}'])
def test_a_damaged_stamp_is_refused(tmp_path, text):
    path = write_library(tmp_path)
    stamp = path.with_name("_workbench.json")
    stamp.unlink() if text is None else stamp.write_text(text)
    with pytest.raises(NativeError) as caught:
        _native.read_stamp(path)
    for part in (str(stamp), "does not say what the native library was built for", "rebuild it"):
        assert part in str(caught.value)


def test_a_later_stamp_is_refused(tmp_path):
    path = write_library(tmp_path, format_version=2)
    with pytest.raises(NativeError, match="has format_version 2, this Workbench reads 1"):
        _native.read_stamp(path)


def test_the_rebuild_command_fits_the_installation(monkeypatch, tmp_path):
    monkeypatch.setattr(_native, "_PACKAGE", tmp_path / "workbench")
    assert _native.rebuild().startswith("pip install --force-reinstall --no-deps")
    (tmp_path / "native").mkdir()
    (tmp_path / "Makefile").touch()
    assert _native.rebuild() == f"make -C {tmp_path} native"


def test_c_functions_are_declared_before_they_are_called():
    loaded = SimpleNamespace(**{name: SimpleNamespace() for name in _native._SIGNATURES})
    assert _native._declared(loaded) is loaded
    assert loaded.workbench_lost_ops.restype is ctypes.c_int64
    assert loaded.workbench_lost_ops.argtypes == []
    # ctypes would turn a char* into bytes, and the text could not be freed
    assert loaded.workbench_learned_costs.restype is ctypes.c_void_p
    assert loaded.workbench_cost_model_type.argtypes == [ctypes.c_int64] * 4


def test_a_library_without_one_of_the_functions_is_refused():
    with pytest.raises(NativeError) as caught:
        _native._declared(SimpleNamespace())
    for part in ("has no function 'workbench_cost_model_type'", "rebuild it", _native.rebuild()):
        assert part in str(caught.value)
