"""Runs one of Keras's own test files, which lie in its wheel, with its models changed.

python -m tests.peer.keras_files --mode fuse_model --tests FOLDER --record RECORD FILE [TEST …]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.peer.keras_plugin import KerasPlugin
from tests.peer.modes import STOCK, mode_named
from tests.peer.product_counts import ProductCounts
from tests.peer.records import RecordWriter


def folder() -> Path:
    """Where the installed Keras lies."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default=STOCK)
    parser.add_argument("--tests", type=Path, required=True, help="the folder of Keras")
    parser.add_argument("--record", type=Path, required=True, help="where events are written")
    parser.add_argument("--packages", help="a folder with what only these tests import")
    parser.add_argument("file", help="a test file below the folder")
    parser.add_argument("names", nargs="*", help="only these tests")
    chosen = parser.parse_args(arguments)
    if chosen.packages:
        # Last, so that the installed packages are not hidden.
        sys.path.append(chosen.packages)
    counts = ProductCounts()
    writer = RecordWriter(chosen.record, counts.as_json)
    path = str(chosen.tests / chosen.file)
    tests = ["::".join([path, *name.split(".", 1)]) for name in chosen.names] or [path]
    options = ["-q", "-c", "/dev/null", "--rootdir", str(chosen.tests.parent)]
    options += ["-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["--import-mode=importlib"]
    plugin = KerasPlugin(mode_named(chosen.mode), counts, writer)
    status = pytest.main([*options, *tests], plugins=[plugin])
    writer.counted()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
