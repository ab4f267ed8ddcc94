"""The folds of a report: all that is not read first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.analysis.memory.memory import memory
from workbench.core.boundary.boundary import Boundary
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import WorkbenchError
from workbench.viz.boundary.html import boundary_html
from workbench.viz.boundary.view import boundary_view
from workbench.viz.comparison.chart import Series
from workbench.viz.comparison.receipt import Receipt
from workbench.viz.comparison.view import CompareView, Limit
from workbench.viz.outlets import fragment_of
from workbench.viz.style import assets
from workbench.viz.style.table import Table

Pairs = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fold:
    """A part of a report that is closed at first: its title, and markup that escapes every text."""

    title: str
    html: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """How a result was measured.

    Attributes:
      receipt: whether the variants train the same.
      limits: what is possible.
      series, blocks: blocks in the order they ran, drawn and as a table.
    """

    receipt: Receipt
    limits: tuple[Limit, ...]
    series: tuple[Series, ...]
    blocks: Table | None


def measured_fold(measured: Measured) -> Fold:
    """Whether the variants train the same, what is possible, and the blocks as they ran."""
    return Fold(title="How it was measured", html=str(_compare().measured(measured)))


def trace_folds(label: str, trace: Trace) -> Iterator[Fold]:
    """What the trace of a variant tells: critical path, tables and memory, where it can."""
    makers: dict[str, Callable[[Trace], Any]] = {
        "Critical path": critical_path,
        "Embedding lens": make_lens,
        "Memory": memory,
    }
    for title, make in makers.items():
        try:
            html = fragment_of(make(trace))
        except WorkbenchError:
            continue  # The trace cannot tell.
        yield Fold(title=f"{title}: {label}", html=html)


def boundary_fold(label: str, source: StagePlan | Boundary, element_id: str) -> Fold:
    """What runs ahead, and why the rest stays."""
    html = boundary_html(boundary_view(source), element_id)
    return Fold(title=f"Boundary: {label}", html=html)


def tables_fold(view: CompareView) -> Iterator[Fold]:
    """What steps wait for, and where their time goes; nothing without a trace."""
    if view.metrics or view.families:
        html = str(_compare().what_a_step_does(view))
        yield Fold(title="What steps wait for, and where the time goes", html=html)


def provenance_fold(settings: Pairs, environment: Pairs) -> Fold:
    """Settings, seeds and environment."""
    html = str(_compare().provenance(settings, environment))
    return Fold(title="Settings, seeds and environment", html=html)


def command_fold(command: str, *, reruns: bool) -> Fold:
    """What measures it again, in a shell or in Python."""
    return Fold(title="Reproduce it", html=str(_compare().reproduce(command, reruns)))


def _compare() -> Any:
    return assets.templates().get_template("comparison/compare.html.j2").module
