"""Each kind of finding: what it says of a trace that shows it, and that others do not claim it."""

from __future__ import annotations

import pytest

from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Finding
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace


def keys(trace: Trace) -> list[str]:
    return [each.key for each in find(trace)]


def of(trace: Trace, key: str) -> Finding:
    return next(each for each in find(trace) if each.key == key)


def plain(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u2009", " ")


# The front: reads and prepares the batch for 50 µs, computes for 50.
FRONT = (
    ("next", "IteratorGetNext", 0, 0, 0, 30),
    ("hash", "StringToHashBucketFast", 0, 30, 30, 50),
    ("dense", "MatMul", 0, 50, 50, 100),
)
FED = [*chain("next", "hash", "dense"), ("weight", "dense")]
WEIGHT = [("weight", "VarHandleOp")]


class TestFront:
    def test_nothing_staged_costs_what_only_the_batch_needs(self):
        found = of(step_trace(FRONT, FED, step_us=100, also=WEIGHT), "nothing_staged")
        assert found.cost_ns == 50 * US and found.toggle == "smart_stage"
        # Two threads need 35 µs for 70 µs of ops, in any order.
        assert found.gain_ns == 50 * US
        assert found.nodes == ("next", "hash")
        assert plain(found.evidence) == (
            "1 input or parsing op and 1 id op need only the batch: none depends on a variable. "
            "They are 50 % of the critical path. Longest: `next` (30 µs) and `hash` "
            "(20 µs). For 30 µs of it the step waits for the batch itself."
        )

    def test_a_mere_read_needs_a_plain_stage(self):
        ops = (FRONT[0], ("dense", "MatMul", 0, 30, 30, 100))
        found = of(step_trace(ops, chain("next", "dense"), step_us=100), "nothing_staged")
        # "dense" reads no variable here, so it is of the front: 30 of 100 µs wait for the batch.
        assert found.toggle == "smart_stage"
        trace = step_trace(
            ops, [*chain("next", "dense"), ("weight", "dense")], step_us=100, also=WEIGHT
        )
        assert of(trace, "nothing_staged").toggle == "stage"
        assert of(trace, "nothing_staged").mend == "Put the batch behind a stage: wb.staged(batch)"

    @pytest.mark.parametrize(
        "state", ["VarHandleOp", "VariableV2", "ReadVariableOp", "RandomUniform", "Placeholder"]
    )
    def test_what_depends_on_state_is_not_of_the_front(self, state: str):
        fed = [*FED, ("state", "hash")]
        trace = step_trace(FRONT, fed, step_us=100, also=[*WEIGHT, ("state", state)])
        assert of(trace, "nothing_staged").cost_ns == 30 * US

    def test_two_in_a_hundred_are_noise(self):
        ops = (("next", "IteratorGetNext", 0, 0, 0, 1), ("dense", "MatMul", 0, 1, 1, 100))
        trace = step_trace(
            ops, [*chain("next", "dense"), ("weight", "dense")], step_us=100, also=WEIGHT
        )
        assert "nothing_staged" not in keys(trace)

    def test_behind_a_stage_too_little_runs_ahead(self):
        found = of(waiting_steps(computes="StringToHashBucketFast", ahead=2), "little_staged")
        assert found.title == "The batch is prepared in the step"
        found = of(waiting_steps(computes="DecodeCSV", ahead=2), "little_staged")
        assert found.title == "The batch is parsed in the step"
        assert found.mend == "Move the stage behind them: SmartStage finds what may run ahead"
        assert "little_staged" not in keys(waiting_steps(ahead=2))


class TestBuffer:
    def test_one_thread_that_waits_for_its_input(self):
        found = of(waiting_steps(), "one_thread_stage")
        # A step needs 60 µs; two threads make an item in 50.
        assert found.cost_ns == 40 * US and found.gain_ns == 40 * US
        assert found.mend.startswith("StageOptions(num_threads=2)") and found.toggle is None
        assert plain(found.evidence) == (
            "The stage's only thread stands in `input/next` 91 % of the time that an item takes "
            "it (99 µs), without using a core. 6 of 6 takes find the buffer empty; the step waits "
            "40 µs on average, 40 µs at the 95th percentile, in 6 of 6 steps."
        )

    def test_several_threads_or_an_input_that_computes_are_bound_by_the_input(self):
        for trace in (waiting_steps(threads=2), waiting_steps(reads="DecodeCSV")):
            assert "one_thread_stage" not in keys(trace)
            found = of(trace, "input_bound")
            assert found.cost_ns == pytest.approx(40 * US) and found.gain_ns == 40 * US
        assert "the stage has 2 threads" in of(waiting_steps(threads=2), "input_bound").evidence

    def test_the_verdict_is_the_buffers(self):
        verdict = find(waiting_steps()).verdict
        assert verdict.bound == "input"
        assert verdict.words == (
            "The input is the bottleneck: 6 of 6 takes find the buffer empty, 0 find it full; on "
            "average 0.0 of 1 items are ready."
        )

    def test_a_full_buffer_is_no_finding_but_a_verdict(self):
        trace = waiting_steps(ahead=2, capacity={"stage": 2})
        findings = find(trace)
        assert "input_bound" not in keys(trace) and "one_thread_stage" not in keys(trace)
        assert findings.verdict.bound == "step"
        assert findings.verdict.words == (
            "The step is the bottleneck, not its input: 0 of 6 takes find the buffer empty, 6 find "
            "it full; on average 2.0 of 2 items are ready."
        )

    def test_without_a_stage_the_path_says_what_bounds_the_step(self):
        verdict = find(step_trace(FRONT, FED, step_us=100, also=WEIGHT)).verdict
        assert verdict.bound == "input"
        assert plain(verdict.words) == (
            "The input is the bottleneck: what needs only the batch is 50 % of the critical path "
            "of 0.10 ms. There is no stage, so no buffer whose fill shows it."
        )
        ops = (("dense", "MatMul", 0, 0, 0, 100),)
        verdict = find(step_trace(ops, [("dense", "dense")], step_us=100)).verdict
        assert verdict.bound == "step"
        assert verdict.words.startswith("The step is the bottleneck, not its input:")

    def test_its_fill_is_kept_over_time(self):
        fill = find(waiting_steps()).fill
        assert fill["count"].tolist() == [0, *[1, 0] * 6]


def lookup_trace(ops: int, us: int = 5) -> Trace:
    names = [f"C1/embedding_lookup/op_{i}" for i in range(ops - 1)]
    names.append("gradients/C1/embedding_lookup_grad/Sum")
    laid = [(n, "Mul", 0, i * us, i * us, (i + 1) * us) for i, n in enumerate(names)]
    return step_trace(laid, chain(*names), step_us=ops * us)


class TestLookups:
    def test_a_lookup_of_many_ops(self):
        found = of(lookup_trace(10), "many_op_lookups")
        assert found.title == "10 ops do 1 lookup" and found.toggle == "fused_v2"
        assert found.cost_ns == found.gain_ns == 50 * US
        assert plain(found.evidence) == (
            "About 10 ops a lookup and its gradient, 10 of 10 under 10 µs. They take 50 µs of "
            "thread time a step, 100 % of all ops; the critical path runs them, or waits behind "
            "them, for 50 µs. The longest is `C1/embedding_lookup`: 10 ops, 50 µs."
        )

    def test_a_fused_lookup_is_fine(self):
        assert "many_op_lookups" not in keys(lookup_trace(5))

    def test_constants_are_no_work(self):
        trace = step_trace(
            [("a", "Mul", 0, 0, 0, 50)],
            [(f"C1/embedding_lookup/c{i}", "a") for i in range(20)],
            step_us=50,
            also=[(f"C1/embedding_lookup/c{i}", "Const") for i in range(20)],
        )
        assert "many_op_lookups" not in keys(trace)


def update_trace(between: str, update: str = "ResourceApplyAdagradV2") -> Trace:
    ops = (
        ("sum", "UnsortedSegmentSum", 0, 0, 0, 20),
        ("between", between, 0, 20, 20, 30),
        ("update", update, 0, 30, 30, 60),
        ("rest", "MatMul", 0, 60, 60, 100),
    )
    fed = [*chain("sum", "between", "update", "rest"), ("table", "update")]
    return step_trace(ops, fed, step_us=100, also=[("table", "VarHandleOp")])


class TestTables:
    def test_a_dense_gradient(self):
        found = of(update_trace("Reshape"), "dense_gradient")
        assert found.title == "A table gets a dense gradient" and found.cost_ns == 50 * US
        assert plain(found.evidence) == (
            "`table`: rows are summed into a gradient as large as the table, and `update` "
            "(ResourceApplyAdagradV2) then updates each of its rows. Both take 50 µs a step, which "
            "grows with the table, not with the batch."
        )

    def test_sums_that_go_through_a_product_or_to_a_sparse_update_are_none(self):
        assert "dense_gradient" not in keys(update_trace("MatMul"))
        sparse = update_trace("Reshape", "ResourceSparseApplyAdagradV2")
        assert "dense_gradient" not in keys(sparse)

    @pytest.mark.parametrize(("us", "copies"), [(60, True), (2, False)])
    def test_a_read_that_lasts_copies(self, us: int, copies: bool):
        ops = (
            ("read", "ReadVariableOp", 0, 0, 0, us),
            ("gather", "GatherV2", 0, us, us, us + 10),
        )
        trace = step_trace(
            ops,
            chain("table", "read", "gather"),
            step_us=us + 10,
            also=[("table", "VarHandleOp")],
        )
        assert ("copied_table" in keys(trace)) == copies
        if copies:
            found = of(trace, "copied_table")
            assert found.title == "A variable is copied at each step" and found.cost_ns == us * US
            assert plain(found.evidence).startswith(
                "`table`: reading takes 60 µs a step in `read`, 60 µs in all."
            )


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
            "them takes 50 µs."
        )

    def test_ops_that_run_for_longer_are_no_small_ops(self):
        assert "small_ops" not in keys(small_trace(5, 2))

    def test_what_lasts_longer_than_waking_a_thread_is_another_matter(self):
        assert "small_ops" not in keys(small_trace(2, 500))

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
            "40 µs of it no other op runs, 1 of 2 threads rest."
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
