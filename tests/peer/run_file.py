"""Runs one of TensorFlow's own test files, with the product underneath.

    python -m tests.peer.run_file --mode fusion --tests FOLDER --record RECORD FILE [Class.test …]

The process has the variables of `source_folder.runfiles` in its environment. TensorFlow's test
runner ends it.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import runpy
import sys
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.peer.modes import STOCK, mode_named
from tests.peer.product_counts import ProductCounts
from tests.peer.records import FAILED, PASSED, SKIPPED, RecordWriter
from tests.peer.source_folder import extend_packages


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default=STOCK)
    parser.add_argument("--tests", type=Path, required=True, help="the folder of tests")
    parser.add_argument("--record", type=Path, required=True, help="where events are written")
    parser.add_argument("file", help="a test file below the folder")
    parser.add_argument("names", nargs="*", help="only these tests")
    chosen = parser.parse_args(arguments)
    mode, counts = mode_named(chosen.mode), ProductCounts()
    writer = RecordWriter(chosen.record, counts.as_json)
    _record_tests(writer)
    extend_packages(chosen.tests)
    atexit.register(writer.counted)
    if mode.name != STOCK:
        from tests.peer.watched_sessions import watch

        watch(mode, counts)
    path = str(chosen.tests / chosen.file)
    sys.argv = [path, *chosen.names]
    runpy.run_path(path, run_name="__main__")


def _record_tests(writer: RecordWriter) -> None:
    """Has every result of `unittest` write what becomes of a test."""
    result = unittest.TestResult

    def follow(name: str, write: Any) -> None:
        plain = getattr(result, name)

        @functools.wraps(plain)
        def followed(self: Any, test: Any, *rest: Any) -> Any:
            write(_name(test), *rest)
            return plain(self, test, *rest)

        setattr(result, name, followed)

    def failed(test: str, error: Any = None) -> None:
        kind, value = (error or (AssertionError, "the test passed unexpectedly"))[:2]
        writer.ended(test, FAILED, f"{kind.__name__}: {value}")

    follow("startTest", writer.started)
    follow("addSuccess", lambda test: writer.ended(test, PASSED))
    follow("addExpectedFailure", lambda test, error: writer.ended(test, PASSED))
    follow("addSkip", lambda test, reason: writer.ended(test, SKIPPED))
    for name in ("addError", "addFailure", "addUnexpectedSuccess"):
        follow(name, failed)
    follow("addSubTest", lambda test, part, error: failed(test, error) if error else None)


def _name(test: Any) -> str:
    method = getattr(test, "_testMethodName", None)
    # A class or module that could not be set up has none.
    return f"{type(test).__name__}.{method}" if method else str(test)


if __name__ == "__main__":
    main()
