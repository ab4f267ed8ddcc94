"""Finding and refusing a native library, without loading one."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import pathlib
from types import SimpleNamespace

import pytest

from workbench import _native, _native_stamp
from workbench.errors import NativeError, UnsupportedError

STAMP = _native_stamp.Stamp(
    tensorflow="2.21.0", cxx11_abi=1, executors=True, dense=True, workbench="0.1.0"
)


def write_library(folder: pathlib.Path, **stamp: object) -> pathlib.Path:
    path = folder / "_workbench.so"
    path.write_bytes(b"")
    whole = {"format_version": 3, "workbench": "0.1.0"}
    whole |= {"tensorflow": "2.21.0", "cxx11_abi": 1, "executors": 1, "dense": 1}
    path.with_name("_workbench.json").write_text(json.dumps({**whole, **stamp}))
    return path


def test_a_library_for_this_tensorflow_passes(tmp_path):
    path = write_library(tmp_path)
    assert _native.library_path([tmp_path / "elsewhere", tmp_path]) == path
    assert _native_stamp.read_stamp(path) == STAMP
    _native_stamp.check(STAMP, tensorflow="2.21.0", cxx11_abi=1)


def test_a_release_candidate_has_two_spellings(tmp_path):
    stamp = _native_stamp.read_stamp(write_library(tmp_path, tensorflow="2.22.0rc1"))
    _native_stamp.check(stamp, tensorflow="2.22.0-rc1", cxx11_abi=1)


def test_releases_of_one_minor_version_are_alike():
    _native_stamp.check(STAMP, tensorflow="2.21.1", cxx11_abi=1)


@pytest.mark.parametrize(
    ("built_for", "running", "fitting"),
    [
        ("2.22.0rc1", "2.22.0", "==2.22.0rc1"),
        ("2.22.0rc1", "2.22.0-rc2", "==2.22.0rc1"),
        ("2.22.0", "2.22.0-rc1", "==2.22.*"),
        ("2.2.0", "2.20.0", "==2.2.*"),
        ("2.21.0", "2.21.0-dev20260101", "==2.21.*"),
    ],
)
def test_what_only_looks_alike_is_refused_with_what_fits(built_for, running, fitting):
    stamp = dataclasses.replace(STAMP, tensorflow=built_for)
    with pytest.raises(NativeError) as caught:
        _native_stamp.check(stamp, tensorflow=running, cxx11_abi=1)
    assert str(caught.value).endswith(f"pip install 'tensorflow{fitting}'")


def test_a_missing_library_names_the_places_and_the_command(tmp_path):
    with pytest.raises(NativeError) as caught:
        _native.library_path([tmp_path])
    for part in ("_workbench.so is not in", str(tmp_path), "build it: ", _native_stamp.rebuild()):
        assert part in str(caught.value)


def test_another_tensorflow_is_refused_with_both_versions():
    with pytest.raises(NativeError) as caught:
        _native_stamp.check(STAMP, tensorflow="2.22.1", cxx11_abi=1)
    said = str(caught.value)
    for part in (
        "built for TensorFlow 2.21.0",
        "TensorFlow 2.22.1 is running",
        _native_stamp.rebuild(),
    ):
        assert part in said
    assert said.endswith("pip install 'tensorflow==2.21.*'")
    assert "\n" not in said


def test_another_abi_is_refused_with_both():
    with pytest.raises(NativeError) as caught:
        _native_stamp.check(STAMP, tensorflow="2.21.0", cxx11_abi=0)
    for part in ("built with C++11 ABI 1", "has ABI 0", _native_stamp.rebuild()):
        assert part in str(caught.value)


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "not json", '{"format_version": 3}'])
def test_a_damaged_stamp_is_refused(tmp_path, text):
    path = write_library(tmp_path)
    stamp = path.with_name("_workbench.json")
    stamp.unlink() if text is None else stamp.write_text(text)
    with pytest.raises(NativeError) as caught:
        _native_stamp.read_stamp(path)
    for part in (str(stamp), "does not say what the native library was built for", "rebuild it"):
        assert part in str(caught.value)


def test_a_later_stamp_is_refused(tmp_path):
    path = write_library(tmp_path, format_version=4)
    with pytest.raises(NativeError, match="has format_version 4, this Workbench reads 3"):
        _native_stamp.read_stamp(path)


def test_the_rebuild_command_fits_the_installation(monkeypatch, tmp_path):
    monkeypatch.setattr(_native_stamp, "PACKAGE", tmp_path / "workbench")
    assert _native_stamp.rebuild().startswith("pip install --force-reinstall --no-deps")
    (tmp_path / "native").mkdir()
    (tmp_path / "Makefile").touch()
    assert _native_stamp.rebuild() == f"make -C {tmp_path} native"


def test_c_functions_are_declared_before_they_are_called():
    names = [*_native._SIGNATURES, *_native._OF_EXECUTORS, *_native._OF_DENSE]
    loaded = SimpleNamespace(**{name: SimpleNamespace() for name in names})
    assert _native._declared(loaded, STAMP) is loaded
    assert loaded.workbench_lost_ops.restype is ctypes.c_int64
    assert loaded.workbench_lost_ops.argtypes == []
    # ctypes would turn a char* into bytes, and the text could not be freed
    assert loaded.workbench_learned_costs.restype is ctypes.c_void_p
    assert loaded.workbench_cost_model_type.argtypes == [ctypes.c_int64] * 4


def test_a_library_without_one_of_the_functions_is_refused():
    with pytest.raises(NativeError) as caught:
        _native._declared(SimpleNamespace(), STAMP)
    for part in ("has no function 'workbench_free'", "rebuild it", _native_stamp.rebuild()):
        assert part in str(caught.value)


def test_a_library_without_executors_or_dense_kernels_has_none_of_their_functions():
    loaded = SimpleNamespace(**{name: SimpleNamespace() for name in _native._SIGNATURES})
    bare = dataclasses.replace(STAMP, executors=False, dense=False)
    assert _native._declared(loaded, bare) is loaded
    with pytest.raises(NativeError, match="has no function 'workbench_cost_model_type'"):
        _native._declared(loaded, STAMP)


def test_what_needs_executors_says_since_when_they_are_there(tmp_path, monkeypatch):
    path = write_library(tmp_path, tensorflow="2.18.1", executors=0)
    monkeypatch.setattr(_native, "library_path", lambda: path)
    assert not _native.has_executors()
    with pytest.raises(UnsupportedError) as caught:
        _native.require_executors("the executor policy 'inline'")
    assert str(caught.value) == (
        "the executor policy 'inline' needs Workbench's executors, which this build for TensorFlow "
        "2.18.1 lacks: TensorFlow's package has had the headers for them only since 2.20; install "
        "Workbench for TensorFlow 2.20 or newer"
    )
    write_library(tmp_path)
    assert _native.has_executors()
    _native.require_executors("the executor policy 'inline'")
