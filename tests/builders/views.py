"""Every HTML view of a small example, as a fragment and as its outlet, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import planned_comparison
from tests.builders.critical_paths import three_steps
from tests.builders.embedding_lenses import fused_trace, stock_trace
from tests.builders.memories import staged_trace
from tests.builders.predictions import ceiling, ceilings, check, every_toggle
from tests.builders.searches import search
from tests.builders.step_traces import chain, step_trace
from workbench.core.analysis.alignment import align
from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Findings
from workbench.core.analysis.memory.memory import memory
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.ceilings import Ceilings
from workbench.viz.alignment.html import alignment_fragment, alignment_html
from workbench.viz.alignment.view import AlignmentView, alignment_view
from workbench.viz.comparison.html import summary_fragment, summary_html
from workbench.viz.comparison.view import compare_view
from workbench.viz.critical_path.html import critical_path_fragment, critical_path_html
from workbench.viz.embedding_lens.html import lens_fragment, lens_html
from workbench.viz.findings.html import findings_fragment, findings_html
from workbench.viz.memory.html import memory_fragment, memory_html
from workbench.viz.predictions.html import (
    calibration_fragment,
    calibration_html,
    ceilings_fragment,
    ceilings_html,
    predictions_fragment,
    predictions_html,
)
from workbench.viz.search.html import search_fragment, search_html

# The path's last op is ready at 20, waits until 60 behind another, then 20 for nothing.
_LATE = (
    ("tower/first", "MatMul", 0, 0, 0, 20),
    ("tower/other", "Mul", 0, 0, 20, 60),
    ("tower/late", "MatMul", 0, 20, 80, 120),
)


def some_findings() -> Findings:
    """Of ops in a bad order."""
    return find(step_trace(_LATE, chain("tower/first", "tower/late"), step_us=120))


def some_alignment() -> AlignmentView:
    return alignment_view(align(unstaged(), staged()))


def some_calibration() -> Calibration:
    checks = [check(f"setting {n}", 0.9 + n / 30, 1.0 + n / 40) for n in range(20)]
    return Calibration(checks=(*checks, check("stage", 1.4, 1.1, program="wdl")))


def some_ceilings() -> Ceilings:
    found = (ceiling("dense", 1.83, simulated=1.7), ceiling("input", 1.01))
    return ceilings(*found, withheld=(("ids", "the step has no work of the kind 'ids'"),))


_VALUES: dict[str, tuple[Callable[[], object], Callable[..., str], Callable[..., str]]] = {
    "critical path": (
        lambda: critical_path(three_steps()),
        critical_path_fragment,
        critical_path_html,
    ),
    "findings": (some_findings, findings_fragment, findings_html),
    "alignment": (some_alignment, alignment_fragment, alignment_html),
    "embedding lens": (lambda: make_lens(stock_trace(), fused_trace()), lens_fragment, lens_html),
    "memory": (lambda: memory(staged_trace()), memory_fragment, memory_html),
    "predictions": (every_toggle, predictions_fragment, predictions_html),
    "calibration": (some_calibration, calibration_fragment, calibration_html),
    "search": (lambda: search(), search_fragment, search_html),
    "ceilings": (some_ceilings, ceilings_fragment, ceilings_html),
    "comparison": (lambda: compare_view(planned_comparison()), summary_fragment, summary_html),
}


def _made(name: str, which: int) -> str:
    value, *forms = _VALUES[name]
    return forms[which](value())


FRAGMENTS = {name: functools.partial(_made, name, 0) for name in _VALUES}
OUTLETS = {name: functools.partial(_made, name, 1) for name in _VALUES}
