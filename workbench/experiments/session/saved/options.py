"""Optimizations ↔ JSON: what a saved session says of a setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import DataError, OptionError
from workbench.experiments.program.settings_json import optimizations_from, to_json
from workbench.files.saved_values import shown, value_of

_STAGES = {"stage": StageOptions, "smart_stage": SmartStageOptions}
_CHOSEN = "chosen"
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
    plain = dataclasses.asdict(dataclasses.replace(optimizations, chosen=()))
    return {**plain, _CHOSEN: to_json(optimizations).get(_CHOSEN, [])}


def optimizations_from_json(document: Mapping[str, Any]) -> Optimizations:
    """The setting that `optimizations_to_json` gave.

    Raises:
      DataError: it is none.
    """
    # Absent from sessions of before there were any.
    document = {_CHOSEN: [], **document}
    _require_all(Optimizations, document)
    for name, kind in _STAGES.items():
        held = document[name]
        if held is not None:
            _require_all(kind, value_of(dict[str, Any], held, name))
            for field in _EXCEPTIONS:
                codes = held[field]
                if codes is not None and not (
                    isinstance(codes, list) and all(type(code) is int for code in codes)
                ):
                    raise DataError(f"{field} is {shown(codes)}; expected integer codes")
    return optimizations_from(document)


def _require_all(kind: type, held: Mapping[str, Any]) -> None:
    for field in dataclasses.fields(kind):
        if field.name not in held:
            raise DataError(f"{kind.__name__} has no value of {field.name}")
