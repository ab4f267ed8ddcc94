"""The figures that values offer; `workbench.display` looks this module up, and plotly with it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.core.analysis.memory.memory import By, Memory
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.predictions import Predictions
from workbench.errors import OptionError
from workbench.experiments.comparison.results import Comparison
from workbench.viz.charts.calibration import calibration_figure
from workbench.viz.charts.chart import Chart
from workbench.viz.charts.comparison import blocks_figure, throughput_figure
from workbench.viz.charts.id_skew import id_skew_figure
from workbench.viz.charts.memory import memory_figure
from workbench.viz.charts.predictions import predictions_figure
from workbench.viz.charts.theme import theme_of

_COMPARISON = {"throughput": throughput_figure, "blocks": blocks_figure}


def of_comparison(
    comparison: Comparison, kind: str, variants: Sequence[str] | None, theme: str | None
) -> Chart:
    """As `Comparison.plot` says."""
    if kind not in _COMPARISON:
        kinds = " or ".join(repr(each) for each in _COMPARISON)
        raise OptionError(f"there is no chart {kind!r} of a comparison; expected {kinds}")
    return _COMPARISON[kind](comparison, variants, theme_of(theme))


def of_predictions(predictions: Predictions, theme: str | None) -> Chart:
    """As `Predictions.plot` says."""
    return predictions_figure(predictions, theme_of(theme))


def of_calibration(calibration: Calibration, theme: str | None) -> Chart:
    """As `Calibration.plot` says."""
    return calibration_figure(calibration, theme_of(theme))


def of_lens(lens: EmbeddingLens, tables: Sequence[str] | None, theme: str | None) -> Chart:
    """As `EmbeddingLens.plot` says."""
    return id_skew_figure(lens, tables, theme_of(theme))


def of_memory(memory: Memory, by: By, step: int | None, theme: str | None) -> Chart:
    """As `Memory.plot` says."""
    return memory_figure(memory, by, step, theme_of(theme))
