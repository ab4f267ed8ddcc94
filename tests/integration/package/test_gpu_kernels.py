"""The library of kernels for GPUs, on a machine that may have none: it loads, and names its ops."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

import workbench as wb
from tests.bench import cuda_calls
from workbench import _native, _native_stamp
from workbench.errors import NativeError

_LIBRARY = _native.library_path().with_name("_workbench_cuda.so")
built = pytest.mark.skipif(
    not _LIBRARY.is_file(),
    reason="the kernels for GPUs were not built: `make cuda` does, where nvcc is",
)
# Of each op how many kernels there are for a GPU: of each type of tables, and of ids.
_OPS = {
    "WorkbenchLocalLookUp": 3,
    "WorkbenchResourceLocalLookUp": 3,
    "WorkbenchLocalLookUpGrad": 3,
    "WorkbenchGroupedLookUp": 6,
    "WorkbenchResourceGroupedLookUp": 6,
    "WorkbenchGroupedLookUpGrad": 6,
    "WorkbenchGroupedLookUpWeightGrad": 6,
    "WorkbenchResourceGroupedLookUpWeightGrad": 6,
    "WorkbenchGroupedApply": 2,
    "WorkbenchResourceGroupedApply": 2,
    "WorkbenchRowsApply": 1,
    "WorkbenchResourceRowsApply": 1,
}


@built
@pytest.mark.parametrize("op", _OPS)
def test_an_op_has_kernels_for_a_gpu(op: str) -> None:
    wb.load_gpu_kernels()
    wb.load_gpu_kernels()
    found = kernels.get_registered_kernels_for_op(op).kernel
    assert sum(kernel.device_type == "GPU" for kernel in found) == _OPS[op]
    assert any(kernel.device_type == "CPU" for kernel in found)


@built
def test_what_tensorflow_reads_on_the_host_stays_there() -> None:
    wb.load_gpu_kernels()
    found = kernels.get_registered_kernels_for_op("WorkbenchResourceGroupedApply").kernel
    on_host = {name for each in found if each.device_type == "GPU" for name in each.host_memory_arg}
    assert on_host == {"tables", "slots", "dense_shapes", "scalars"}


# In a process of its own: nothing else has loaded anything.
_FRESH = """
import workbench as wb
wb.load_gpu_kernels()
import tensorflow as tf
from workbench.ops import grouped_embedding_lookup
table = tf.Variable([[1.0, 2.0], [3.0, 5.0]])
(found,) = grouped_embedding_lookup([table], [tf.constant([1, 0])])
print(found.numpy().tolist())
"""


@built
def test_lookups_without_a_gpu_are_as_they_were() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FRESH], capture_output=True, text=True, check=True, timeout=280
    )
    assert ended.stdout.strip() == "[[3.0, 5.0], [1.0, 2.0]]"


@pytest.mark.parametrize(
    ("checkout", "command"),
    [
        (True, r"make -C \S+ cuda"),
        (False, r"pip install .* --config-settings cmake\.define\.WORKBENCH_CUDA=ON"),
    ],
)
def test_kernels_that_were_not_built_name_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkout: bool, command: str
) -> None:
    # The library itself is not in question.
    _native.library()
    monkeypatch.setattr(_native, "_GPU_KERNELS", [])
    monkeypatch.setattr(_native, "library_path", lambda: tmp_path / "_workbench.so")
    monkeypatch.setattr(_native_stamp, "PACKAGE", tmp_path / "workbench")
    if checkout:
        (tmp_path / "native").mkdir()
        (tmp_path / "Makefile").touch()
    said = rf"_workbench_cuda\.so is not there: .* by CUDA's nvcc; install that, then: {command}"
    with pytest.raises(NativeError, match=said):
        wb.load_gpu_kernels()


def test_a_damaged_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "_workbench_cuda.so").write_text("no library")
    # The library itself is not in question.
    _native.library()
    monkeypatch.setattr(_native, "_GPU_KERNELS", [])
    monkeypatch.setattr(_native, "library_path", lambda: tmp_path / "_workbench.so")
    with pytest.raises(NativeError, match=r"_workbench_cuda\.so cannot be loaded .*; rebuild it: "):
        wb.load_gpu_kernels()


def _library() -> ctypes.CDLL:
    _native.library()
    return cuda_calls.declared(ctypes.CDLL(str(_LIBRARY)))


def _padded(count: int, size: int) -> int:
    return -(-count * size // 256) * 256


@built
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="this machine has a GPU")
@pytest.mark.parametrize("weighted", [False, True])
def test_the_workspace_has_room_for_all_entries(weighted: bool) -> None:
    """The structures of ctypes are read as those of C++."""
    weights = np.ones([300], np.float32)
    own = weights.ctypes.data if weighted else None
    features = [
        cuda_calls.Feature(count=1000, examples=70, fills=1, table=1),
        cuda_calls.Feature(count=300, examples=50, kind=cuda_calls.INDICES, weights=own),
    ]
    tables = [cuda_calls.Table(rows=10, dim=4), cuda_calls.Table(rows=5000, dim=8)]
    call = cuda_calls.group(features, tables, wide_ids=True)
    entries = 1000 + 70 + 300
    # Of weighted ids each is an example of its own.
    examples = entries if weighted else 70 + 50
    expected = sum(
        [
            2 * _padded(entries, 8),
            3 * _padded(entries, 4),
            _padded(entries + 1, 4),
            _padded(examples, 8),
            _padded(examples, 4),
            _padded(len(tables) + 1, 4),
        ]
    )
    found = _library().workbench_cuda_workspace(ctypes.byref(call), cuda_calls.ASKED_ROWS)
    # Beside it the sort's own memory, which without a GPU is little.
    assert found - expected in range(64 * 1024)


@built
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="this machine has a GPU")
def test_a_launch_without_a_gpu_is_an_error_with_a_text() -> None:
    library = _library()
    ids, vectors = np.zeros([3], np.int64), np.zeros([3, 4], np.float32)
    feature = cuda_calls.Feature(
        ids=ids.ctypes.data, count=3, examples=3, vectors=vectors.ctypes.data, stride=4
    )
    table = cuda_calls.Table(values=vectors.ctypes.data, rows=3, dim=4)
    call = cuda_calls.group([feature], [table], wide_ids=True)
    error = library.workbench_cuda_look_up(None, ctypes.byref(call))
    assert error != 0
    assert b"driver" in library.workbench_cuda_error(error)
    with pytest.raises(RuntimeError, match=f"CUDA error {error}: "):
        cuda_calls.check(library, error)
