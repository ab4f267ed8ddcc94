"""The times of a step of one run, as every tab begins with them: the same numbers everywhere."""

from __future__ import annotations

import dataclasses

from workbench.core.analysis.critical_path import critical_path
from workbench.core.trace.metrics import step_times
from workbench.core.trace.trace import Trace
from workbench.errors import WorkbenchError
from workbench.experiments.session.run import Run
from workbench.viz.style import format


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepFacts:
    """What a step of a run takes; times in ns.

    Attributes:
      median_ns: of the measured blocks, without a tracer. It is the run's number.
      mean_ns: of the same blocks, one over their rate.
      rate, rate_interval: steps/s, in words.
      traced_mean_ns, traced_median_ns: of the traced steps; None without a trace.
    """

    median_ns: float
    mean_ns: float
    rate: str
    rate_interval: str
    traced_mean_ns: float | None
    traced_median_ns: float | None

    @property
    def words(self) -> str:
        """The line that every tab begins with."""
        measured = (
            f"Step: {format.duration(self.median_ns)} in the median, {self.rate} steps/s, measured "
            "without a tracer."
        )
        if self.traced_mean_ns is None:
            return measured
        mean = format.duration(self.traced_mean_ns)
        return (
            f"{measured} Traced: {mean} in the mean, {format.duration(self.traced_median_ns)} "
            + ("in the median.")
        )


def step_facts(run: Run) -> StepFacts:
    """The times of a step of a run."""
    measured = run.measured
    mean, median = (None, None) if measured.trace is None else _traced(measured.trace)
    return StepFacts(
        median_ns=measured.step_ms_median * 1e6,
        mean_ns=1e9 / measured.steps_per_s,
        rate=format.rate(measured.steps_per_s, unit="").rstrip(),
        rate_interval=format.rate_interval(measured.steps_per_s, measured.low, measured.high),
        traced_mean_ns=mean,
        traced_median_ns=median,
    )


def _traced(trace: Trace) -> tuple[float | None, float | None]:
    """Mean and median of the traced steps."""
    median = step_times(trace).step_ns_median
    try:
        return critical_path(trace).step_ns, median
    except WorkbenchError:
        # A trace without a critical path has steps all the same.
        return None, median
