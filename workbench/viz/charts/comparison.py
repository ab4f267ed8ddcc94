"""A comparison: steps/s of its variants, and the blocks in the order they ran."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from workbench.errors import OptionError
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.viz.charts import frame, words
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.theme import Theme
from workbench.viz.comparison.answer import answer, best_ratio
from workbench.viz.comparison.chart import predicted_rate, tick_values
from workbench.viz.comparison.rounds import rounds_a_point
from workbench.viz.comparison.view import VERDICTS
from workbench.viz.style import format

_PLOT = 300
# Of variants in the chart of blocks; a hollow diamond would be a prediction.
_BASELINE, _BEST = "square-open", "circle"
_SYMBOLS = ("triangle-up", "square", "x", "star", "triangle-down", "cross", "hexagon", "bowtie")
_INTERVAL = f"95{format.NBSP}% interval"


def throughput_figure(
    comparison: Comparison, variants: Sequence[str] | None, theme: Theme
) -> Chart:
    """A bar with whiskers for each variant, a hollow diamond for what was predicted of it."""
    chosen = _chosen(comparison, variants)
    ratios = {ratio.label: ratio for ratio in comparison.ratios}
    predicted = {v.label: predicted_rate(comparison, ratios.get(v.label)) for v in chosen}
    traces = [_bars(comparison, chosen, ratios, theme)]
    if any(rate is not None for rate in predicted.values()):
        traces.append(_diamonds(predicted, ratios, theme))
    figure = frame.framed(traces, theme, answer(comparison).sentence, plot=0)
    frame.add_rows(figure, [_row(each, ratios.get(each.label), theme) for each in chosen], theme)
    baseline = next((v for v in comparison.variants if v.label == comparison.baseline), None)
    if baseline is not None:
        name = f"baseline: {words.setting(baseline.label)}"
        frame.upright(figure, baseline.steps_per_s, name, theme.ink, "dash")
    for bound in comparison.bounds:
        frame.upright(figure, bound.steps_per_s, words.named(bound.name), theme.quiet, "dot")
    figure.update_xaxes(
        title_text="steps/s", range=[0, tick_values(comparison)[-1] * 1.02], rangemode="tozero"
    )
    return figure.update_layout(bargap=0.45)


def blocks_figure(comparison: Comparison, variants: Sequence[str] | None, theme: Theme) -> Chart:
    """Steps/s of every block of the variants, round by round, with their means."""
    chosen = _chosen(comparison, variants)
    best = best_ratio(comparison)
    others = iter(_SYMBOLS * (1 + len(chosen) // len(_SYMBOLS)))
    traces: list[go.Scatter] = []
    for variant in chosen:
        if variant.label == comparison.baseline:
            symbol, ink = _BASELINE, theme.ink
        elif best is not None and variant.label == best.label:
            symbol, ink = _BEST, theme.accent
        else:
            symbol, ink = next(others), theme.quiet
        traces += [_blocks(variant, symbol, ink), _mean(variant, ink)]
    rounds = max(len(variant.block_steps_per_s) for variant in chosen)
    count = f"{format.integer(rounds)} round{'s' * (rounds != 1)}"
    title = (("Steps/s of every block", True), (f" of {comparison.program}, {count}.", False))
    figure = frame.framed(traces, theme, title, plot=_PLOT)
    figure.update_xaxes(
        title_text="Round, in the order they ran",
        range=[0.5, rounds + 0.5],
        dtick=max(1, round(rounds / 12)),
        tick0=1,
        showgrid=False,
    )
    return figure.update_yaxes(
        title_text="steps/s", range=[0, tick_values(comparison)[-1] * 1.02], rangemode="tozero"
    )


def _chosen(comparison: Comparison, variants: Sequence[str] | None) -> tuple[MeasuredVariant, ...]:
    """The variants of these labels, in the order of the comparison."""
    if variants is None:
        return comparison.variants
    labels = [variant.label for variant in comparison.variants]
    asked = [variants] if isinstance(variants, str) else list(variants)
    unknown = [label for label in asked if label not in labels]
    if unknown or not asked:
        missing = f"there is no variant {unknown[0]!r}" if unknown else "no variant was chosen"
        raise OptionError(f"{missing}; expected some of {', '.join(labels)}")
    return tuple(variant for variant in comparison.variants if variant.label in asked)


def _bars(
    comparison: Comparison,
    chosen: Sequence[MeasuredVariant],
    ratios: dict[str, Ratio],
    theme: Theme,
) -> go.Bar:
    known = [_is_known(variant) for variant in chosen]
    return go.Bar(
        name=f"measured, {_INTERVAL}",
        orientation="h",
        x=[variant.steps_per_s for variant in chosen],
        y=[variant.label for variant in chosen],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [
                v.high - v.steps_per_s if k else 0.0 for v, k in zip(chosen, known, strict=True)
            ],
            "arrayminus": [
                v.steps_per_s - v.low if k else 0.0 for v, k in zip(chosen, known, strict=True)
            ],
            "color": theme.ink,
            "thickness": 2,
            "width": 6,
        },
        marker={"color": theme.fill, "line": {"width": 0}},
        hovertext=[_hover(comparison, variant, ratios.get(variant.label)) for variant in chosen],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _diamonds(
    predicted: dict[str, float | None], ratios: dict[str, Ratio], theme: Theme
) -> go.Scatter:
    rates = {label: rate for label, rate in predicted.items() if rate is not None}
    return go.Scatter(
        name="predicted by the plan",
        mode="markers",
        x=list(rates.values()),
        y=list(rates),
        marker={
            "symbol": "diamond-open",
            "size": 11,
            "color": theme.ink,
            "line": {"width": 1.6, "color": theme.ink},
        },
        hovertext=[
            words.hover(
                words.setting(label),
                f"predicted {format.ratio(ratios[label].predicted)}, {format.rate(rate)}",
            )
            for label, rate in rates.items()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _blocks(variant: MeasuredVariant, symbol: str, ink: str) -> go.Scatter:
    rates = variant.block_steps_per_s
    name = words.setting(variant.label)
    return go.Scatter(
        name=name,
        legendgroup=variant.label,
        mode="markers",
        x=list(range(1, len(rates) + 1)),
        y=list(rates),
        marker={
            "symbol": symbol,
            "size": 9 if rounds_a_point(len(rates)) == 1 else 5,
            "color": ink,
            "line": {"width": 1.5, "color": ink},
        },
        hovertext=[
            words.hover(name, f"round {format.integer(number)}: {format.rate(rate)}")
            for number, rate in enumerate(rates, 1)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _mean(variant: MeasuredVariant, ink: str) -> go.Scatter:
    return go.Scatter(
        name=f"{words.setting(variant.label)}, mean",
        legendgroup=variant.label,
        showlegend=False,
        mode="lines",
        x=[0.5, len(variant.block_steps_per_s) + 0.5],
        y=[variant.steps_per_s] * 2,
        line={"color": ink, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )


def _is_known(variant: MeasuredVariant) -> bool:
    """Whether its interval is: one block gives none."""
    return math.isfinite(variant.low) and math.isfinite(variant.high)


def _row(variant: MeasuredVariant, ratio: Ratio | None, theme: Theme) -> frame.Row:
    slower = ratio is not None and ratio.verdict == "slower"
    return frame.Row(
        label=variant.label,
        left=words.setting_lines(variant.label),
        right=_beside(variant, ratio),
        ink=theme.harm if slower else theme.ink,
    )


def _rate(variant: MeasuredVariant, unit: str = "steps/s") -> str:
    return format.rate_between(variant.steps_per_s, variant.low, variant.high, unit).rstrip()


def _beside(variant: MeasuredVariant, ratio: Ratio | None) -> str:
    """Rate, ratio and verdict at the end of a row."""
    if ratio is None:
        return _rate(variant, unit="")
    said = f"{_rate(variant, unit='')}{words.BREAK}{format.ratio(ratio.ratio)} "
    return f"{said}({format.ratio_range(ratio.low, ratio.high)}) {_verdict(ratio)}"


def _verdict(ratio: Ratio) -> str:
    return words.named(VERDICTS.get(ratio.verdict, ratio.verdict))


def _hover(comparison: Comparison, variant: MeasuredVariant, ratio: Ratio | None) -> str:
    of_ratio = "baseline" if variant.label == comparison.baseline else ""
    if ratio is not None:
        interval = format.ratio_range(ratio.low, ratio.high)
        of_ratio = f"{format.ratio(ratio.ratio)} ({interval}), {_verdict(ratio)}"
    low = format.rate(variant.low, unit="").rstrip()
    known = f" ({low}–{format.rate(variant.high, unit='').rstrip()})" if _is_known(variant) else ""
    return words.hover(
        words.setting(variant.label),
        f"{format.rate(variant.steps_per_s)}{known}",
        of_ratio,
        f"step, median {format.duration(variant.step_ms_median * 1e6)}",
    )
