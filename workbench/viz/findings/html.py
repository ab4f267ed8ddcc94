"""Findings as HTML that holds all it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.core.analysis.findings.finding import Findings
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.viz.findings.view import FindingsView, compared_views, findings_view
from workbench.viz.style import assets


def findings_html(findings: Findings) -> str:
    """The findings of one trace."""
    return _html([findings_view(findings)])


def compared_findings_html(compared: ComparedFindings) -> str:
    """The findings of each variant, below its label."""
    return _html(compared_views(compared))


def _html(views: Sequence[FindingsView]) -> str:
    module: Any = assets.templates().get_template("findings/findings.html.j2").module
    style = assets.page_style() + (assets.STATIC / "findings/findings.css").read_text("utf-8")
    shown = "".join(str(module.findings(view)) for view in views)
    return f'<style>{style}</style><div class="wb wbf">{shown}</div>'
