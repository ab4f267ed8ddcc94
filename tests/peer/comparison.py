"""What fails with the product underneath and not without it."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.peer.records import FAILED, FileRun

LISTED = Path(__file__).with_name("listed.json")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedText:
    """A difference that is known: a test asks for a text, such as a node's name or a message.

    Attributes:
      file: the test file.
      test: "Class.test", or a pattern of it.
      modes: in which modes, by name or pattern.
      error: what the error's text holds; with another error the test isn't listed.
      reason: what differs, a sentence.
    """

    file: str
    test: str
    modes: Sequence[str]
    error: str
    reason: str

    def covers(self, run: FileRun, test: str) -> bool:
        """Whether a failed test of a run is this one."""
        return (
            run.file == self.file
            and fnmatch.fnmatchcase(test, self.test)
            and any(fnmatch.fnmatchcase(run.mode, mode) for mode in self.modes)
            and self.error in run.errors.get(test, "")
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A file run beside its run on stock TensorFlow.

    Attributes:
      new: by test that fails here alone, the error.
      listed: by test that fails here alone in a known text, the reason.
      unreached: tests that stock ended and this run did not.
      not_in_stock: tests that ended here and not in stock, which nothing is said about.
    """

    new: Mapping[str, str]
    listed: Mapping[str, str]
    unreached: Sequence[str]
    not_in_stock: Sequence[str]


def listed_texts(path: Path = LISTED) -> list[ListedText]:
    """The known differences."""
    return [ListedText(**each) for each in json.loads(path.read_text())]


def compare(stock: FileRun, run: FileRun, listed: Sequence[ListedText]) -> Difference:
    """Subtracts the failures of stock TensorFlow from those of a run.

    Args:
      stock: the file's run without the product.
      run: the same file with it.
      listed: known differences.
    """
    new, known = {}, {}
    for test, outcome in run.outcomes.items():
        if outcome != FAILED or stock.outcomes.get(test, FAILED) == FAILED:
            continue
        text = next((each for each in listed if each.covers(run, test)), None)
        if text:
            known[test] = text.reason
        else:
            new[test] = run.errors.get(test, "")
    return Difference(
        new=new,
        listed=known,
        unreached=[test for test in stock.outcomes if test not in run.outcomes],
        not_in_stock=[test for test in run.outcomes if test not in stock.outcomes],
    )
