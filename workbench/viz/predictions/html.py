"""Predictions, calibrations and ceilings as HTML: no script, nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.ceilings import Ceilings
from workbench.core.what_if.predictions import Predictions
from workbench.viz.predictions.calibration_view import calibration_view
from workbench.viz.predictions.ceilings_view import CAPTION, ceilings_view
from workbench.viz.predictions.view import predictions_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def predictions_html(predictions: Predictions) -> str:
    """Answer, settings on one axis, and what is withheld, with their own style."""
    return alone(predictions_fragment(predictions), "predictions")


def predictions_fragment(predictions: Predictions) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    template = assets.templates().get_template("predictions/predictions.html.j2")
    module: Any = template.module
    return fragment(module.predictions(predictions_view(predictions)), "wbq")


def predictions_page(predictions: Predictions) -> str:
    """The same as a page of its own."""
    template = assets.templates().get_template("predictions/page.html.j2")
    return template.render(title=predictions.title, shown=predictions_html(predictions))


def calibration_html(calibration: Calibration) -> str:
    """Answer, scatter plot and tables of a calibration, with their own style."""
    return alone(calibration_fragment(calibration), "predictions")


def calibration_fragment(calibration: Calibration) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    template = assets.templates().get_template("predictions/calibration.html.j2")
    module: Any = template.module
    return fragment(module.calibration(calibration_view(calibration)), "wbq")


def ceilings_html(ceilings: Ceilings) -> str:
    """Answer and steps of measured ceilings, with their own style."""
    return alone(ceilings_fragment(ceilings), "predictions")


def ceilings_fragment(ceilings: Ceilings) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    template = assets.templates().get_template("predictions/ceilings.html.j2")
    module: Any = template.module
    return fragment(module.ceilings(ceilings_view(ceilings), CAPTION), "wbq")
