"""What a report's page shows, in the order in which it is read."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Sequence
from typing import Any

from workbench.errors import visible
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.regression.earlier import ELEMENT_ID, report_document
from workbench.viz.comparison.answer import Answer
from workbench.viz.report_page.findings import FindingLine
from workbench.viz.report_page.folds import Fold
from workbench.viz.report_page.throughput import Throughput
from workbench.viz.style import assets
from workbench.viz.style.plain_values import plain_values


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chapter:
    """What one program was found to do with some settings.

    Attributes:
      number: of the result, for links to it.
      heading: what sets it apart from others.
      answer: the result, and what to do with it.
      cell: Python that can be pasted and measures it again; "" where nothing can.
      cell_about: what the cell does, a sentence.
      program_lines: for a training program of one's own; "" where they are not known.
      untried: a setting that was predicted and not run, a sentence; "" without.
      table: all variants, the best first.
      why: the two runs beside each other as HTML; "" where they are not known.
      why_not: said in its place.
      findings: what still makes the best one slow.
      folds: all else.
    """

    number: int
    heading: str
    answer: Answer
    cell: str
    cell_about: str
    program_lines: str = ""
    untried: str = ""
    table: Throughput
    why: str
    why_not: str
    findings: tuple[FindingLine, ...]
    folds: tuple[Fold, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportPage:
    """A report.

    Attributes:
      title, subtitle: what was measured.
      facts: when, where and of which commit.
      overall: the answer over several chapters; None where one is alone.
      chapters: the best first.
      comparisons: what `workbench rerun` measures again.
    """

    title: str
    subtitle: str
    facts: tuple[str, ...]
    overall: Answer | None
    chapters: tuple[Chapter, ...]
    comparisons: Sequence[Comparison]


def page_html(page: ReportPage) -> str:
    """A report as one page that needs nothing beside it."""
    document: Any = plain_values(report_document(page.comparisons))
    template = assets.templates().get_template("report/report.html.j2")
    return visible(
        template.render(
            page=page,
            configuration_id=ELEMENT_ID,
            configuration=assets.json_script(document),
            style=assets.page_style(),
            script=assets.report_script(),
            version=importlib.metadata.version("recsys-workbench"),
        )
    )
