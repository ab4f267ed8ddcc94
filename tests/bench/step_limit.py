"""The reference program: native/bench/step_limit.cc, compiled and called."""

from __future__ import annotations

import ctypes
import functools
import platform
from typing import Any

import numpy as np

from tests.bench.compiled import compiled
from tests.bench.limit_parts import PARTS

# A product of DLRM's size, and how often it is done to tell its rate.
_ROWS, _COLUMNS, _INNER, _TIMES = 512, 512, 512, 60
_ROUNDS = 10


class StepLimit:
    """A step of a model, from a file that `limit_file.write` wrote.

    Attributes:
      flops: floating-point operations of a step's products.
    """

    def __init__(self, path: str, threads: int) -> None:
        self._library = _library()
        self._program = self._library.step_limit_open(path.encode(), threads)
        if not self._program:
            raise SystemExit(f"{path} is no file of limit_file.write, or has no room in memory")
        self.flops: float = self._library.step_limit_flops(self._program)

    def run(self, steps: int) -> None:
        """Runs steps."""
        self._library.step_limit_run(self._program, steps, None)

    def losses(self, steps: int) -> np.ndarray:
        """Runs steps; float32 [steps], the loss of each."""
        values = np.zeros(steps, np.float32)
        self._library.step_limit_run(self._program, steps, values.ctypes.data)
        return values

    def parts(self, steps: int) -> dict[str, float]:
        """Runs steps; the CPU seconds that all threads together take for each part of a step."""
        seconds = np.zeros(len(PARTS))
        self._library.step_limit_parts(self._program, steps, seconds.ctypes.data)
        return dict(zip(PARTS, seconds.tolist(), strict=True))

    def close(self) -> None:
        """Frees it; it is not used again."""
        self._library.step_limit_close(self._program)
        self._program = None


def multiply_adds(threads: int) -> float:
    """Multiply-adds a second of one of so many threads, in the best of some products."""
    rate = _library().step_limit_multiply_adds
    return max(float(rate(threads, _ROWS, _COLUMNS, _INNER, _TIMES)) for _ in range(_ROUNDS))


@functools.cache
def _library() -> Any:
    flags = ["-std=c++17", "-shared", "-fPIC", "-pthread", "-fno-math-errno"]
    if platform.machine() == "x86_64":
        flags.append("-mprefer-vector-width=512")
    library = ctypes.CDLL(compiled("step_limit", *flags))
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    library.step_limit_open.restype = pointer
    library.step_limit_open.argtypes = [ctypes.c_char_p, ctypes.c_int]
    library.step_limit_run.restype = None
    library.step_limit_run.argtypes = [pointer, integer, pointer]
    library.step_limit_parts.restype = None
    library.step_limit_parts.argtypes = [pointer, integer, pointer]
    library.step_limit_flops.restype = ctypes.c_double
    library.step_limit_flops.argtypes = [pointer]
    library.step_limit_close.restype = None
    library.step_limit_close.argtypes = [pointer]
    library.step_limit_multiply_adds.restype = ctypes.c_double
    library.step_limit_multiply_adds.argtypes = [ctypes.c_int, *[integer] * 4]
    return library
