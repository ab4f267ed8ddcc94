"""Findings as HTML that holds all it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.core.analysis.findings.finding import Findings
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.viz.findings.view import FindingsView, compared_views, findings_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment


def findings_html(findings: Findings) -> str:
    """The findings of one trace."""
    return alone(findings_fragment(findings), "findings")


def findings_fragment(findings: Findings) -> str:
    """The same without style, for a page that has `assets.views_style()`."""
    return _fragment([findings_view(findings)])


def compared_findings_html(compared: ComparedFindings) -> str:
    """The findings of each variant, below its label."""
    return alone(compared_findings_fragment(compared), "findings")


def compared_findings_fragment(compared: ComparedFindings, label: str | None = None) -> str:
    """The same without style, for a page that has `assets.views_style()`.

    Args:
      compared: the findings.
      label: shows those of this variant alone.
    """
    labels = [each for each, _ in compared.variants]
    views = compared_views(compared)
    return _fragment([v for each, v in zip(labels, views, strict=True) if label in (None, each)])


def _fragment(views: Sequence[FindingsView]) -> str:
    module: Any = assets.templates().get_template("findings/findings.html.j2").module
    return fragment("".join(str(module.findings(view)) for view in views), "wbf")
