"""Steps that do not follow from the times of their ops."""

from __future__ import annotations

import dataclasses

from tests.builders.findings import keys, of, on_gpu, plain
from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace

# The second op begins long before the first one ends, whose result it reads.
RUNS_ON = (("front", "Mul", 0, 0, 0, 6_000), ("dense", "MatMul", 1, 1_000, 1_000, 7_000))
IN_TURN = (("front", "Mul", 0, 0, 0, 6_000), ("dense", "MatMul", 0, 6_000, 6_000, 12_000))


def steps(ops: tuple[tuple[object, ...], ...], step_us: int, count: int = 8) -> Trace:
    untraced = UntracedSteps(steps=20, step_ns=step_us * US, cpu_ns=12_000 * US)
    fed = chain("front", "dense")
    return step_trace(ops, fed, step_us=step_us, steps=count, untraced=untraced, cores=2)


def test_ops_that_do_not_fit_are_named_with_what_to_do():
    trace = steps(RUNS_ON, 7_060)
    assert keys(trace)[-1] == "replay_off"
    found = of(trace, "replay_off")
    assert found.nodes == ("front",) and found.gain_ns is None and found.toggle is None
    said = plain(found.evidence)
    assert said.startswith("Simulated from the times of its ops, a traced step takes 12.")
    assert "longer than the 7.1 ms that it took" in said
    assert "`front` (Mul) ran on after what reads it had begun, 5.0 ms a step" in said
    assert "Predictions from this trace have intervals that are wider by it" in said
    assert found.mend.startswith("Trace again, more steps, on a machine that does nothing else")
    # What a step takes less than its ops explain is its cost.
    assert 4_900 * US < found.cost_ns < 5_200 * US


def test_steps_that_follow_from_their_ops_are_no_finding():
    assert "replay_off" not in keys(steps(IN_TURN, 12_060))


def test_it_takes_some_steps_their_untraced_time_and_one_machine():
    trace = steps(RUNS_ON, 7_060)
    few = steps(RUNS_ON, 7_060, count=4)
    unknown = dataclasses.replace(trace, meta=dataclasses.replace(trace.meta, untraced=None))
    for each in (few, unknown, on_gpu(trace)):
        assert "replay_off" not in keys(each)


def test_steps_behind_a_stage_are_simulated_with_it():
    untraced = UntracedSteps(steps=20, step_ns=100 * US, cpu_ns=60 * US)
    # The client of these has no time of its own, a call of which takes 60 µs.
    found = of(waiting_steps(steps=8, untraced=untraced), "replay_off")
    assert "No op stands out: what takes the time is not in the trace." in plain(found.evidence)
