"""What benches compile for themselves from native/bench, for this machine."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCES = Path(__file__).parents[2] / "native/bench"


@functools.cache
def compiled(name: str, *flags: str) -> str:
    """Compiles native/bench/{name}.cc by the C++ compiler, $CXX or g++; the path of the result."""
    built = os.path.join(tempfile.mkdtemp(), name)
    compiler = os.environ.get("CXX", "g++")
    source = str(_SOURCES / f"{name}.cc")
    subprocess.run([compiler, "-O3", "-march=native", *flags, "-o", built, source], check=True)
    return built
