"""A cluster's report as plain text."""

from __future__ import annotations

import textwrap

from workbench.core.analysis.cluster_report import ClusterReport
from workbench.viz.cluster.view import cluster_view
from workbench.viz.style.table import table_lines

_WIDE = 100


def cluster_text(report: ClusterReport) -> str:
    """Tables below each other, then sentences."""
    view = cluster_view(report)
    blocks = ["\n".join([table.caption, *table_lines(table)]) for table in view.tables]
    blocks += [
        textwrap.fill(text, _WIDE, break_long_words=False, break_on_hyphens=False)
        for text in view.sentences
    ]
    return "\n\n".join([view.title, *blocks])
