"""The library that was built: its stamp, and one load for all threads."""

from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

import pytest
import tensorflow as tf

from workbench import _native, _native_stamp


def test_threads_share_one_library():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: _native.library(), range(4)))
    assert all(one is loaded[0] for one in loaded)


def test_the_stamp_beside_the_library_is_the_one_inside():
    _native.library()
    path = _native.library_path()
    stamp_of = ctypes.CDLL(str(path)).workbench_stamp
    stamp_of.restype = ctypes.c_char_p
    inside = json.loads(stamp_of())
    stamp = _native_stamp.read_stamp(path)
    assert dataclasses.asdict(stamp).items() <= inside.items()
    assert stamp.tensorflow.rpartition(".")[0] == tf.version.VERSION.rpartition(".")[0]


@pytest.mark.skipif(shutil.which("nm") is None, reason="binutils are not installed")
def test_only_the_c_functions_are_seen_from_outside():
    path = str(_native.library_path())
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, check=True)
    names = [line.split()[-1] for line in listed.stdout.decode().splitlines()]
    ours = [name for name in names if "workbench" in name]
    assert "workbench_stamp" in ours
    assert [name for name in ours if not name.startswith("workbench_")] == []


def test_every_kernel_and_pass_is_registered_so_that_no_exception_leaves_it():
    native = pathlib.Path(__file__).parents[3] / "native"
    files = [*native.rglob("*.cc"), *native.rglob("*.h")]
    sources = [each for each in files if each.parent.name != "registration"]
    lines = [line for each in sources for line in each.read_text().splitlines()]
    assert any("REGISTER_GUARDED_KERNEL(" in line for line in lines)
    assert not [line for line in lines if "REGISTER_KERNEL_BUILDER(" in line]
    text = "\n".join(lines)
    passes = re.findall(r"REGISTER_OPTIMIZATION\([^;]*;", text)
    assert passes
    assert all("GuardedPass<" in each for each in passes)
