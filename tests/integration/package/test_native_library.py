"""The library that was built: its stamp, and one load for all threads."""

from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import json

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
