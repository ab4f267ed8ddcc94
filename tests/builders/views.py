"""Every HTML view of a small example, as a fragment and as its outlet, by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import planned_comparison
from tests.builders.critical_paths import three_steps
from tests.builders.embedding_lenses import fused_trace, stock_trace
from tests.builders.memories import staged_trace
from tests.builders.predictions import ceiling, ceilings, check, every_toggle
from tests.builders.searches import search
from tests.builders.served_models import of_all_kinds
from tests.builders.step_traces import chain, step_trace
from workbench.core.analysis.alignment import Alignment, align
from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Findings
from workbench.core.analysis.memory.memory import memory
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.ceilings import Ceilings
from workbench.viz.outlets import fragment_of, html_of
from workbench.viz.style.fragments import alone

# The path's last op is ready at 20, waits until 60 behind another, then 20 for nothing.
_LATE = (
    ("tower/first", "MatMul", 0, 0, 0, 20),
    ("tower/other", "Mul", 0, 0, 20, 60),
    ("tower/late", "MatMul", 0, 20, 80, 120),
)


def some_findings() -> Findings:
    """Of ops in a bad order."""
    return find(step_trace(_LATE, chain("tower/first", "tower/late"), step_us=120))


def some_alignment() -> Alignment:
    return align(unstaged(), staged())


def some_calibration() -> Calibration:
    checks = [check(f"setting {n}", 0.9 + n / 30, 1.0 + n / 40) for n in range(20)]
    return Calibration(checks=(*checks, check("stage", 1.4, 1.1, program="wdl")))


def some_ceilings() -> Ceilings:
    found = (ceiling("dense", 1.83, simulated=1.7), ceiling("input", 1.01))
    return ceilings(*found, withheld=(("ids", "the step has no work of the kind 'ids'"),))


_VALUES: dict[str, Callable[[], object]] = {
    "critical path": lambda: critical_path(three_steps()),
    "findings": some_findings,
    "alignment": some_alignment,
    "embedding lens": lambda: make_lens(stock_trace(), fused_trace()),
    "memory": lambda: memory(staged_trace()),
    "predictions": every_toggle,
    "calibration": some_calibration,
    "search": search,
    "ceilings": some_ceilings,
    "served model": of_all_kinds,
}


def _comparison() -> str:
    return fragment_of(planned_comparison())


def _alone() -> str:
    """Without the pictures, which live in a frame."""
    return alone(_comparison())


FRAGMENTS = {name: lambda make=make: fragment_of(make()) for name, make in _VALUES.items()}
OUTLETS = {name: lambda make=make: html_of(make()) for name, make in _VALUES.items()}
FRAGMENTS["comparison"], OUTLETS["comparison"] = _comparison, _alone
