"""Failure: an exception of the child process as a line that begins with the user's own place."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.errors import WorkbenchError, cut
from workbench.own_code import is_own

# What TensorFlow and Keras write around the words of an error.
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_NOISE = re.compile(r"\{\{function_node [^}]*\}\}\s*|\x1b\[[0-9;]*m")
_NAMED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Warning|Interrupt|StopIteration)\b")
_ROOT_ERROR = re.compile(r"^\(\d+\) (?:[A-Z_]+:\s*)?")
_PREFACE = re.compile(
    r"Graph execution error|Detected at node|Node: '|Traceback \(most recent call|\[\[\{\{|"
    r"in user code:|\d+ root error\(s\) found"
)
# Characters of an exception's own words, and of a whole traceback.
_LONGEST, _LONGEST_DETAILS = 2_000, 200_000
_KERAS_PREFACE = "Exception encountered when calling"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception on its way to the parent.

    Attributes:
      kind: name of its class in workbench.errors, or "" when it is none of ours.
      message: one line, beginning with the user's own file and line where there is one.
      details: the whole traceback.
    """

    kind: str
    message: str
    details: str


def failure_of(error: BaseException) -> Failure:
    """What to tell the parent of an exception."""
    kind = type(error).__name__ if isinstance(error, WorkbenchError) else ""
    text = cut(str(getattr(error, "message", None) or error).strip())
    if kind:
        message = text.splitlines()[0] if text else ""
    else:
        message = _place(error, text) + cut(_said(type(error).__name__, text), _LONGEST)
    # An error may quote its causes, each as long as it is.
    details = "".join(cut(each) for each in traceback.format_exception(error))
    return Failure(kind=kind, message=message, details=cut(details, _LONGEST_DETAILS))


def cause_of(error: BaseException) -> str:
    """The line of an error's text that says what happened; TensorFlow writes others around it."""
    text = str(getattr(error, "message", None) or error)
    return next(_telling_lines(text), type(error).__name__)


def _said(name: str, text: str) -> str:
    """The name of an exception and the line of its text that says what happened."""
    lines = list(_telling_lines(text))
    if not lines:
        return name
    if text.startswith("in user code:"):
        # AutoGraph repeats the first line of the error behind the lines of code.
        named = [line for line in lines if _NAMED.match(line)]
        return named[-1] if named else f"{name}: {lines[-1]}"
    first = lines[0]
    if first.startswith(_KERAS_PREFACE) and len(lines) > 1:
        first = f"{lines[1]} ({first[0].lower()}{first[1:].rstrip('.')})"
    # An error of Python that passed through TensorFlow keeps its own name there.
    return first if _NAMED.match(first) else f"{name}: {first}"


def _telling_lines(text: str) -> Iterator[str]:
    """The lines of a text that are neither frames and their code nor TensorFlow's preface."""
    frame_indent: int | None = None
    for line in _NOISE.sub("", text).splitlines():
        words = _ROOT_ERROR.sub("", line.strip())
        indent = len(line) - len(line.lstrip())
        if _FRAME.match(line):
            frame_indent = indent
            continue
        if not words or (frame_indent is not None and indent <= frame_indent):
            frame_indent = None
        if words and frame_indent is None and not _PREFACE.match(words):
            yield words


def _place(error: BaseException, text: str) -> str:
    """The innermost line of the user's own code, "`train.py`, line 41: ", or nothing."""
    # An error of an op arises in a step; what the user wrote is where the op was built, which its
    # text tells, or the op. AutoGraph's frames are of generated files; its text has the user's.
    told = [(found["file"], int(found["line"])) for found in _FRAME.finditer(text)]
    built = getattr(getattr(error, "op", None), "traceback", None) or ()
    raised = traceback.extract_tb(error.__traceback__)
    own = (
        _own_frames(told)
        or _own_frames([(frame.filename, frame.lineno) for frame in built])
        or _own_frames([(frame.filename, frame.lineno) for frame in raised])
    )
    if not own:
        return ""
    name, line = own[-1]
    if "ipykernel" in name or name.startswith("<ipython"):
        return f"notebook cell, line {line}: "
    with contextlib.suppress(ValueError):
        inside = os.path.relpath(name)
        name = name if inside.startswith("..") else inside
    return f"`{name}`, line {line}: "


def _own_frames(frames: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(name, line) for name, line in frames if is_own(name)]
