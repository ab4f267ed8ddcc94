"""Values of files that may come from anybody: bounded, and each field of the type that it has.

Every reader of what Workbench saves goes through here. What does not fit is one DataError, which
names the field, shows what stands there and says what was expected.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import os
import re
import types
import typing
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from workbench.errors import DataError

# What a file may take of memory, in bytes: so much, and so many times what it has on disk.
ROOM = 64 << 20
TIMES = 10
# Unpacked text is copied on its way to values.
_UNPACKED_ROOM, _PIECE, _GZIP = 16 << 20, 1 << 20, 31
_COPIES = 3
# Bytes that Python takes for a list or dict, a text and a number, at least.
_OF_A_LIST, _OF_A_TEXT, _OF_A_NUMBER = 72, 60, 40
_MOST = 2**63
_DEEPEST = 32
_SHOWN = 60
# A half of a character that JSON writes as two escapes; no file and no page can hold it. Those from
# dc80 to dcff stay: they are bytes of a file name that is no text, as Python has them.
_HALVES = re.compile(
    rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD](?:[cC][0-7].|[89abdefABDEF]..))",
    re.DOTALL,
)
_WORDS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}
# What JSON gives of a type: a whole number is a number as well.
_GIVEN: dict[type, frozenset[type]] = {
    str: frozenset((str,)),
    int: frozenset((int,)),
    float: frozenset((float, int)),
    bool: frozenset((bool,)),
}


def shown(value: object) -> str:
    """A value of a file inside a sentence, of whatever length it is."""
    if isinstance(value, str | bytes):
        value = value[: _SHOWN + 1]
    try:
        words = repr(value) if not isinstance(value, list | tuple | Mapping) else _outline(value)
    except (ValueError, RecursionError):
        words = f"a {type(value).__name__}"
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file of that name; a name that no file can have has none."""
    try:
        return os.path.isfile(path)
    except (OSError, ValueError):
        return False


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """The bytes of a file.

    Args:
      path: its name.
      most: bytes that it may have; None reads it all.

    Raises:
      DataError: it cannot be read, or is larger.
    """
    try:
        with open(path, "rb") as file:
            content = file.read() if most is None else file.read(most + 1)
    except OSError as error:
        raise DataError(error.strerror or str(error)) from error
    except ValueError as error:
        raise DataError(f"no file has this name: {error}") from error
    if most is not None and len(content) > most:
        raise DataError(f"it is larger than {most} bytes")
    return content


def require_room(needed: int, stored: int, times: int = TIMES) -> None:
    """Requires that a file does not take far more memory than it has on disk.

    Args:
      needed, stored: bytes in memory and on disk.
      times: how often the second may be in the first, beyond `ROOM`.

    Raises:
      DataError: it does.
    """
    most = ROOM + times * stored
    if needed > most:
        raise DataError(
            f"it has {stored} bytes and would take {needed} of memory; expected at most {most}"
        )


def unpacked(content: bytes) -> bytes:
    """What gzip packed; memory is taken for no more than such a file can have.

    Raises:
      DataError: it is not gzipped, damaged or cut off, or unpacks into far more than it has.
    """
    most = _UNPACKED_ROOM + TIMES * len(content)
    if not content:
        raise DataError("it is empty")
    parts: list[bytes] = []
    length, rest, ended, one = 0, content, False, zlib.decompressobj(wbits=_GZIP)
    while rest or one.unconsumed_tail:
        try:
            parts.append(one.decompress(one.unconsumed_tail or rest, _PIECE))
        except zlib.error as error:
            words = str(error) if parts else "not a gzipped file"
            raise DataError(f"it cannot be unpacked: {words}") from None
        length += len(parts[-1])
        if length > most:
            raise DataError(
                f"it has {len(content)} bytes and unpacks into more than {most}; "
                "what Workbench saves does not"
            )
        rest, ended = b"", one.eof
        if ended:
            # A file may have several members, and zeros behind the last one.
            rest, one = one.unused_data.lstrip(b"\0"), zlib.decompressobj(wbits=_GZIP)
    if not ended:
        raise DataError("it cannot be unpacked: it was cut off")
    return b"".join(parts)


def json_of(content: bytes | str, stored: int | None = None) -> Any:
    """The value of a JSON text.

    Args:
      content: the text.
      stored: bytes that the file has, where it was packed.

    Raises:
      DataError: it is not JSON, or would take far more memory than it has.
    """
    try:
        text = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise DataError(f"it is not UTF-8: {error.reason}") from None
    lists, texts = text.count(b"[") + text.count(b"{"), text.count(b'"') // 2
    needed = lists * _OF_A_LIST + texts * _OF_A_TEXT + text.count(b",") * _OF_A_NUMBER
    times = TIMES if stored is None else TIMES * TIMES
    require_room(needed + _COPIES * len(text), len(text) if stored is None else stored, times)
    try:
        return json.loads(_HALVES.sub(_whole, text).decode("utf-8-sig"))
    except RecursionError:
        raise DataError("its lists stand too deep inside each other") from None
    except ValueError as error:
        raise DataError(str(error)) from None


