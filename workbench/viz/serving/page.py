"""The report of served models: one HTML page that needs no kernel, no network and no script."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

from workbench.errors import visible
from workbench.experiments.serving.results import ServingComparison
from workbench.viz.serving.view import serving_view
from workbench.viz.style import assets


def serving_page(comparisons: Sequence[ServingComparison]) -> str:
    """The page of one measurement of a served model, or of several below each other."""
    views = [serving_view(comparison) for comparison in comparisons]
    environment = dict(views[0].environment)
    cores, version = environment.get("Cores"), environment.get("TensorFlow")
    machine = [
        views[0].taken_at,
        f"{cores} cores" if cores else "",
        f"TensorFlow {version}" if version else "",
    ]
    programs = ", ".join(dict.fromkeys(view.program for view in views))
    return visible(
        assets.templates()
        .get_template("serving/page.html.j2")
        .render(
            title=f"How fast {programs} is served",
            machine=", ".join(filter(None, machine)),
            views=views,
            style=assets.view_page_style("predictions", "search", "serving"),
            version=importlib.metadata.version("recsys-workbench"),
        )
    )
