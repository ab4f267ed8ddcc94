"""The smallest program that still differs like a larger one."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.compare import Difference
from tests.fuzz.program import PARTS, Part
from tests.fuzz.result import Result

# These name something: another one would be another program.
_KEPT = ("seed", "fetched", "fed", "number", "edit")
_AT_LEAST_ONE = ("tables", "ids", "features", "dims", "optimizers", "runs")


def shrunk(
    result: Result, check: Callable[[Any], Result], seconds: float = 60.0
) -> tuple[Any, Difference]:
    """The smallest program that is found in some time, and how it differs.

    Args:
      result: of a program that differs.
      check: runs a program both ways.
      seconds: after which no smaller one is tried.
    """
    end = time.monotonic() + seconds
    program, first = result.program, result.differences[0]
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_ones(program):
            if time.monotonic() > end:
                return program, first
            try:
                found = check(candidate)
            except Exception:
                continue
            alike = [each for each in found.differences if _like(each) == _like(first)]
            if alike:
                program, first, smaller = found.program, alike[0], True
                break
    return program, first


def _like(difference: Difference) -> tuple[str, str]:
    return difference.kind, difference.where.rpartition(":")[2].strip()


def smaller_ones(program: Any) -> Iterator[Any]:
    """Programs with one thing less, or one thing that is simpler."""
    fields = [each for each in dataclasses.fields(program) if each.name not in _KEPT]
    lists = [each.name for each in fields if isinstance(getattr(program, each.name), tuple)]
    for name in lists:
        values = getattr(program, name)
        least = 1 if name in _AT_LEAST_ONE else 0
        if name == "runs" and len(values) > 1:
            yield from (dataclasses.replace(program, runs=(each,)) for each in values)
        if len(values) - 2 >= least and len(values) > 3:
            half = len(values) // 2
            yield dataclasses.replace(program, **{name: values[:half]})
            yield dataclasses.replace(program, **{name: values[half:]})
        for at in reversed(range(len(values))):
            if len(values) > least:
                yield dataclasses.replace(program, **{name: values[:at] + values[at + 1 :]})
    for each in fields:
        if each.name not in lists and getattr(program, each.name) != each.default:
            yield dataclasses.replace(program, **{each.name: each.default})
    for name in lists:
        values = getattr(program, name)
        for at, value in enumerate(values):
            for simpler in _simpler(value):
                changed = (*values[:at], simpler, *values[at + 1 :])
                yield dataclasses.replace(program, **{name: changed})


def _simpler(value: Any) -> Iterator[Any]:
    if isinstance(value, Part):
        for name, options in PARTS[value.kind].items():
            if value[name] != options[0]:
                yield Part(value.kind, value.number, {**value.choices, name: options[0]})
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            default = field.default
            if (
                field.name not in _KEPT
                and default is not dataclasses.MISSING
                and getattr(value, field.name) != default
            ):
                yield dataclasses.replace(value, **{field.name: default})  # type: ignore[type-var]
