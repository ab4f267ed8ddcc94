"""What the column of toggles says of one setting: its name, what it gives, its Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from workbench.core.toggles.toggle import Toggle
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.program.as_code import compare_code
from workbench.experiments.program.refusals import refusal_of
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.comparison.view import rate_words
from workbench.viz.panel.settings.choices import known_toggles
from workbench.viz.panel.settings.group import Group
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.options import (
    excluded_options,
    value_of,
    with_value,
    without,
)
from workbench.viz.panel.settings.predicted_rate import steps_per_s
from workbench.viz.panel.settings.setting import MOVED, PanelSetting, setting_of
from workbench.viz.panel.settings.untried import Untried, untried_of
from workbench.viz.style import format

_PREDICTED, _MEASURED, _NONE = "predicted", "measured", "none"
_NOT_PREDICTED = "Not predicted"
_NO_RUN = "Nothing has run. Run measures this setting."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """A gain beside a toggle.

    `kind` is predicted, measured or none; `title` says against what it is.
    """

    kind: str
    text: str
    title: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingView:
    """One setting of the toggles in finished words.

    Attributes:
      key: of the setting.
      name: what differs from all off.
      chips: by group: what it is predicted to give and what it gave.
      source: "measured", "predicted", or "" where nothing is known.
      rate, half: steps/s, and its interval or range.
      beside: how it stands to the baseline, or why nothing is known.
      code: the cell that measures it.
      ran: whether it has been measured.
      excluded: by group and option, why this setting cannot have it.
      unpredicted: why nothing is predicted of any setting, a sentence; "" where something is.
      untried: toggles elsewhere that are predicted to be faster, and were not run.
    """

    key: str
    name: str
    chips: dict[str, tuple[Chip, ...]]
    source: str
    rate: str
    half: str
    beside: str
    code: str
    ran: bool
    excluded: dict[str, dict[str, str]]
    unpredicted: str
    untried: tuple[Untried, ...]


def setting_view(
    session: Session, setting: PanelSetting, groups: tuple[Group, ...], program: str
) -> SettingView:
    """What is known of a setting.

    Args:
      session: its runs and predictions.
      setting: where the toggles stand.
      groups: the toggles.
      program: an expression for the program.
    """
    run = session.run_of(setting.optimizations())
    toggles = known_toggles(session)
    source, rate, half, beside = _headline(session, setting, run)
    return SettingView(
        key=setting.key,
        name=name_of(setting),
        chips={group.key: tuple(_chips(session, setting, group, toggles)) for group in groups},
        source=source,
        rate=rate,
        half=half,
        beside=beside,
        code=_code(session, setting, program),
        ran=run is not None,
        excluded=excluded_options(
            setting, groups, toggles, is_function=session.program_is_function
        ),
        unpredicted=_unpredicted(session),
        untried=untried_of(session, setting, groups, toggles),
    )


def _code(session: Session, setting: PanelSetting, program: str) -> str:
    wish = session.completed(setting.optimizations())
    return compare_code(
        [] if wish == session.baseline else [wish],
        session.baseline,
        program,
        budget_s=session.budget_s,
        trace_steps=session.trace_steps,
    )


def _headline(
    session: Session, setting: PanelSetting, run: Run | None
) -> tuple[str, str, str, str]:
    """Where its rate comes from, the rate, its interval, and how it stands to the baseline."""
    base_name = name_of(setting_of(session.baseline), inside=True)
    if run is not None:
        rate, half = rate_words(run.measured)
        baseline = session.run_of(session.baseline)
        ratio = session.ratio(run, baseline) if baseline else None
        return _MEASURED, rate, half, _beside(ratio, base_name)
    refused = refusal_of(setting.optimizations(), is_function=session.program_is_function)
    if refused:
        return "", "", "", f"The program cannot have {refused}."
    prediction = session.predict(setting.optimizations())
    if prediction is None:
        return "", "", "", _NO_RUN
    if isinstance(prediction, Withheld):
        return "", "", "", f"{_NOT_PREDICTED}: {prediction.reason}."
    steps = steps_per_s(session, prediction)
    if steps is None:
        return "", "", "", _NO_RUN
    words, low, high = (
        format.rate(steps * each / prediction.ratio, unit="").rstrip()
        for each in (prediction.ratio, prediction.low, prediction.high)
    )
    return _PREDICTED, words, f"({low}–{high})", f"{format.ratio(prediction.ratio)} {base_name}"


def _beside(ratio: Ratio | None, base_name: str) -> str:
    """How a run stands to the baseline; no number of a difference that may be none."""
    if ratio is None:
        return "the baseline"
    if ratio.verdict == "no clear difference":
        interval = format.ratio_range(ratio.low, ratio.high)
        return f"no clear difference to {base_name} ({interval})"
    return f"{format.ratio(ratio.ratio)} {base_name}"


def _unpredicted(session: Session) -> str:
    """Why nothing at all is predicted, a sentence; "" where something is, or before a run."""
    predictions = session.predictions
    if predictions is None or any(
        each.scenario != predictions.traced for each in predictions.predicted
    ):
        return ""
    reasons = dict.fromkeys(each.reason for each in predictions.withheld)
    return f"{_NOT_PREDICTED}: {next(iter(reasons))}." if reasons else ""


def _chips(
    session: Session, setting: PanelSetting, group: Group, toggles: Mapping[str, Toggle]
) -> Iterator[Chip]:
    """Its gain over the same setting without it; where it is off, what its best option gives."""
    off = without(setting, group, toggles)
    if setting != off:
        yield _predicted(session, setting, off, "predicted", "over the same setting without it")
        yield _measured(session, setting, off)
        return
    others = {
        option.label: with_value(setting, group, option.value, toggles)
        for option in group.options
        # A moved boundary is predicted where it is chosen.
        if not option.refused and option.value not in (value_of(setting, group), MOVED)
    }
    gains = {label: _gain(session, other, setting) for label, other in others.items()}
    known = {label: gain.ratio for label, gain in gains.items() if isinstance(gain, Predicted)}
    if known:
        best = max(known, key=lambda label: known[label])
        yield _predicted(session, others[best], setting, best, "over the setting now")
        yield _measured(session, others[best], setting)
        return
    for label, other in others.items():
        if session.run_of(other.optimizations()) and session.run_of(setting.optimizations()):
            ran = _measured(session, other, setting)
            yield dataclasses.replace(ran, text=f"{label}: {ran.text}")


def _gain(session: Session, on: PanelSetting, off: PanelSetting) -> Predicted | Withheld | None:
    """What is predicted of `on`, its ratio to `off`."""
    with_it, without = (session.predict(each.optimizations()) for each in (on, off))
    if not isinstance(with_it, Predicted) or not isinstance(without, Predicted):
        return with_it if isinstance(with_it, Withheld) else None
    return dataclasses.replace(with_it, ratio=with_it.ratio / without.ratio)


def _predicted(
    session: Session, on: PanelSetting, off: PanelSetting, words: str, against: str
) -> Chip:
    gain = _gain(session, on, off)
    if isinstance(gain, Predicted):
        return Chip(
            kind=_PREDICTED,
            text=f"{words} {format.gain(gain.ratio)}",
            title=f"Predicted gain {against}",
        )
    if isinstance(gain, Withheld):
        return Chip(kind=_NONE, text="not predicted", title=f"{_NOT_PREDICTED}: {gain.reason}.")
    return Chip(kind=_NONE, text="not predicted", title="Predictions need one run first.")


def _measured(session: Session, on: PanelSetting, off: PanelSetting) -> Chip:
    runs = [session.run_of(each.optimizations()) for each in (on, off)]
    ratio = session.ratio(runs[0], runs[1]) if runs[0] and runs[1] else None
    if ratio is None:
        return Chip(kind=_NONE, text="not run", title="Both settings must have run.")
    return Chip(
        kind=_MEASURED,
        text=_honest(ratio.ratio, ratio.low, ratio.high),
        title=f"95{format.NBSP}% {format.ratio_range(ratio.low, ratio.high)} times as fast",
    )


def _honest(ratio: float, low: float, high: float) -> str:
    """The gain; no percentage of a difference that includes zero."""
    return "no clear difference" if low <= 1 <= high else f"measured {format.gain(ratio)}"
