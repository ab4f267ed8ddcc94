"""Records: what a process writes while it runs a test file, and what is read back.

A process may crash or be stopped, so it appends a line of JSON for each event.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FORMAT = 1
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_STARTED = "started"
# Names of parametrized tests and messages may hold addresses, which differ between processes.
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
# TensorFlow tells where a node was built; the stack differs between processes too.
_STACK = re.compile(r'File "[^"]*", line \d+, in \S+ ?')
_LONGEST = 4000


class RecordWriter:
    """Appends the events of one test file to a record, and after each test what was counted.

    Args:
      path: the record.
      counts: gives what the product did so far.
    """

    def __init__(self, path: Path, counts: Callable[[], Mapping[str, Any]] = dict) -> None:
        self._stream = path.open("w", buffering=1)
        self._counts = counts

    def started(self, test: str) -> None:
        """A test begins; with no other line of it, the process ended in this test."""
        self._write({"test": _steady(test), "outcome": _STARTED})

    def ended(self, test: str, outcome: str, error: str = "") -> None:
        """A test has passed, failed or been skipped."""
        line = {"test": _steady(test), "outcome": outcome}
        self._write({**line, "error": _short(error)} if error else line)
        self.counted()

    def counted(self) -> None:
        """Writes what the product did so far, which counts until the next such line."""
        self._write({"counts": dict(self._counts())})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(line) + "\n")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRun:
    """One test file, run in one mode.

    Attributes:
      file: path below the folder of tests.
      mode: name of the mode.
      outcomes: by test, "passed", "failed" or "skipped".
      errors: by failed test, the error's class and text.
      counts: what the product did: sessions, plans, parts; {} where the process wrote none.
      ended: "" where the process ended by itself, else how it ended.
      seconds: its wall time.
    """

    file: str
    mode: str
    outcomes: Mapping[str, str]
    errors: Mapping[str, str]
    counts: Mapping[str, Any]
    ended: str
    seconds: float

    @property
    def ran(self) -> int:
        """How many tests ran to an end and were not skipped."""
        return sum(outcome != SKIPPED for outcome in self.outcomes.values())

    def save(self, path: Path) -> None:
        """Writes the run as JSON."""
        path.write_text(json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=1))


def load_run(path: Path) -> FileRun | None:
    """The run that `save` wrote; None where there is none, or one of another format."""
    if not path.is_file():
        return None
    saved = json.loads(path.read_text())
    return FileRun(**saved) if saved.pop("format", None) == FORMAT else None


def read_record(path: Path, *, file: str, mode: str, ended: str, seconds: float) -> FileRun:
    """The run of which a process left a record.

    A test in which the process ended counts as failed, unless a time limit stopped the process.
    """
    outcomes: dict[str, str] = {}
    errors: dict[str, str] = {}
    counts: dict[str, Any] = {}
    text = path.read_text() if path.is_file() else ""
    for line in filter(str.strip, text.splitlines()):
        event = json.loads(line)
        if "counts" in event:
            counts = event["counts"]
            continue
        test, outcome = event["test"], event["outcome"]
        # An error in the clean-up of a test follows its success.
        if outcomes.get(test) != FAILED:
            outcomes[test] = outcome
        if outcome == FAILED:
            errors.setdefault(test, event.get("error", ""))
    for test in [test for test, outcome in outcomes.items() if outcome == _STARTED]:
        del outcomes[test]
        if ended and not ended.startswith("stopped"):
            outcomes[test], errors[test] = FAILED, f"the process {ended}"
    return FileRun(
        file=file,
        mode=mode,
        outcomes=outcomes,
        errors=errors,
        counts=counts,
        ended=ended,
        seconds=round(seconds, 1),
    )


def _steady(text: str) -> str:
    """A text on one line, the same in each process."""
    return _ADDRESS.sub("0x", " ".join(text.split()))


def _short(text: str) -> str:
    """An error's text without stacks; of a long one the begin and the end."""
    plain = _STACK.sub("", _steady(text))
    half = _LONGEST // 2
    return plain if len(plain) <= _LONGEST else f"{plain[:half]} … {plain[-half:]}"
