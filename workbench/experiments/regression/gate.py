"""Gate: whether a comparison holds a limit on how much slower a variant may be.

A variant is slower only where its whole 95 % interval lies below the limit. Where the interval is
too wide to tell, nothing is shown; that is said, and passes unless the gate is strict.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from workbench.errors import OptionError
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.experiments.comparison.provenance import PROVENANCE
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.program.settings_names import OF_MEASURING

Standing = Literal["holds", "slower", "not shown"]

# What is no setting of the program: how long it was measured, and what came of it.
_MACHINE = ("cpu", "cores")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """One variant, held against the limit.

    Attributes:
      label: the variant.
      ratio: how many times as fast as what it is held against, with its interval.
      standing: what the interval lets one say.
    """

    label: str
    ratio: Interval
    standing: Standing


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gate:
    """A verdict for a pull request.

    Attributes:
      limit: how much slower a variant may be, 0.03 for 3 %.
      strict: what is not shown does not pass either.
      against: what the variants are held against, in words.
      checked: the variants.
      notes: what a reader must know, a sentence each.
    """

    limit: float
    strict: bool
    against: str
    checked: tuple[Checked, ...]
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        """The worst of the variants: slower, not shown, or all hold."""
        found = {each.standing for each in self.checked}
        return "slower" if "slower" in found else "not shown" if "not shown" in found else "holds"

    @property
    def passed(self) -> bool:
        """Whether the pull request may go on."""
        return self.standing == "holds" or (self.standing == "not shown" and not self.strict)


def require_limit(limit: float) -> None:
    """Requires a share of one.

    Raises:
      OptionError: anything else.
    """
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < 1:
        raise OptionError(f"limit is {limit!r}; expected 0 or more and below 1, such as 0.03")


def gate(comparison: Comparison, limit: float, *, strict: bool = False) -> Gate:
    """Holds every variant of a comparison against its baseline.

    Args:
      comparison: what was measured.
      limit: how much slower than the baseline a variant may be, 0.03 for 3 %.
      strict: a variant whose interval is too wide to tell does not pass.

    Raises:
      OptionError: there is no variant beside the baseline, or an impossible limit.
    """
    require_limit(limit)
    if not comparison.ratios:
        raise OptionError(
            f"{comparison.program} was measured with the baseline alone, so nothing can be held "
            "against it; measure a toggle, or hold it against a saved comparison"
        )
    checked = [
        _checked(ratio.label, Interval(value=ratio.ratio, low=ratio.low, high=ratio.high), limit)
        for ratio in comparison.ratios
    ]
    return Gate(
        limit=limit,
        strict=strict,
        against=_words(comparison.baseline),
        checked=tuple(checked),
        notes=_untrained(comparison),
    )


def gate_against(
    comparison: Comparison,
    before: Comparison,
    limit: float,
    *,
    strict: bool = False,
    any_machine: bool = False,
) -> Gate:
    """Holds every setting that two comparisons have in common, against the earlier one.

    Args:
      comparison, before: of the same program with the same settings, now and on another day.
      limit: how much slower than before a variant may be, 0.03 for 3 %.
      strict: a variant whose interval is too wide to tell does not pass.
      any_machine: the earlier one may be of another machine.

    Raises:
      OptionError: other programs, other settings, another machine, no variant in common, or an
        impossible limit.
    """
    require_limit(limit)
    require_same(before, comparison.program, comparison.settings)
    require_machine(before, comparison.environment, any_machine)
    notes = [*_untrained(comparison), *_circumstances(before, comparison.environment)]
    earlier = {variant.label: variant for variant in before.variants}
    common = [variant for variant in comparison.variants if variant.label in earlier]
    if not common:
        raise OptionError(
            f"the two comparisons have no variant in common: {_listed(comparison.variants)} now, "
            f"{_listed(before.variants)} before"
        )
    alone = [variant for variant in comparison.variants if variant.label not in earlier]
    if alone:
        notes.append(f"Not measured before, so not held against anything: {_listed(alone)}.")
    notes.append(
        "The two were measured one after the other: what else the machine did in between is in "
        "no interval."
    )
    checked = [
        _checked(variant.label, rate_ratio(variant, earlier[variant.label]), limit)
        for variant in common
    ]
    return Gate(
        limit=limit,
        strict=strict,
        against="the earlier comparison",
        checked=tuple(checked),
        notes=tuple(notes),
    )


def standing(ratio: Interval, limit: float) -> Standing:
    """What the interval of a ratio says of a limit."""
    if ratio.high < 1 - limit:
        return "slower"
    return "holds" if ratio.low >= 1 - limit else "not shown"


def rate_ratio(now: MeasuredVariant, before: MeasuredVariant) -> Interval:
    """How many times as fast as before; both intervals are taken to be independent."""
    return quotient(_rate(now), _rate(before))


def quotient(now: Interval, before: Interval) -> Interval:
    """One estimate over another one, independent of it, with the interval of both."""
    value = now.value / before.value
    below = math.hypot(_log(now.value, now.low), _log(before.high, before.value))
    above = math.hypot(_log(now.high, now.value), _log(before.value, before.low))
    return Interval(value=value, low=value * math.exp(-below), high=_times_exp(value, above))


def _times_exp(value: float, exponent: float) -> float:
    try:
        return value * math.exp(exponent)
    except OverflowError:
        return math.inf


def _log(one: float, other: float) -> float:
    """log(one / other), of the ends of an interval, which may be 0 and infinity."""
    return math.log(one / other) if other > 0 and math.isfinite(one) else math.inf


def _rate(variant: MeasuredVariant) -> Interval:
    return Interval(value=variant.steps_per_s, low=variant.low, high=variant.high)


def _checked(label: str, ratio: Interval, limit: float) -> Checked:
    return Checked(label=label, ratio=ratio, standing=standing(ratio, limit))


def _words(label: str) -> str:
    return "all off" if label == "off" else label


def _listed(variants: Sequence[MeasuredVariant]) -> str:
    return ", ".join(repr(variant.label) for variant in variants)


def _untrained(comparison: Comparison) -> tuple[str, ...]:
    """A sentence where a variant does not train the same, which no gate on speed sees."""
    labels = dict.fromkeys(check.label for check in comparison.equivalence if not check.passed)
    if not labels:
        return ()
    return (f"Not the same training: {', '.join(map(repr, labels))}; see the report.",)


def require_same(before: Comparison, program: str, settings: Mapping[str, Any]) -> None:
    """Requires that a program is the one of an earlier comparison, with the same settings.

    Raises:
      OptionError: names what differs.
    """
    if program != before.program:
        raise OptionError(
            f"the earlier comparison is of {before.program!r}, this one of {program!r}; expected "
            "the same program"
        )
    now, then = _settings(settings), _settings(before.settings)
    for key in sorted({*now, *then}):
        # Options of a stage stand there where a variant has one.
        known_to_one = "." in key and (key not in now or key not in then)
        if now.get(key) != then.get(key) and not known_to_one:
            raise OptionError(
                f"the settings differ: {key} is {now.get(key)!r} now and was {then.get(key)!r} "
                "in the earlier comparison; measure with the same settings"
            )


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the program; a generated file lies where results were written."""
    found = {key: value for key, value in settings.items() if key not in OF_MEASURING}
    if isinstance(found.get("data"), str):
        found["data"] = found["data"].rpartition("/")[2]
    return found


def require_machine(
    before: Comparison, environment: Mapping[str, Any], any_machine: bool = False
) -> None:
    """Requires that an earlier comparison is of this machine, unless any will do.

    Raises:
      OptionError: names what differs.
    """
    for key in () if any_machine else _MACHINE:
        if environment.get(key) != before.environment.get(key):
            raise OptionError(
                f"another machine: {_differs(before, environment, key)}; measure both on one "
                "machine, or say that any will do (--any-machine)"
            )


def _circumstances(before: Comparison, environment: Mapping[str, Any]) -> list[str]:
    """Sentences for what differs in machine and versions."""
    described = [key for key in environment if key not in PROVENANCE]
    differing = [key for key in described if environment[key] != before.environment.get(key)]
    return [
        f"{'Another machine: ' * (key in _MACHINE)}{_differs(before, environment, key)}."
        for key in differing
    ]


def _differs(before: Comparison, environment: Mapping[str, Any], key: str) -> str:
    then = before.environment.get(key)
    return f"{key} is {environment.get(key)!r} now and was {then!r} in the earlier comparison"