def _whole(found: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if found["half"] else found[0]


def value_of(kind: Any, held: Any, where: str, **given: Any) -> Any:
    """A value of a type, out of what JSON holds.

    Args:
      kind: str, int, float, bool, an enumeration, a Literal, a union with None, tuple[…], dict or
        Mapping from text, a dataclass, or Any for plain values.
      held: what JSON gave.
      where: what it is called in a message.
      **given: fields of the dataclass that are known and not read.

    Raises:
      DataError: it is of another type, lacks a field or has an unknown one, or is out of range.
    """
    if dataclasses.is_dataclass(kind):
        return _fields(kind, held, where, given)
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _plain(held, where)
    if kind in _GIVEN:
        return _one(kind, held, where)
    if origin in (Union, types.UnionType):
        return _of_union(members, held, where)
    if origin is Literal:
        if isinstance(held, str | int) and held in members:
            return held
        raise _wrong(held, where, f"one of {', '.join(map(repr, members))}")
    if origin is tuple:
        return _sequence(members, held, where)
    if origin in (dict, Mapping, typing.get_origin(typing.Mapping[str, int])):
        return _mapping(members[1], held, where)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        if isinstance(held, str) and held in {each.value for each in kind}:
            return kind(held)
        raise _wrong(held, where, f"one of {', '.join(repr(each.value) for each in kind)}")
    raise TypeError(f"nothing here reads a {kind!r}")


def _fields(kind: Any, held: Any, where: str, given: Mapping[str, Any]) -> Any:
    if isinstance(held, kind):
        return held
    if not isinstance(held, Mapping):
        raise _wrong(held, where, "values by name")
    hints = _hints(kind)
    for name in held:
        if name not in hints or name in given:
            raise DataError(
                f"{where} has an unknown {shown(name)}; the file is damaged, or of a newer version"
            )
    for name, optional in hints.items():
        if name not in held and name not in given and not optional[1]:
            raise DataError(f"{where} has no {name}; the file is damaged, or was cut off")
    values = {name: value_of(hints[name][0], held[name], f"{where}.{name}") for name in held}
    try:
        return kind(**values, **given)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: {error}") from None


@functools.cache
def _hints(kind: type) -> dict[str, tuple[Any, bool]]:
    """The type of each field of a dataclass, and whether it may be left out."""
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return {
        field.name: (
            hints[field.name],
            field.default is not missing or field.default_factory is not missing,
        )
        for field in dataclasses.fields(kind)
    }


def _one(kind: type, held: Any, where: str) -> Any:
    if type(held) not in _GIVEN[kind]:
        raise _wrong(held, where, _WORDS[kind])
    if isinstance(held, int) and not -_MOST <= held < _MOST:
        raise _wrong(held, where, "a number of 64 bits")
    return float(held) if kind is float else held


def _are_small(held: Sequence[Any]) -> bool:
    """Whether all are texts, or numbers of 64 bits."""
    if not held or isinstance(held[0], str):
        return True
    return all(-_MOST <= each < _MOST for each in held if isinstance(each, int))


def _of_union(members: tuple[Any, ...], held: Any, where: str) -> Any:
    if held is None and type(None) in members:
        return None
    others = [each for each in members if each is not type(None)]
    for each in others[:-1]:
        try:
            return value_of(each, held, where)
        except DataError:
            continue
    return value_of(others[-1], held, where)


def _sequence(members: tuple[Any, ...], held: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(held, list | tuple):
        raise _wrong(held, where, "a list")
    if len(members) == 2 and members[1] is Ellipsis:
        kind = members[0]
        if kind in _GIVEN and set(map(type, held)) <= _GIVEN[kind] and _are_small(held):
            return tuple(map(float, held)) if kind is float else tuple(held)
        return tuple(value_of(kind, each, f"{where}[{at}]") for at, each in enumerate(held))
    if len(held) != len(members):
        raise _wrong(held, where, f"a list of {len(members)}")
    pairs = enumerate(zip(members, held, strict=True))
    return tuple(value_of(kind, each, f"{where}[{at}]") for at, (kind, each) in pairs)


def _mapping(kind: Any, held: Any, where: str) -> dict[str, Any]:
    if not isinstance(held, Mapping):
        raise _wrong(held, where, "values by name")
    for key in held:
        if type(key) is not str:
            raise _wrong(key, f"a name in {where}", "text")
    return {key: value_of(kind, each, f"{where}[{shown(key)}]") for key, each in held.items()}


def _plain(held: Any, where: str, depth: int = 0) -> Any:
    """A value that JSON can hold, not deeper than any that is meant."""
    if isinstance(held, int) and not isinstance(held, bool):
        return _one(int, held, where)
    if isinstance(held, list | tuple | Mapping):
        if depth == _DEEPEST:
            raise DataError(f"{where} has lists more than {_DEEPEST} deep inside each other")
        for each in held.values() if isinstance(held, Mapping) else held:
            _plain(each, where, depth + 1)
    return held


def _outline(value: Any) -> str:
    """The begin of a list or of a mapping."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(shown(key) for key in list(value)[:3])}, …}}" if value else "{}"
    words = ", ".join(shown(each) for each in value[:3])
    return f"[{words}{', …' if len(value) > 3 else ''}]"


def _wrong(held: Any, where: str, expected: str) -> DataError:
    return DataError(f"{where} is {shown(held)}; expected {expected}")
