"""A long JSON text, read on as its values are taken, so that only one piece is held at a time.

The text may be cut off, and may have values that are no JSON: a reader can go on behind them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_PIECE = 1 << 19
# No event is longer, and only such a value makes a piece longer.
_LONGEST = 2 << 20
# An error so near to the end of a piece may be of what does not follow there.
_CUT_OFF = 16
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)
_MARK = re.compile(rf'{_STRING.pattern}|["{{}}\[\]]', re.S)
_SCALAR = re.compile(r"[\w.+-]+")
_NEXT_OBJECT = re.compile(r"[}\],\n]\s*(?=\{)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# In a bulk the last value may be one inside another.
_BULK_TRIES = 8
_SHOWN = 30
_TOO_LONG = f"it has a value of over {_LONGEST >> 20} MB"
# What the begin of a number, a word or an escape leaves at the end of a text.
_BEGUN = re.compile(r"[\w\\+.-]*\s*\Z")


class BadJsonError(Exception):
    """A value is no JSON; the message says what it is instead."""


class TooLongError(BadJsonError):
    """A value is longer than any that is read; it can be skipped."""


class CutOffError(Exception):
    """The text ends inside a value."""


class JsonText:
    """Where a reader stands in a text."""

    def __init__(self, read: Callable[[int], bytes], *, exact: bool = True) -> None:
        """Begins to read.

        Args:
          read: the next bytes, about as many as it is asked for; none at the end.
          exact: whether fractions come as Decimal.
        """
        self._read = read
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text, self._at, self._before, self._ended = "", 0, 0, False
        self._singly_until = 0
        number: Any = Decimal if exact else float
        decoder: Any = json.JSONDecoder(strict=False, parse_float=number, parse_constant=_none)
        self._scan = decoder.scan_once

    def peek(self) -> str:
        """The next character that is no white space; "" at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self, character: str) -> bool:
        """Goes behind this character if it is the next one."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """The next value.

        Raises:
          BadJsonError, CutOffError: there is none; the reader stays where it is.
        """
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
                value = self._cleaned(value, end)
            except RecursionError:
                raise BadJsonError("it is nested too deep for a trace") from None
            except (StopIteration, ValueError, ArithmeticError) as error:
                if self._may_go_on(error):
                    if len(self._text) - self._at > _LONGEST:
                        raise TooLongError(_TOO_LONG) from None
                    if self._more():
                        continue
                    if self._is_cut(error):
                        raise CutOffError from None
                raise BadJsonError(self._words(error)) from None
            # A number may go on in the next piece.
            if end == len(self._text) and self._more():
                continue
            self._at = end
            return value

    def objects(self) -> list[Any]:
        """The next objects of a list, many at once; none where they must be taken one by one."""
        self.peek()
        if self._before + self._at < self._singly_until:
            return []
        if len(self._text) - self._at < _PIECE:
            self._more()
        end = len(self._text)
        for _ in range(_BULK_TRIES):
            end = self._text.rfind("},", self._at, end)
            if end < 0:
                break
            try:
                listed = f"[{self._text[self._at : end + 1]}]"
                found, behind = self._scan(listed, 0)
                found = self._cleaned(found, end + 1)
            except (StopIteration, ValueError, ArithmeticError, RecursionError):
                continue
            # Else the list ends before.
            if behind == len(listed):
                self._at = end + 1
                return list(found)
        self._singly_until = self._before + len(self._text)
        return []

    def skip_value(self) -> None:
        """Goes behind the next value, whatever it holds and however long it is.

        Raises:
          CutOffError: the text ends before.
          BadJsonError: there is no value.
        """
        first = self.peek()
        if not first:
            raise CutOffError
        if first == '"':
            self._match(_STRING)
        elif first in "{[":
            self._skip_nested()
        elif first in "}],:":
            raise BadJsonError(self._words(None))
        else:
            self._match(_SCALAR)

    def _skip_nested(self) -> None:
        depth = 0
        while True:
            for found in _MARK.finditer(self._text, self._at):
                mark = found[0]
                if mark == '"':
                    # A text that goes on in the next piece.
                    break
                self._at = found.end()
                depth += (mark in "{[") - (mark in "}]")
                if not depth:
                    return
            if len(self._text) - self._at > _LONGEST:
                raise BadJsonError(_TOO_LONG)
            if not self._more():
                raise CutOffError

    def to_next_object(self) -> bool:
        """Goes behind a value that is no JSON, to where another object may begin."""
        self._at += 1
        while True:
            found = _NEXT_OBJECT.search(self._text, self._at)
            if found:
                self._at = found.end()
                return True
            # The mark before the brace may stand at the end of this piece.
            self._at = max(self._at, len(self._text) - _CUT_OFF)
            if not self._more():
                self._at = len(self._text)
                return False

    def _match(self, pattern: re.Pattern[str]) -> None:
        while True:
            found = pattern.match(self._text, self._at)
            if found and (found.end() < len(self._text) or self._ended):
                self._at = found.end()
                return
            if len(self._text) - self._at > _LONGEST:
                raise TooLongError(_TOO_LONG)
            if not self._more():
                if found:
                    continue
                raise CutOffError

    def _more(self) -> bool:
        """Reads on; what was taken is dropped. A long value is read in ever larger pieces."""
        if self._ended:
            return False
        data = self._read(max(_PIECE, len(self._text) - self._at))
        self._ended = not data
        self._before += self._at
        self._text = self._text[self._at :] + self._decode(data, self._ended)
        self._at = 0
        return True

    def _may_go_on(self, error: BaseException) -> bool:
        """Whether what follows this piece may make a value of what is none yet."""
        if isinstance(error, json.JSONDecodeError) and _is_unended(error):
            return True
        return _position(error) >= len(self._text) - _CUT_OFF

    def _is_cut(self, error: BaseException) -> bool:
        """Whether the last piece ends inside a value."""
        if isinstance(error, json.JSONDecodeError) and _is_unended(error):
            return True
        return _BEGUN.match(self._text, _position(error)) is not None

    def _words(self, error: BaseException | None) -> str:
        at, what = self._at, "a value was expected"
        if isinstance(error, json.JSONDecodeError):
            at, what = error.pos, error.msg
        elif isinstance(error, StopIteration):
            at = int(error.value)
        elif error is not None:
            return f"it has a number of too many digits, at character {self._before + at}"
        shown = self._text[at : at + _SHOWN]
        return f"it is no JSON at character {self._before + at}: {what}, and there is {shown!r}"

    def _cleaned(self, found: Any, end: int) -> Any:
        """A value without halves of characters, which nothing can write."""
        if _SURROGATE_ESCAPE.search(self._text, self._at, end):
            return _without_surrogates(found)
        return found


def _is_unended(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string")


def _position(error: BaseException) -> int:
    """Where a value was none; before all text where that is not known."""
    if isinstance(error, StopIteration):
        return int(error.value)
    return error.pos if isinstance(error, json.JSONDecodeError) else -_CUT_OFF - 1


def _none(name: str) -> None:
    """NaN and Infinity are no JSON, but some tools write them: nothing is known there."""
    del name


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value
