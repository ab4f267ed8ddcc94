"""Traced steps between untraced ones, so that a trace has the measured time of a step beside it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable

from workbench.core.capture.cpu_time import StepClock
from workbench.core.options import StageOptions
from workbench.core.trace.trace import Trace
from workbench.experiments.worker.steps.first_steps import SETTLING_STEPS

# Steps of each of the two untraced blocks; a StepClock keeps as many as both have at most.
_FEWEST, _MOST = 6, 30
# Steps that may go by before all shapes are known.
SHAPE_STEPS = 8


def traced_between(
    measure: Callable[[StepClock, int], None], trace: Callable[[], Trace], steps: int
) -> Trace:
    """A trace with the time of untraced steps just before and just after it in `meta.untraced`.

    A machine that slows down steadily is fair to both.

    Args:
      measure: runs a number of untraced steps, each noted by the clock.
      trace: traces steps.
      steps: how many steps `trace` traces.
    """
    clock = StepClock()
    count = min(max(_FEWEST, -(-steps // 2)), _MOST)
    settle()
    measure(clock, count)
    clock.interrupt()
    settle()
    found = trace()
    settle()
    measure(clock, count)
    meta = dataclasses.replace(found.meta, untraced=clock.untraced())
    return dataclasses.replace(found, meta=meta)


def settling_steps(stages: Iterable[StageOptions]) -> int:
    """Steps to leave out after a rest, in which these stages have filled their buffers."""
    return SETTLING_STEPS + sum(stage.capacity + stage.num_threads for stage in stages)


def settle() -> None:
    """Waits, half a second at most, until this process has no more work of its own.

    A stage fills its buffer after the last step; what runs next is another session or process.
    """
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(0.005)
        if time.process_time() - before < 0.0005:
            return
