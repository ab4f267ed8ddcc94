"""The errors that Workbench raises: one base, few kinds.

Each message says what was found, what was expected and what to do.
"""

from __future__ import annotations

import re
import traceback
import unicodedata

from workbench.own_code import own_lines, running_shell

_THE_REST = "%tb shows the whole traceback."
_BREAKING = ("Cc", "Cf", "Zl", "Zp")
# Characters that move a cursor, start a line, turn the direction of writing or are none at all;
# line breaks, tabs and letters' own joiners stay.
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)
# Characters of a message that may quote a file, and of any other one.
_LONGEST_LINE, _LONGEST = 1000, 20_000


def one_line(text: str) -> str:
    """`text` on one line: control characters escaped, undecodable bytes of a file name as text.

    A file name may hold any byte but NUL and "/"; Python keeps bytes that are no text in the
    file system's encoding as lone surrogates, which no stream prints.
    """
    try:
        held = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Other surrogates stand for no byte.
        held = text.encode("utf-8", "backslashreplace")
    whole = held.decode("utf-8", "backslashreplace")
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in _BREAKING else c for c in whole)


def visible(text: str) -> str:
    """`text` with the characters that a reader cannot see as escapes, such as "\\x1b"."""
    return UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)


def cut(text: str, most: int = _LONGEST) -> str:
    """A text without its middle where it is longer than anybody reads.

    Args:
      text: what was said.
      most: characters of it to keep.
    """
    if len(text) <= most:
        return text
    gone = f" … ({len(text) - most} more characters) … "
    last = most // 4
    return text[: most - last - len(gone)] + gone + text[-last:]


def first_line(error: object) -> str:
    """The first line of another library's message, to stand inside a sentence."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def _init_with_one_line(error: BaseException, message: str = "") -> None:
    """The constructor of errors whose message holds a file's name or content."""
    BaseException.__init__(error, cut(one_line(cut(str(message))), _LONGEST_LINE))


class WorkbenchError(Exception):
    """Base of every error that Workbench raises on purpose."""

    _was_shown = False

    def __init__(self, message: str = "") -> None:
        super().__init__(cut(str(message)))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the message and the user's own lines; the whole once shown again.

        The message says what to do, and TensorFlow's frames around the user's line hide it.
        """
        if self._was_shown:
            return _whole_traceback(self)
        self._was_shown = True
        return [f"{type(self).__name__}: {visible(str(self))}", *own_lines(self), _THE_REST]


class OptionError(WorkbenchError, ValueError):
    """An option has a value outside its range, or of the wrong type."""


class UnsupportedError(WorkbenchError, NotImplementedError):
    """A known request that nothing here implements; the message names it."""


class NativeError(WorkbenchError, ImportError):
    """The native library is missing, or was built for another TensorFlow."""


class DataError(WorkbenchError, ValueError):
    """A data file cannot be read; the message names file, row and column."""

    __init__ = _init_with_one_line


class OutputError(WorkbenchError, OSError):
    """A file or directory cannot be written; the message names it."""

    __init__ = _init_with_one_line


class PlanError(WorkbenchError, ValueError):
    """A graph cannot be cut as asked, or a plan does not fit the graph it meets."""

    __init__ = _init_with_one_line


class NoInputError(PlanError):
    """A graph has neither a stage nor an input, so there is nowhere to cut."""


class TraceError(WorkbenchError, ValueError):
    """A trace breaks one of its invariants, or is in a format this version cannot read."""

    __init__ = _init_with_one_line


class RunError(WorkbenchError, RuntimeError):
    """A run in a child process ended without a result; the message says how."""


def _whole_traceback(error: BaseException) -> list[str]:
    """The traceback as IPython shows those of other errors, or Python where there is none."""
    shell = running_shell()
    if shell is None:
        return traceback.format_exception(error)
    lines: list[str] = shell.InteractiveTB.structured_traceback(
        type(error), error, error.__traceback__
    )
    return lines
