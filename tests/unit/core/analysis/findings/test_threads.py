"""Findings about threads, cores and the client, and traces in which nobody claims them."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.findings import keys, of, plain
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.analysis.findings.find import find
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace


def small_trace(us: int, late: int) -> Trace:
    """Ten ops in a row of some µs, each some µs late, and one of 50 µs."""
    begins = [i * (us + late) for i in range(10)]
    ops = [(f"n{i}", "Mul", 0, b, b + late, b + late + us) for i, b in enumerate(begins)]
    end = begins[-1] + us + late
    ops.append(("long", "MatMul", 0, end, end, end + 50))
    return step_trace(ops, chain(*(f"n{i}" for i in range(10)), "long"), step_us=end + 50)


# The path's op "late" is ready at 20, its thread runs "other" until 60; the second thread rests.
ORDER = (
    ("first", "MatMul", 0, 0, 0, 20),
    ("other", "Mul", 0, 0, 20, 60),
    ("late", "MatMul", 0, 20, 60, 100),
)


class TestScheduling:
    def test_small_ops_that_start_for_longer_than_they_run(self):
        found = of(small_trace(2, 5), "small_ops")
        assert found.cost_ns == found.gain_ns == 50 * US and found.toggle == "inline_executor"
        assert plain(found.evidence) == (
            "10 ops of the 11 ops on the critical path run under 10 µs: 20 µs a step. Starting "
            "ops takes 50 µs."
        )

    def test_ops_that_run_for_longer_are_no_small_ops(self):
        assert "small_ops" not in keys(small_trace(5, 2))

    def test_what_lasts_longer_than_waking_a_thread_is_another_matter(self):
        assert "small_ops" not in keys(small_trace(2, 500))

    def test_starting_what_runs_before_a_small_op_counts(self):
        # "late" is ready at 0; its thread starts twenty others first, 8 µs each.
        ops = [(f"n{i}", "Mul", 0, 10 * i, 10 * i + 8, 10 * i + 10) for i in range(20)]
        ops.append(("late", "Mul", 0, 0, 208, 210))
        found = of(step_trace(ops, [("n0", "n1"), ("late", "late")], step_us=210), "small_ops")
        assert found.cost_ns == 168 * US

    def test_the_path_waits_behind_ops_with_slack(self):
        found = of(step_trace(ORDER, chain("first", "late"), step_us=100), "order_of_ops")
        # 100 µs of ops on two threads need 50 at least, so another order gives at most 40.
        assert found.cost_ns == found.gain_ns == 40 * US
        assert found.toggle == "cost_model_executor" and found.nodes == ("other",)
        assert plain(found.evidence) == (
            "Ops of the critical path are ready, but their thread runs others first: 40 µs a step. "
            "Longest: `other` (40 µs); all have slack. In no order can 2 threads do the ops "
            "of a step in less than 50 µs."
        )

    def test_threads_that_are_full_leave_nothing_to_an_order(self):
        trace = step_trace(ORDER, chain("first", "late"), step_us=100, cores=1)
        assert "order_of_ops" not in keys(trace)
        found = of(trace, "busy_threads")
        assert found.cost_ns == 40 * US and found.gain_ns is None
        assert found.mend == "Fewer or cheaper ops a step, or a machine with more cores"
        assert plain(found.evidence) == (
            "1 inter-op thread run ops for 100 % of the time; ready ops of the critical path wait "
            "40 µs a step for one. Another order gives at most 0 ms of it."
        )

    def test_fewer_threads_than_cores_are_too_few(self):
        meta = {"cores": 4, "inter_op_threads": 1}
        trace = step_trace(ORDER, chain("first", "late"), step_us=100, **meta)
        mend = of(trace, "busy_threads").mend
        assert mend == "inter_op_parallelism_threads=4: there are 4 cores"


def untraced(cpu_us: int) -> UntracedSteps:
    return UntracedSteps(steps=10, step_ns=100 * US, cpu_ns=cpu_us * US, run_ns=100 * US)


class TestCores:
    def test_ops_that_last_longer_than_their_cpu_time(self):
        ops = (("a", "MatMul", 0, 0, 0, 80), ("b", "MatMul", 0, 80, 80, 100))
        trace = step_trace(ops, chain("a", "b"), step_us=100, untraced=untraced(50))
        found = of(trace, "too_few_cores")
        assert found.cost_ns == 50 * US and found.gain_ns is None and found.toggle is None
        assert plain(found.evidence) == (
            "The ops of a step last 0.10 ms on their threads, but the process gets 50 µs of CPU "
            "time a step, measured without the tracer. It uses 0.5 of 2 cores. At least 50 µs of "
            "op time passes without a core: other programs hold the cores, or ops wait for a lock "
            "or a disk. Ready ops of the critical path wait 0 ms for threads that run nothing; "
            "calls and returns of steps take 0 ms more than they usually do."
        )

    def test_pages_that_the_kernel_hands_out_in_every_step(self):
        ops = (("a", "MatMul", 0, 0, 0, 80), ("b", "MatMul", 0, 80, 80, 100))
        steps = UntracedSteps(steps=10, step_ns=100 * US, cpu_ns=100 * US, page_faults=25)
        found = of(step_trace(ops, chain("a", "b"), step_us=100, untraced=steps), "new_pages")
        assert found.cost_ns == found.gain_ns == 50 * US
        assert found.mend.startswith("Call `wb.keep_freed_memory()` once")
        assert plain(found.evidence).startswith(
            "A step without the tracer has 25 page faults, about 50 µs of CPU time: "
        )

    @pytest.mark.parametrize("faults", [None, 0])
    def test_without_page_faults_nothing_is_said_of_them(self, faults: int | None):
        steps = UntracedSteps(steps=10, step_ns=100 * US, cpu_ns=100 * US, page_faults=faults)
        ops = (("a", "MatMul", 0, 0, 0, 80), ("b", "MatMul", 0, 80, 80, 100))
        trace = step_trace(ops, chain("a", "b"), step_us=100, untraced=steps)
        assert "new_pages" not in keys(trace)

    @pytest.mark.parametrize("known", [untraced(90), None, UntracedSteps()])
    def test_it_needs_a_cpu_time_that_is_clearly_less(self, known: UntracedSteps | None):
        ops = (("a", "MatMul", 0, 0, 0, 100),)
        trace = step_trace(ops, [("a", "a")], step_us=100, untraced=known)
        assert "too_few_cores" not in keys(trace)

    def test_more_ops_at_a_time_than_cores(self):
        ops = tuple((f"n{lane}", "MatMul", lane, 0, 0, 100) for lane in range(3))
        trace = step_trace(ops, [("n0", "n0")], step_us=100, cores=2)
        found = of(trace, "oversubscribed")
        # Three ops on two cores: each gets two thirds of one.
        assert found.cost_ns == pytest.approx(100 * US / 3)
        assert plain(found.evidence) == (
            "For 100 % of the time more than 2 ops run at once, up to 3, on 2 cores."
        )
        assert "oversubscribed" not in keys(step_trace(ops, [("n0", "n0")], step_us=100, cores=3))
        waits = (*ops[:2], ("n2", "IteratorGetNext", 2, 0, 0, 100))
        assert "oversubscribed" not in keys(step_trace(waits, [("n0", "n0")], step_us=100))

    def test_a_steps_own_threads_are_no_other_program(self):
        ops = tuple((f"n{lane}", "MatMul", lane, 0, 0, 100) for lane in range(3))
        trace = step_trace(ops, [("n0", "n0")], step_us=100, cores=2, untraced=untraced(200))
        assert keys(trace) == ["oversubscribed"]
        trace = step_trace(ops, [("n0", "n0")], step_us=100, cores=2, untraced=untraced(150))
        assert "too_few_cores" in keys(trace)

    def test_ops_that_wait_for_a_gpu_are_not_too_many_for_the_cores(self):
        ops = tuple((f"n{lane}", "MatMul", lane, 0, 0, 100) for lane in range(3))
        trace = step_trace(ops, [("n0", "n0")], step_us=100, cores=2)
        nodes = trace.nodes.assign(device="/job:localhost/replica:0/task:0/device:GPU:0")
        assert "oversubscribed" not in keys(dataclasses.replace(trace, nodes=nodes))

    def test_one_long_op_of_one_thread_alone(self):
        ops = (
            ("mean", "SparseSegmentMean", 0, 0, 0, 60),
            ("other", "Mul", 1, 0, 0, 20),
            ("dense", "MatMul", 0, 60, 60, 100),
        )
        found = of(step_trace(ops, chain("mean", "dense"), step_us=100), "lone_op")
        # Alone from 20 to 60; on two threads that is 20.
        assert found.cost_ns == 40 * US and found.gain_ns == 20 * US and found.nodes == ("mean",)
        assert plain(found.evidence) == (
            "`mean` (SparseSegmentMean) runs 60 µs a step, 60 µs at a time, on one thread. For "
            "40 µs of it no other op runs."
        )

    def test_a_kernel_that_may_use_other_threads_is_not_called_alone(self):
        ops = (("dense", "MatMul", 0, 0, 0, 100),)
        assert "lone_op" not in keys(step_trace(ops, [("dense", "dense")], step_us=100))


class TestClient:
    def test_a_pause_between_steps(self):
        ops = (("a", "MatMul", 0, 0, 0, 100),)
        trace = step_trace(ops, [("a", "a")], step_us=100, steps=3, pause_us=30)
        found = of(trace, "client_time")
        assert found.title == "The client pauses between steps" and found.cost_ns == 20 * US
        assert found.mend == "Fewer hooks and less Python between steps"
        assert plain(found.evidence) == (
            "20 µs a step pass between the return of one step and the call of the next, 0 ms from "
            "the call to the first op of the chain, 0 ms from its last op to the return; "
            "steps in which it is longer than usual are not counted."
        )
        assert "client_time" not in keys(step_trace(ops, [("a", "a")], step_us=100))

    def test_a_late_first_op(self):
        ops = (("a", "MatMul", 0, 40, 40, 100),)
        found = of(step_trace(ops, [("a", "a")], step_us=110), "client_time")
        assert found.title == "Time passes before the first op and after the last one"
        assert found.cost_ns == 50 * US
        assert found.mend == "Fewer feeds and fetches"

    def test_a_call_that_is_late_for_once_is_no_rule(self):
        ops = (("a", "MatMul", 0, 0, 0, 100),)
        late = {"steps": 5, "late_us": {2: 500}}
        trace = step_trace(ops, [("a", "a")], step_us=100, **late)
        assert "client_time" not in keys(trace)
        assert find(trace).not_explained_ns == 100 * US
        # Where the process gets little CPU time, it is for want of a core.
        trace = step_trace(ops, [("a", "a")], step_us=100, **late, untraced=untraced(50))
        found = of(trace, "too_few_cores")
        assert found.cost_ns == (50 + 100) * US and find(trace).not_explained_ns == 0
        assert "calls and returns of steps take 0.10 ms more" in plain(found.evidence)
