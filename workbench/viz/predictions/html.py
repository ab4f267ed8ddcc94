"""Predictions as HTML that needs no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from workbench.core.what_if.predictions import Predictions
from workbench.viz.predictions.view import predictions_view
from workbench.viz.style import assets


def predictions_html(predictions: Predictions) -> str:
    """Answer, settings on one axis, and what is withheld, with their own style."""
    template = assets.templates().get_template("predictions/predictions.html.j2")
    module: Any = template.module
    return styled(str(module.predictions(predictions_view(predictions))))


def styled(shown: str) -> str:
    """A part of predictions or of their calibration, in its frame."""
    own = (assets.STATIC / "predictions/predictions.css").read_text("utf-8")
    return f'<style>{assets.page_style()}{own}</style><div class="wb wbq">{shown}</div>'
