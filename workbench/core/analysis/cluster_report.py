"""ClusterReport: what a merged trace of a cluster says, as values."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath, critical_path
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Finding
from workbench.core.cluster.step_split import step_split
from workbench.core.cluster.straggler import Straggler, straggler
from workbench.core.cluster.traffic import traffic_by_edge, traffic_by_owner
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import TraceError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClusterReport(Displayed):
    """What travels in a cluster, and where its steps' time goes.

    Attributes:
      trace: of which it is.
      clocks: of each other task how far its clock was ahead, and the error: task, offset_ns,
        error_ns.
      split: the time of each step, as of `step_split`.
      edges, owners: tensors and bytes in a step, as of `traffic_by_edge` and `traffic_by_owner`.
      straggler: the verdict.
      paths: what the steps of each worker took as long as; none where the trace does not know
        which op feeds which.
      findings: what makes the steps slow of the worker whose steps take longest; none without
        paths.
    """

    trace: Trace
    clocks: pd.DataFrame
    split: pd.DataFrame
    edges: pd.DataFrame
    owners: pd.DataFrame
    straggler: Straggler
    paths: tuple[CriticalPath, ...]
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"ClusterReport({', '.join(self.workers)})"

    @property
    def workers(self) -> list[str]:
        """The tasks whose steps were traced."""
        return sorted(set(self.split["client"]))


def cluster_report(trace: Trace) -> ClusterReport:
    """What a trace of a cluster says.

    Args:
      trace: of one worker, or all workers', as `merge_traces` makes it.

    Raises:
      TraceError: the trace is of one task alone, or has no step.
    """
    if not trace.meta.task or not len(trace.steps()):
        raise TraceError(
            f"the trace {trace.meta.title!r} has no step of a cluster; expected one that "
            "CaptureHook took in a session whose steps use parameter servers, or merge_traces made"
        )
    split = step_split(trace)
    offsets, errors = trace.meta.clock_offset_ns, trace.meta.clock_error_ns
    known = bool(len(trace.edges))
    workers = sorted(set(split["client"]))
    return ClusterReport(
        trace=trace,
        clocks=pd.DataFrame(
            [(task, offsets[task], errors[task]) for task in sorted(offsets)],
            columns=["task", "offset_ns", "error_ns"],
        ),
        split=split,
        edges=traffic_by_edge(trace),
        owners=traffic_by_owner(trace),
        straggler=straggler(trace),
        paths=tuple(critical_path(trace, name) for name in workers) if known else (),
        findings=find(trace).findings if known else (),
    )
