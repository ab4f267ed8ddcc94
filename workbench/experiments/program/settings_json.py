"""Optimizations as JSON: what is not as usual, by name. What is read may come from anybody."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.environment import EnvironmentToggle, SavedEnvironmentToggle
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import PLAIN, Choice, Toggle
from workbench.errors import DataError, OptionError
from workbench.experiments.program.toggles import require_free_names

_Options = Optimizations | StageOptions | SmartStageOptions

_NESTED: dict[str, type[StageOptions] | type[SmartStageOptions]] = {
    "stage": StageOptions,
    "smart_stage": SmartStageOptions,
}
# TensorFlow's codes of the exception classes that options accept, which no JSON holds.
_CODES = {
    "CancelledError": 1, "UnknownError": 2, "InvalidArgumentError": 3, "DeadlineExceededError": 4,
    "NotFoundError": 5, "AlreadyExistsError": 6, "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8, "FailedPreconditionError": 9, "AbortedError": 10,
    "OutOfRangeError": 11, "UnimplementedError": 12, "InternalError": 13, "UnavailableError": 14,
    "DataLossError": 15, "UnauthenticatedError": 16, "StopIteration": 11,
}  # fmt: skip
# No number that is meant is larger; a file may hold any.
_MOST = {"threads": 4096, "capacity": 1_000_000}
_MOST_OF_ALL = 2**31 - 1


def to_json(options: _Options) -> dict[str, Any]:
    """Options as JSON, without those that have their default."""
    usual = type(options)()
    changed = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != getattr(usual, field.name)
    }
    return {name: _plain(value) for name, value in changed.items()}


def optimizations_from(document: Any) -> Optimizations:
    """Reads what `to_json` made of Optimizations.

    Raises:
      DataError: an unknown name, or a value of another type or out of range.
    """
    given = _fields(Optimizations, document)
    for name, kind in _NESTED.items():
        if given.get(name) is not None:
            given[name] = _build_options(kind, _fields(kind, given[name]))
    given["chosen"] = tuple(map(_choice_from, given.get("chosen", ())))
    optimizations: Optimizations = _build_options(Optimizations, given)
    try:
        require_free_names([choice.toggle for choice in optimizations.chosen])
    except OptionError as error:
        raise DataError(f"a setting is out of range: {error}") from None
    return optimizations


# Of whom a toggle is. TensorFlow's are known by name.
_KINDS: dict[str, type[Toggle]] = {"own": Toggle, "environment": SavedEnvironmentToggle}
_LONGEST_WORDS = 1000


def _choice_json(choice: Choice) -> dict[str, Any]:
    toggle = choice.toggle
    if toggle in STOCK:
        return {"of": "TensorFlow", "name": toggle.name, "choice": choice.value}
    return {
        "of": "environment" if isinstance(toggle, EnvironmentToggle) else "own",
        "name": toggle.name,
        "choice": choice.value,
        "choices": list(toggle.choices),
        "label": toggle.label,
        "help": toggle.help,
        "training": toggle.training.value,
    }


def _choice_from(document: Any) -> Choice:
    """Reads what `_choice_json` wrote."""
    if not isinstance(document, Mapping):
        raise DataError(f"a choice of a toggle is {_shown(document)}; expected names and values")
    kind, name, value = (document.get(field) for field in ("of", "name", "choice"))
    if not isinstance(value, PLAIN) or not isinstance(name, str):
        raise DataError(f"a choice of a toggle is {_shown(document)}; expected name and choice")
    try:
        if kind == "TensorFlow":
            known = next((toggle for toggle in STOCK if toggle.name == name), None)
            if known is None:
                raise DataError(f"TensorFlow has no toggle {_shown(name)}; the file is newer")
            return known.at(value)
        words = [document.get(field, "") for field in ("label", "help", "training")]
        if kind not in _KINDS or not all(isinstance(text, str) for text in words):
            raise DataError(f"a toggle is {_shown(document)}; expected what Workbench writes")
        label, help_, training = (text[:_LONGEST_WORDS] for text in words)
        own = _KINDS[kind](name, document.get("choices", ()), label, help_, training)
        return own.at(value)
    except (OptionError, ValueError, TypeError) as error:
        raise DataError(f"a toggle is out of range: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Choice):
        return _choice_json(value)
    if isinstance(value, StageOptions | SmartStageOptions):
        return to_json(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, type):
        return _CODES.get(value.__name__, value.__name__)
    return str(value) if isinstance(value, str) else value


def _build_options(kind: type[Any], given: dict[str, Any]) -> Any:
    try:
        return kind(**given)
    except OptionError as error:
        raise DataError(f"a setting is out of range: {error}") from None


def _fields(kind: type[Any], document: Any) -> dict[str, Any]:
    """Values by name of the field, each of the field's type."""
    if not isinstance(document, Mapping):
        raise DataError(f"a setting is {_shown(document)}; expected names and values")
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    found = {}
    for name, value in document.items():
        if name not in types:
            raise DataError(
                f"{kind.__name__} has no {_shown(name)}; the file is of a newer version, or damaged"
            )
        found[name] = _checked(kind, name, types[name], value)
    return found


def _checked(kind: type[Any], name: str, expected: str, value: Any) -> Any:
    if kind is Optimizations and (name in _NESTED or name == "chosen"):
        if name == "chosen" and not isinstance(value, list):
            raise DataError(f"Optimizations.chosen is {_shown(value)}; expected a list")
        return value
    most = next((most for part, most in _MOST.items() if part in name), _MOST_OF_ALL)
    fits = {
        bool: "bool" in expected,
        int: "int" in expected and isinstance(value, int) and value <= most,
        str: "str" in expected and "tuple" not in expected,
        list: "tuple" in expected,
        type(None): "None" in expected,
    }
    plain = not isinstance(value, list) or all(type(each) in (str, int) for each in value)
    if not fits.get(type(value), False) or not plain:
        raise DataError(f"{kind.__name__}.{name} is {_shown(value)}; expected {expected}")
    return tuple(value) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:59]}…"
