"""The functions of native/cuda/calls.h as ctypes sees them, in a library without TensorFlow.

`build()` compiles the kernels for this machine's GPU; arrays are the caller's matter.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_NATIVE = Path(__file__).parents[2] / "native"
_SOURCES = ("device/cuda_device", "rows/apply", "rows/gradient", "rows/look_up/look_up")
_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

DENSE, SPLITS32, SPLITS64, INDICES = range(4)
SUM, MEAN, SQRTN = range(3)
NO_NUMBERS, ASKED_ROWS, EVERY_ROW = range(3)
GRADIENT_DESCENT, ADAGRAD, ROW_WISE_ADAGRAD, ADAM, FTRL = range(5)


class Feature(ctypes.Structure):
    """FeatureCall."""

    _fields_ = [
        ("ids", _POINTER),
        ("rows", _POINTER),
        ("values", _POINTER),
        ("count", _LONG),
        ("examples", _LONG),
        ("unique", _LONG),
        ("fill_id", _LONG),
        ("sizes", _LONG * 4),
        ("rank", _INT),
        ("kind", _INT),
        ("combiner", _INT),
        ("table", _INT),
        ("prune", _INT),
        ("fills", _INT),
        ("vectors", _POINTER),
        ("stride", _LONG),
        ("weights", _POINTER),
        ("weight_gradient", _POINTER),
        ("prune_weights", _INT),
        ("shortens", _INT),
        ("max_norm", ctypes.c_float),
    ]


class Table(ctypes.Structure):
    """TableCall."""

    _fields_ = [("values", _POINTER), ("rows", _LONG), ("dim", _LONG), ("slots", _POINTER * 2)]


class Group(ctypes.Structure):
    """GroupCall."""

    _fields_ = [
        ("type", _INT),
        ("wide_ids", _INT),
        ("feature_count", _INT),
        ("table_count", _INT),
        ("features", ctypes.POINTER(Feature)),
        ("tables", ctypes.POINTER(Table)),
        ("complaint", _POINTER),
    ]


class Asked(ctypes.Structure):
    """Asked."""

    _fields_ = [
        ("entries", _LONG),
        ("examples", _LONG),
        ("row_bits", _INT),
        ("key_bits", _INT),
        *[(name, _POINTER) for name in ("keys", "who", "gradients", "factors", "numbers")],
        *[(name, _POINTER) for name in ("firsts", "table_firsts")],
    ]


class Rule(ctypes.Structure):
    """RuleCall."""

    _fields_ = [("rule", _INT), ("numbers", ctypes.c_float * 8)]


def group(features: Sequence[Feature], tables: Sequence[Table], *, wide_ids: bool) -> Group:
    """A call of float32 tables; it keeps the arrays that it points to."""
    return Group(
        wide_ids=wide_ids,
        feature_count=len(features),
        table_count=len(tables),
        features=(Feature * len(features))(*features),
        tables=(Table * len(tables))(*tables),
    )


def declared(library: Any) -> Any:
    """A loaded library with the functions' results and arguments."""
    by = ctypes.POINTER
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "workbench_cuda_look_up": (ctypes.c_int, [_POINTER, by(Group)]),
        "workbench_cuda_workspace": (_LONG, [by(Group), _INT]),
        "workbench_cuda_ask": (ctypes.c_int, [_POINTER, by(Group), _INT, _POINTER, by(Asked)]),
        "workbench_cuda_sum": (
            ctypes.c_int,
            [_POINTER, by(Group), by(Asked), _INT, _LONG, _LONG, _POINTER, _POINTER],
        ),
        "workbench_cuda_apply": (ctypes.c_int, [_POINTER, by(Group), by(Asked), by(Rule)]),
        "workbench_cuda_error": (ctypes.c_char_p, [ctypes.c_int]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@functools.cache
def build() -> Any:
    """The kernels compiled for the GPU of this machine, in half a minute."""
    built = Path(tempfile.mkdtemp()) / "lookups.so"
    command = ["nvcc", "-std=c++17", "-O3", "-fmad=false", "-arch=native", "-shared"]
    sources = [str(_NATIVE / f"cuda/{name}.cu") for name in _SOURCES]
    include = ["-I", str(_NATIVE), "-Xcompiler", "-fPIC,-fvisibility=hidden"]
    subprocess.run([*command, *include, "-o", str(built), *sources], check=True)
    return declared(ctypes.CDLL(str(built)))


def check(library: Any, error: int) -> None:
    """Raises where a call failed."""
    if error:
        raise RuntimeError(f"CUDA error {error}: {library.workbench_cuda_error(error).decode()}")
