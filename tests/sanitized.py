r"""Runs tests with another build of the native library, such as one with AddressSanitizer in it.

    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
      python -m tests.sanitized BUILD_FOLDER TEST…

The sanitizer's own runtime must be in the process before Python is, and the C++ library that it
watches with it, hence LD_PRELOAD. What it finds ends the process.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench import _native


def main(folder: str, *arguments: str) -> int:
    found = Path(folder).resolve()
    if not (found / "_workbench.so").is_file():
        raise SystemExit(f"{found} has no _workbench.so; build it first")
    _native._folders = lambda: [found]
    # Workers of xdist would be processes of their own, with the library as it is installed.
    return int(pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
