"""One setting of a program, measured, and how many times as fast as the baseline it is."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Sequence

from workbench.core.analysis.memory.memory import memory
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError
from workbench.experiments.measurement.statistics import Verdict


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredVariant:
    """One setting of the program, measured.

    Attributes:
      label: its name, such as "off" or "stage".
      steps_per_s, low, high: mean over blocks and its 95 % interval.
      block_steps_per_s: one rate for each round.
      step_ms_median: median time of a step.
      trace: a few traced steps, taken after the measurement; None when none was asked for.
      plan: of its smart stage, with its boundary; None without one.
      notes: what a reader should know, a sentence each.
    """

    label: str
    steps_per_s: float
    low: float
    high: float
    block_steps_per_s: tuple[float, ...]
    step_ms_median: float
    trace: Trace | None = None
    plan: StagePlan | None = None
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def step_peak_bytes(self) -> tuple[int, ...]:
        """Bytes of tensors that live at once at most, of each traced step; see `memory`.

        Empty where there is no trace, or where it does not know how large tensors are.
        """
        if self.trace is None or not self.trace.events["made_bytes"].any():
            return ()
        if not len(self.trace.edges) or not len(self.trace.steps()):
            return ()
        return tuple(memory(self.trace).step_peaks.tolist())

    @property
    def peak_tensor_bytes(self) -> float | None:
        """The mean of these over the traced steps; None where there are none."""
        return statistics.fmean(self.step_peak_bytes) if self.step_peak_bytes else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ratio:
    """A variant's steps/s over the baseline's: mean of paired blocks.

    Attributes:
      label: the variant.
      ratio, low, high: the mean and its 95 % interval.
      verdict: what the interval lets one say.
      predicted: what its plan had predicted; None where nothing was.
    """

    label: str
    ratio: float
    low: float
    high: float
    verdict: Verdict
    predicted: float | None = None


def trace_of_variant(variants: Sequence[MeasuredVariant], label: str) -> Trace:
    """The trace of a variant; where several comparisons have it, the last one.

    Args:
      variants: of one comparison or of several.
      label: of the variant.

    Raises:
      OptionError: there is no such variant, or it has no trace.
    """
    named = [variant for variant in variants if variant.label == label]
    if not named:
        labels = ", ".join(dict.fromkeys(variant.label for variant in variants))
        raise OptionError(f"there is no variant {label!r}; expected one of {labels}")
    traces = [variant.trace for variant in named if variant.trace is not None]
    if not traces:
        raise OptionError(f"variant {label!r} has no trace; compare with trace_steps above 0")
    return traces[-1]
