"""Configuration: what measures a comparison again, as JSON. It names programs and holds no code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import DataError
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.origin import Origin, origin_from
from workbench.experiments.program.settings_json import optimizations_from, to_json

_FORMAT = 1
_LONGEST_S = 24 * 3600.0
_MOST_STEPS = 100_000
_MOST_SETTINGS = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """What `compare` was asked for.

    Attributes:
      program: its name.
      origin: what makes it again; None where only Python code does.
      settings: what was measured, the baseline first.
      budget_s, trace_steps, step_stats, equivalence_steps, verify, stop_when_clear, seed: as of
        `compare`.
    """

    program: str
    origin: Origin | None
    settings: tuple[Optimizations, ...]
    budget_s: float
    trace_steps: int
    step_stats: bool
    equivalence_steps: int
    seed: int
    verify: bool = False
    stop_when_clear: bool = False

    def to_json(self) -> dict[str, Any]:
        """A document that `configuration_from` reads."""
        plain = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("origin", "settings")
        }
        return {
            "format_version": _FORMAT,
            **plain,
            "origin": self.origin.to_json() if self.origin else None,
            "settings": [to_json(each) for each in self.settings],
        }


def configuration_of(
    program: AnyProgram, settings: Sequence[Optimizations], **measured: Any
) -> Configuration:
    """The configuration of a program that is measured with these settings."""
    return Configuration(
        program=program.name, origin=program.origin, settings=tuple(settings), **measured
    )


def configuration_from(document: Any) -> Configuration:
    """Reads a configuration, which may come from anybody.

    Raises:
      DataError: it is damaged, out of range, or of a newer format.
    """
    if not isinstance(document, Mapping):
        raise DataError("is no configuration of a comparison: expected names and values")
    version = document.get("format_version")
    if version != _FORMAT or isinstance(version, bool):
        newer = isinstance(version, int) and version > _FORMAT
        advice = "update it (pip install --upgrade recsys-workbench)" if newer else "it is damaged"
        raise DataError(
            f"its configuration has the format {version!r}, and this Workbench reads {_FORMAT}; "
            f"{advice}"
        )
    settings = document.get("settings")
    if not isinstance(settings, list) or not 1 <= len(settings) <= _MOST_SETTINGS:
        raise DataError(f"its configuration has no list of 1 to {_MOST_SETTINGS} settings")
    origin, program = document.get("origin"), document.get("program")
    if not isinstance(program, str) or not program:
        raise DataError("its configuration has no name of a program")
    return Configuration(
        program=program,
        origin=None if origin is None else origin_from(origin),
        settings=tuple(map(optimizations_from, settings)),
        budget_s=_number(document, "budget_s", 0.01, _LONGEST_S),
        trace_steps=int(_number(document, "trace_steps", 0, _MOST_STEPS)),
        step_stats=document.get("step_stats") is True,
        equivalence_steps=int(_number(document, "equivalence_steps", 0, _MOST_STEPS)),
        seed=int(_number(document, "seed", 0, 2**63 - 1)),
        verify=document.get("verify") is True,
        stop_when_clear=document.get("stop_when_clear") is True,
    )


def _number(document: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value: Any = document.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Nor is what is no number; and a whole one may be larger than any float.
    if not number or not low <= value <= high:
        raise DataError(f"its configuration has no {name} from {low:g} to {high:g}: {value!r:.40}")
    return float(value) if isinstance(low, float) else value
