"""A cluster's report as HTML that holds all it needs."""

from __future__ import annotations

import html

from workbench.core.analysis.cluster_report import ClusterReport
from workbench.viz.cluster.view import cluster_view
from workbench.viz.style.table import table_html


def cluster_html(report: ClusterReport) -> str:
    """Tables below each other, then sentences."""
    view = cluster_view(report)
    sentences = "".join(f"<p>{html.escape(text)}</p>" for text in view.sentences)
    title = f"<p><strong>{html.escape(view.title)}</strong></p>"
    return title + "".join(map(table_html, view.tables)) + sentences
