"""CPU time of this process: in a step while nothing is traced, and while only the input runs."""

from __future__ import annotations

import resource
import threading
import time
from collections import deque

import numpy as np

from workbench.core.graph import op_types
from workbench.core.trace import intervals
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.op_columns import OpColumns

# Steps that an untraced time is taken from, at most; fewer than the least say nothing.
_KEPT_STEPS = 64
_FEWEST_STEPS = 8
# A step this much longer than the median stood beside a pause, a checkpoint or an evaluation.
_PAUSE = 2.0
# Often enough at first to meet a wait of a millisecond, then less and less: a sample costs 10 to
# 50 µs of a core that the ops could use.
_SAMPLE_S, _SHARE_OF_PAST = 0.0007, 1 / 150
_FEWEST_SAMPLES = 20
# A sampler that nobody stops ends by itself.
_MOST_SAMPLES = 2_000


class StepClock:
    """Notes when steps begin and end, and what the process used by then; about 3 µs a step."""

    def __init__(self) -> None:
        self._begun: deque[tuple[int, int, int, int]] = deque(maxlen=_KEPT_STEPS)
        self._run_ns: deque[int] = deque(maxlen=_KEPT_STEPS)

    def begin(self) -> None:
        """An untraced step begins."""
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        used = time.process_time_ns()
        self._begun.append((threading.get_ident(), time.perf_counter_ns(), used, faults))

    def end(self) -> None:
        """The step that this thread began has returned."""
        now = time.perf_counter_ns()
        if self._begun and self._begun[-1][0] == threading.get_ident():
            self._run_ns.append(now - self._begun[-1][1])

    def interrupt(self) -> None:
        """What follows is no untraced step."""
        if self._begun and self._begun[-1][0]:
            self._begun.append((0, 0, 0, 0))

    def untraced(self) -> UntracedSteps | None:
        """How long untraced steps take.

        Returns:
          None when there were too few steps, or several clients ran them; `run_ns` is None where
          no ends were noted.
        """
        noted = np.array(list(self._begun), np.int64).reshape(-1, 4)
        if len(np.unique(noted[noted[:, 0] != 0, 0])) != 1:
            return None
        whole = (noted[1:, 0] != 0) & (noted[:-1, 0] != 0)
        lasted, used, faults = np.diff(noted[:, 1:], axis=0)[whole].T
        if len(lasted) < _FEWEST_STEPS:
            return None
        usual = lasted <= _PAUSE * np.median(lasted)
        run_ns = list(self._run_ns)
        return UntracedSteps(
            steps=int(usual.sum()),
            step_ns=round(float(lasted[usual].mean())),
            cpu_ns=round(float(used[usual].mean())),
            run_ns=round(float(np.median(run_ns))) if run_ns else None,
            page_faults=round(float(faults[usual].mean())),
        )


class CpuSampler:
    """A thread that notes the process's CPU time, every millisecond at first."""

    def __init__(self) -> None:
        self._samples: list[tuple[int, int]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="cpu-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> np.ndarray:
        """Ends it.

        Returns:
          int64 [samples, 2]: ns of the wall clock, ns of CPU time.
        """
        self._stopped.set()
        self._thread.join()
        return np.array(self._samples, np.int64).reshape(-1, 2)

    def _sample(self) -> None:
        begun = time.monotonic()
        while len(self._samples) < _MOST_SAMPLES:
            past = time.monotonic() - begun
            if self._stopped.wait(max(_SAMPLE_S, _SHARE_OF_PAST * past)):
                return
            before = time.time_ns()
            used = time.process_time_ns()
            self._samples.append(((before + time.time_ns()) // 2, used))


def cores_while_waiting(ops: OpColumns, steps: int, samples: np.ndarray) -> float | None:
    """Cores that the process used while of a step's ops nothing but the input's ran.

    Near 0 the input waits for something outside, near 1 it computes.

    Args:
      ops: those of all runs in the time in which the samples were taken.
      steps: how many of the runs are main steps; those are the first.
      samples: int64 [n, 2], as `CpuSampler.stop` returns them.

    Returns:
      None where too few samples lie in such time: the input is short, or never alone.
    """
    begin, end = _only_input(ops, steps)
    if len(samples) < 2 or not len(begin):
        return None
    time_ns, used_ns = samples.T
    # both samples of a pair must lie in one such interval
    place = np.searchsorted(begin, time_ns, side="right") - 1
    inside = (place >= 0) & (time_ns <= end[np.maximum(place, 0)])
    pair = inside[1:] & inside[:-1] & (place[1:] == place[:-1])
    lasted, used = np.diff(time_ns)[pair], np.diff(used_ns)[pair]
    if pair.sum() < _FEWEST_SAMPLES:
        return None
    return float(used.sum() / lasted.sum())


def _only_input(ops: OpColumns, steps: int) -> intervals.Intervals:
    """When inputs ran and no other op did, between the first and the last op of a step."""
    types = ops.nodes["op"].astype(object)
    ops = ops.rows(~types.isin(op_types.BUFFER_OPS).to_numpy(bool)[ops.node])
    waits = types.isin(op_types.INPUTS).to_numpy(bool)[ops.node]
    main = np.flatnonzero(ops.run < steps)
    order = main[np.argsort(ops.run[main], kind="stable")]
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.flatnonzero(np.diff(ops.run[order], prepend=-1))
    of_steps = intervals.union(
        np.minimum.reduceat(ops.start_ns[order], first),
        np.maximum.reduceat(ops.end_ns[order], first),
    )
    inputs = intervals.union(ops.start_ns[waits], ops.end_ns[waits])
    others = intervals.union(ops.start_ns[~waits], ops.end_ns[~waits])
    return intervals.subtract(intervals.intersection(inputs, of_steps), others)
