"""Figures of a comparison: their numbers, words and symbols."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.comparisons import (
    ALL,
    comparison,
    every_toggle_comparison,
    planned_comparison,
    variant,
)
from tests.builders.examples import few
from workbench.errors import OptionError
from workbench.experiments.comparison.results import Comparison
from workbench.viz.charts.theme import LIGHT


def traces(figure):
    return {trace.name: trace for trace in figure.data}


class TestThroughput:
    def test_bars_and_whiskers(self):
        bars = planned_comparison().plot().data[0]
        assert bars.type == "bar" and bars.orientation == "h"
        assert list(bars.y) == ["off", "stage", "smart stage"]
        assert list(bars.x) == [39.8, 72.8, 80.1]
        assert list(bars.error_x.array) == pytest.approx([0.4, 0.8, 0.9])
        assert list(bars.error_x.arrayminus) == pytest.approx([0.4, 0.8, 0.9])
        assert bars.base is None
        assert bars.hovertext[1] == (
            "<b>Stage</b><br>72.8\u00a0steps/s (72.0–73.6)<br>1.83× (1.80–1.86), ▲ faster"
            "<br>step, median 13.7\u00a0ms"
        )

    def test_what_was_predicted_is_a_hollow_diamond(self):
        diamonds = traces(planned_comparison().plot())["predicted by the plan"]
        assert list(diamonds.x) == [1.95 * 39.8] and list(diamonds.y) == ["smart stage"]
        assert diamonds.marker.symbol == "diamond-open"
        assert "predicted 1.95×, 77.6\u00a0steps/s" in diamonds.hovertext[0]
        assert "predicted by the plan" not in traces(comparison().plot())

    def test_lines_of_the_baseline_and_the_bound(self):
        lines = {shape.name: (shape.x0, shape.x1) for shape in comparison().plot().layout.shapes}
        assert lines == {
            "baseline: All off": (39.8, 39.8),
            "1 / max(T_input, T_compute)": (74.1, 74.1),
        }

    def test_rates_ratios_and_verdicts_stand_beside_the_rows(self):
        figure = every_toggle_comparison().plot()
        beside = {note.y: note for note in figure.layout.annotations}
        assert beside[0].text == "39.8 ± 0.4"
        assert beside[5].text == "31.2 ± 0.6<br>0.78× (0.76–0.81) ▼ slower"
        assert beside[5].font.color == LIGHT.harm and beside[0].font.color == LIGHT.ink
        assert list(figure.layout.yaxis.ticktext)[-1] == (
            "Stage + smart stage + fused V2 + <br>cost model executor"
        )

    def test_the_answer_is_the_title(self):
        title = comparison().plot().layout.title.text
        assert title.startswith("Stage trains <b>1.83× as fast</b> as all off")
        assert all(len(line) < 95 for line in title.split("<br>"))

    def test_one_block_has_no_whisker(self):
        alone = comparison(
            variants=(variant("off", 40.0, math.inf, block_steps_per_s=(40.0,)),),
            ratios=(),
            equivalence=(),
        )
        bars = alone.plot().data[0]
        assert list(bars.error_x.array) == [0.0] and "(" not in bars.hovertext[0]


class TestBlocks:
    def test_in_the_order_they_ran(self):
        found = traces(planned_comparison().plot("blocks"))
        stage = found["Stage"]
        assert list(stage.x) == [1, 2, 3, 4, 5, 6]
        assert list(stage.y) == list(planned_comparison().variants[1].block_steps_per_s)
        assert list(found["Stage, mean"].y) == [72.8, 72.8]
        assert stage.hovertext[0] == "<b>Stage</b><br>round 1: 72.0\u00a0steps/s"

    def test_symbols_differ_and_one_variant_has_the_accent(self):
        marks = [t for t in every_toggle_comparison().plot("blocks").data if t.mode == "markers"]
        symbols = [mark.marker.symbol for mark in marks]
        assert len(set(symbols)) == len(symbols) == 8 and "diamond-open" not in symbols
        accented = [mark.name for mark in marks if mark.marker.color == LIGHT.accent]
        assert accented == ["Stage + smart stage + fused V2 + cost model executor"]


@pytest.mark.parametrize("kind", ["throughput", "blocks"])
def test_chosen_variants(kind: str):
    figure = every_toggle_comparison().plot(kind, variants=["stage", ALL])
    names = [*figure.data[0].y] if kind == "throughput" else [t.legendgroup for t in figure.data]
    assert set(names) == {"stage", ALL}


def test_what_cannot_be_drawn_is_an_error():
    with pytest.raises(OptionError, match="no chart 'pie' of a comparison; expected 'through"):
        comparison().plot("pie")
    with pytest.raises(OptionError, match="no variant 'on'; expected some of off, stage"):
        comparison().plot(variants=["on"])
    with pytest.raises(OptionError, match="no variant was chosen; expected some of off, stage"):
        comparison().plot("blocks", variants=[])


_LABELS = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=8, unique=True)


def _of(labels: list[str], rates: list[float]) -> Comparison:
    measured = [variant(label, rate, rate / 50) for label, rate in zip(labels, rates, strict=False)]
    return comparison(
        variants=tuple(measured), baseline=labels[0], ratios=(), equivalence=(), bounds=()
    )


@few(12)
@given(_LABELS, st.lists(st.floats(1e-3, 1e6), min_size=8, max_size=8))
def test_every_variant_is_drawn_once_and_bars_begin_at_0(labels, rates):
    found = _of(labels, rates)
    figure = found.plot()
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert len(bars) == 1 and list(bars[0].y) == labels and bars[0].base is None
    low, high = figure.layout.xaxis.range
    assert low == 0 and high >= max(v.high for v in found.variants)
    marks = [t for t in found.plot("blocks").data if t.mode == "markers"]
    assert [mark.legendgroup for mark in marks] == labels


@few(8)
@given(_LABELS)
def test_no_label_becomes_markup(labels):
    labels = [f"<a href='x'>{label}</a>" for label in labels]
    shown = _of(labels, [1.0] * 8).plot().layout.yaxis.ticktext
    assert all("<a" not in text and "&lt;a" in text for text in shown)
