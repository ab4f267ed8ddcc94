"""What the column of toggles says of one setting: its name, what it gives, its Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.experiments.program.as_code import compare_code
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.comparison.view import rate_words
from workbench.viz.panel.settings.groups import Group
from workbench.viz.panel.settings.names import inside_sentence, name_of
from workbench.viz.panel.settings.predicted_rate import steps_per_s
from workbench.viz.panel.settings.setting import CHOICES, MOVED, OFF, PanelSetting, setting_of
from workbench.viz.style import format

_PREDICTED, _MEASURED, _NONE = "predicted", "measured", "none"
_NO_RUN = "Nothing has run. Run measures this setting; predictions need one run first."


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
    source, rate, half, beside = _headline(session, setting, run)
    return SettingView(
        key=setting.key,
        name=name_of(setting),
        chips={group.key: tuple(_chips(session, setting, group)) for group in groups},
        source=source,
        rate=rate,
        half=half,
        beside=beside,
        code=_code(session, setting, program),
        ran=run is not None,
    )


def _code(session: Session, setting: PanelSetting, program: str) -> str:
    wish = setting.optimizations()
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
    base = setting_of(session.baseline)
    base_name = inside_sentence(name_of(base))
    if run is not None:
        rate, half = rate_words(run.measured)
        baseline = session.run_of(session.baseline)
        ratio = session.ratio(run, baseline) if baseline else None
        beside = "the baseline" if ratio is None else f"{format.ratio(ratio.ratio)} {base_name}"
        return _MEASURED, rate, half, beside
    prediction = session.predict(setting.optimizations())
    if prediction is None:
        return "", "", "", _NO_RUN
    if isinstance(prediction, Withheld):
        return "", "", "", f"Withheld: {prediction.reason}."
    steps = steps_per_s(session, prediction)
    if steps is None:
        return "", "", "", _NO_RUN
    words, low, high = (
        format.rate(steps * each / prediction.ratio, unit="").rstrip()
        for each in (prediction.ratio, prediction.low, prediction.high)
    )
    return _PREDICTED, words, f"({low}–{high})", f"{format.ratio(prediction.ratio)} {base_name}"


def _chips(session: Session, setting: PanelSetting, group: Group) -> Iterator[Chip]:
    """Its gain over the same setting without it; where it is off, what its best option gives."""
    off = _without(setting, group)
    if setting != off:
        yield _predicted(session, setting, off, "predicted", "over the same setting without it")
        yield _measured(session, setting, off)
        return
    others = [
        setting.changed(**{group.key: option.value})
        for option in group.options
        # A moved boundary is predicted where it is chosen.
        if not option.refused and option.value not in (getattr(setting, group.key), MOVED)
    ]
    gains = [(_gain(session, other, setting), other) for other in others]
    known = [(gain.ratio, other) for gain, other in gains if isinstance(gain, Predicted)]
    if not known:
        return
    _, best = max(known, key=lambda each: each[0])
    label = next(o.label for o in group.options if o.value == getattr(best, group.key))
    yield _predicted(session, best, setting, label, "over the setting now")
    yield _measured(session, best, setting)


def _without(setting: PanelSetting, group: Group) -> PanelSetting:
    """The same setting with this toggle off."""
    if group.key == "stage":
        return setting.changed(stage=OFF)
    off = CHOICES[group.key][0] if group.key in CHOICES else 0
    return setting.changed(**{group.key: off})


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
        return Chip(kind=_NONE, text="not predicted", title=f"Withheld: {gain.reason}.")
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
