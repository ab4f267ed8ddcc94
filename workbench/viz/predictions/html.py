"""Predictions and their calibration as HTML that needs no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.predictions import Predictions
from workbench.viz.predictions.calibration_view import calibration_view
from workbench.viz.predictions.view import predictions_view
from workbench.viz.style import assets


def predictions_html(predictions: Predictions) -> str:
    """Answer, settings on one axis, and what is withheld, with their own style."""
    template = assets.templates().get_template("predictions/predictions.html.j2")
    module: Any = template.module
    return _styled(str(module.predictions(predictions_view(predictions))))


def predictions_page(predictions: Predictions) -> str:
    """The same as a page of its own."""
    template = assets.templates().get_template("predictions/page.html.j2")
    return template.render(title=predictions.title, shown=predictions_html(predictions))


def calibration_html(calibration: Calibration) -> str:
    """Answer, scatter plot and tables of a calibration, with their own style."""
    template = assets.templates().get_template("predictions/calibration.html.j2")
    module: Any = template.module
    return _styled(str(module.calibration(calibration_view(calibration))))


def _styled(shown: str) -> str:
    own = (assets.STATIC / "predictions/predictions.css").read_text("utf-8")
    return f'<style>{assets.page_style()}{own}</style><div class="wb wbq">{shown}</div>'
