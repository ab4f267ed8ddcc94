"""named_fields: dataclasses that say which fields they have when they are given others."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Sequence
from typing import Any, TypeVar

from workbench.errors import OptionError

_Class = TypeVar("_Class", bound=type)


def named_fields(cls: _Class) -> _Class:
    """Makes a keyword-only dataclass raise an OptionError with its fields for wrong arguments.

    Python's own TypeError names the wrong argument alone, not what there is instead.
    """
    plain = cls.__init__  # type: ignore[misc]
    names = [field.name for field in dataclasses.fields(cls)]
    required = [field.name for field in dataclasses.fields(cls) if _is_required(field)]

    @functools.wraps(plain)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        wrong = _wrong(names, required, args, given)
        if wrong:
            raise OptionError(f"{cls.__name__} {wrong}; its fields are {', '.join(names)}")
        plain(self, **given)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _wrong(
    names: Sequence[str], required: Sequence[str], args: Sequence[Any], given: dict[str, Any]
) -> str:
    """What is wrong with the arguments; empty where nothing is."""
    if args:
        return f"takes its fields by name, and got {args[0]!r} without one"
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
            return f"has no {name!r}" + (f" (did you mean {close[0]!r}?)" if close else "")
    missing = [name for name in required if name not in given]
    return f"needs {' and '.join(missing)}" if missing else ""
