"""Jobs of the bench of models: what is measured together, and how the time is divided.

A job is one interleaved comparison. What is left of the time is divided by what the jobs that are
left need, so that a slow one costs the others little; a job that fails is an outcome that says so.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.program.toggles import (
    AUTO_FUSED,
    COST_MODEL_EXECUTOR,
    FUSED_V1,
    FUSED_V2,
    GROUPED,
    INLINE_EXECUTOR,
    SMART_STAGE,
    STAGE,
    optimizations_of,
)

COMPUTE, LATENCY = "compute-bound", "latency-bound"
STAGES = (STAGE, SMART_STAGE)
FUSIONS = (FUSED_V1, FUSED_V2, GROUPED, AUTO_FUSED)
EXECUTORS = (INLINE_EXECUTOR, COST_MODEL_EXECUTOR)
# The models of DeepRec's SmartStage table; its fusion pages have WDL besides.
STAGED_MODELS = ("dlrm", "deepfm", "din", "dssm", "dien")
MODELS = ("dlrm", "deepfm", "wdl", "din", "dssm", "dien")
QUICK_MODELS = ("dlrm", "din")
QUICK_FUSIONS = (FUSED_V1, FUSED_V2, AUTO_FUSED)
# A step on 2 cores, about; only how the time is divided hangs on it.
STEP_S = {"dlrm": 0.03, "deepfm": 0.03, "wdl": 0.07, "din": 0.05, "dssm": 0.09, "dien": 0.08}
# For each variant: starting its process and building its graph, and steps before and after blocks.
_START_S, _OTHER_STEPS, _BLOCK_STEPS = 8.0, 90, 110
# Of each variant: 16 rounds of blocks of 1.5 s, beyond which a figure gains little.
_LONGEST_S = 24.0
# What a comparison takes beyond its budget on a busy machine must not cost the whole job.
_SLACK = 0.15
# A job with less than this share of what it needs is not begun.
_LEAST_SHARE = 0.25
# A job that is nearly done is worth more than the next one begun.
_PATIENCE = 3.0


class OutOfTimeError(Exception):
    """A job took longer than it may."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """One comparison.

    Attributes:
      model: its name in MODELS.
      input_kind: COMPUTE, from a local file, or LATENCY, where each batch waits as long as the
        step takes.
      toggles: what is compared with "off".
    """

    model: str
    input_kind: str
    toggles: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of its variants, the baseline first."""
        wishes = [optimizations_of(t, StageOptions(), SmartStageOptions()) for t in self.toggles]
        return ("off", *(wish.label() for wish in wishes))

    @property
    def overhead_s(self) -> float:
        """Seconds beside the blocks, about: starting, planning, warming up, tracing."""
        return len(self.labels) * (_START_S + _OTHER_STEPS * self._step_s)

    @property
    def need_s(self) -> float:
        """Seconds that make the fewest useful blocks, about."""
        return self.overhead_s + len(self.labels) * _BLOCK_STEPS * self._step_s

    @property
    def _step_s(self) -> float:
        return STEP_S[self.model] * (2 if self.input_kind == LATENCY else 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job.

    Attributes:
      job: the job.
      found: its Comparison; None when there is none.
      failure: why there is none, or "".
      latency_ms: how long each batch waited.
      seconds: how long it took.
    """

    job: Job
    found: Any = None
    failure: str = ""
    latency_ms: float = 0.0
    seconds: float = 0.0


class Measure(Protocol):
    """Runs one job and returns its Comparison."""

    def __call__(self, job: Job, *, budget_s: float, limit_s: float, latency_ms: float) -> Any: ...


def planned_jobs(models: Sequence[str], fusions: Sequence[str] = FUSIONS) -> list[Job]:
    """Each model once with all toggles, and the staged ones again with a latency."""
    made = []
    for model in models:
        stages = STAGES if model in STAGED_MODELS else ()
        all_toggles = (*stages, *fusions, *EXECUTORS)
        made.append(Job(model=model, input_kind=COMPUTE, toggles=all_toggles))
        if stages:
            made.append(Job(model=model, input_kind=LATENCY, toggles=STAGES))
    return made


def run_jobs(
    jobs: Sequence[Job],
    measure: Measure,
    *,
    total_s: float,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Outcome]:
    """Runs the jobs in order; one outcome each, whatever happens.

    Args:
      jobs: a latency-bound job stands behind the compute-bound one of its model, whose step time
        it waits for.
      measure: runs one; what it raises becomes the outcome's failure.
      total_s: seconds for all.
      say: told what begins.
      clock: monotonic seconds.
    """
    begun = clock()
    step_ms: dict[str, float] = {}
    stopped = False
    for number, job in enumerate(jobs):
        left_s = total_s - (clock() - begun)
        share_s = left_s * job.need_s / sum(each.need_s for each in jobs[number:])
        latency_ms = step_ms.get(job.model, 0.0) if job.input_kind == LATENCY else 0.0
        failure = _not_to_begin(job, share_s, latency_ms, stopped)
        if failure:
            yield Outcome(job=job, failure=failure)
            continue
        say(f"{job.model}, {job.input_kind}: {share_s:.0f} of {left_s:.0f} s left")
        # Of the whole job, which shortens its blocks where all else takes longer than thought.
        budget_s = min(_LONGEST_S * len(job.labels) + job.overhead_s, (1 - _SLACK) * share_s)
        limit_s = min(left_s, _PATIENCE * share_s)
        before = clock()
        outcome = _outcome(job, measure, budget_s, limit_s, latency_ms)
        took_s = clock() - before
        if outcome is None:
            stopped = True
            outcome = Outcome(job=job, failure="cancelled")
        elif outcome.found is not None:
            step_ms[job.model] = round(outcome.found.variants[0].step_ms_median, 1)
        else:
            say(f"{job.model}, {job.input_kind}: {outcome.failure}")
        yield dataclasses.replace(outcome, seconds=took_s)


def _not_to_begin(job: Job, share_s: float, latency_ms: float, stopped: bool) -> str:
    if stopped:
        return "cancelled"
    if share_s < _LEAST_SHARE * job.need_s:
        return "no time was left"
    if job.input_kind == LATENCY and not latency_ms:
        return "the compute-bound run gave no step time to wait for"
    return ""


def _outcome(
    job: Job, measure: Measure, budget_s: float, limit_s: float, latency_ms: float
) -> Outcome | None:
    """None when someone pressed Ctrl-C."""
    try:
        found = measure(job, budget_s=budget_s, limit_s=limit_s, latency_ms=latency_ms)
    except KeyboardInterrupt:
        return None
    except OutOfTimeError:
        return Outcome(job=job, failure=f"was not done after {limit_s:.0f} s")
    except Exception as error:  # a model that fails must not end the others
        said = str(error).strip().splitlines()
        return Outcome(job=job, failure=said[0] if said else type(error).__name__)
    return Outcome(job=job, found=found, latency_ms=latency_ms)
