"""Optimizations ↔ JSON: what a saved session says of a setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.errors import OptionError

_STAGES = {"stage": StageOptions, "smart_stage": SmartStageOptions}
# Of a stage's options, what may hold classes in place of integer codes.
_EXCEPTIONS = ("closed_exception_types", "ignored_exception_types")


def optimizations_to_json(optimizations: Optimizations) -> dict[str, Any]:
    """A setting, JSON-ready.

    Raises:
      OptionError: a stage of it names exceptions by their classes, which no file can hold.
    """
    for name in _STAGES:
        stage = getattr(optimizations, name)
        for field in _EXCEPTIONS if stage is not None else ():
            classes = [each for each in getattr(stage, field) or () if not isinstance(each, int)]
            if classes:
                raise OptionError(
                    f"{type(stage).__name__}.{field} of the setting "
                    f"{optimizations.label(in_full=True)!r} holds {classes[0]!r}, and only integer "
                    "codes can be saved; give codes such as tf.errors.OUT_OF_RANGE"
                )
    return dataclasses.asdict(optimizations)


def optimizations_from_json(document: Mapping[str, Any]) -> Optimizations:
    """The setting that `optimizations_to_json` gave.

    Raises:
      OptionError, KeyError, TypeError: it is none.
    """
    given = dict(document)
    for name, kind in _STAGES.items():
        if given[name] is not None:
            given[name] = _stage_from(given[name], kind)
    return Optimizations(**given)


def _stage_from(document: Mapping[str, Any], kind: type) -> Any:
    """Options of a stage; JSON has lists where they have tuples."""
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in document.items()}
    for field in _EXCEPTIONS:
        codes = options[field]
        if codes is not None and not all(type(code) is int for code in codes):
            raise TypeError(f"{field} is {codes!r}; expected integer codes")
    return kind(**options)
