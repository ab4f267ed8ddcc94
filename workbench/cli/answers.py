"""What a command says: words as it goes, its results, and with --json one document of them."""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import workbench
from workbench.display import text_of
from workbench.errors import OptionError, one_line, visible
from workbench.files.atomic_file import is_stdout


@dataclasses.dataclass(kw_only=True)
class Answer:
    """What a command has said so far.

    Attributes:
      quiet: whether only results and errors are said.
      json: whether results become one document.
      results: documents of the results.
      wrote: the files that were written.
      error: its kind and what it says; None where nothing failed.
    """

    quiet: bool = False
    json: bool = False
    results: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    wrote: list[str] = dataclasses.field(default_factory=list)
    error: dict[str, str] | None = None

    def failed(self, kind: str, message: str) -> None:
        """Says in the document that the command failed."""
        self.error = {"kind": kind, "message": visible(message)}

    def write(self, command: str, code: int) -> None:
        """Writes the document, where one was asked for."""
        if not self.json:
            return
        from workbench.viz.documents import SCHEMA

        document = {
            "schema": SCHEMA,
            "workbench": workbench.__version__,
            "command": command,
            "exit_code": code,
            "error": self.error,
            "results": self.results,
            "wrote": self.wrote,
        }
        print(json.dumps(document, allow_nan=False, indent=2), flush=True)


_CURRENT: contextvars.ContextVar[Answer | None] = contextvars.ContextVar("answer", default=None)


def current() -> Answer:
    """The answer of the command that runs; one of words alone where none does."""
    return _CURRENT.get() or Answer()


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """The options of how a command answers, which all commands take."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="write one JSON document of the results to stdout, and all words to stderr",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="say the results and errors, not what goes on"
    )


@contextlib.contextmanager
def answering(chosen: argparse.Namespace) -> Iterator[Answer]:
    """Runs a command that answers as its arguments say; words go to stderr beside a document."""
    answer = Answer(quiet=chosen.quiet, json=chosen.json)
    token = _CURRENT.set(answer)
    try:
        with stdout_free() if chosen.json else contextlib.nullcontext():
            yield answer
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def stdout_free() -> Iterator[None]:
    """Sends to stderr what is printed, by child processes and libraries too."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        with contextlib.suppress(OSError):
            # Where the process has these two; a notebook's are others.
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield


def require_free_stdout(chosen: argparse.Namespace) -> None:
    """Refuses a file that would be written into the JSON document.

    Raises:
      OptionError: says which.
    """
    for name, value in vars(chosen).items():
        if chosen.json and isinstance(value, Path) and (str(value) == "-" or is_stdout(value)):
            raise OptionError(
                f"--{name.replace('_', '-')} writes to stdout, and so does --json; give it a file"
            )


def say(text: str) -> None:
    """A line of what goes on."""
    if not current().quiet:
        print(visible(text), flush=True)


def show(value: Any, words: str | None = None) -> None:
    """A result, in words and as a document.

    Args:
      value: what `workbench.viz.documents` knows, or a document.
      words: what it says; None for what a notebook shows as text.
    """
    answer = current()
    if answer.json:
        from workbench.viz.documents import document

        answer.results.append(value if isinstance(value, dict) else document(value))
    if not (answer.json and answer.quiet):
        print(text_of(value) if words is None else visible(words), flush=True)


def say_wrote(path: Path) -> None:
    """Says that a file was written; one on standard output is no place for words."""
    if not is_stdout(path):
        current().wrote.append(os.fspath(path))
        say(f"Wrote {one_line(str(path))}")
