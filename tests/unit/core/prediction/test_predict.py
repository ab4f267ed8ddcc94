"""Costs and predictions out of tiny graphs and literal traces, reckoned by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.graphs import graph
from tests.builders.small_models import MODEL, STAGED
from tests.builders.traces import START_NS, make_trace, timed_trace
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import (
    Candidate,
    CandidateStage,
    candidates_of,
    own_stage,
)
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.prediction.costs.input_costs import input_cost
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.costs.node_spans import InputSpans
from workbench.core.prediction.predict import node_costs, predict
from workbench.core.prediction.prediction import Prediction
from workbench.core.prediction.traced_graph import uncut
from workbench.core.simulation.dispatch import INLINE
from workbench.core.simulation.pipeline import CORES, INPUT, STEP
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace

NEXT, PARSE, HASH, DENSE, TRAIN = (
    ("next", "IteratorGetNext"),
    ("parse", "DecodeCSV"),
    ("hash", "StringToHashBucketFast"),
    ("dense", "MatMul"),
    ("train", "AssignVariableOp"),
)
UNSTAGED_STEP = [(*NEXT, 10.0), (*PARSE, 2.0), (*HASH, 1.0), (*DENSE, 7.0), (*TRAIN, 0.5)]
# what a stage's thread takes around its ops; around an op, in these traces, nothing
OP, RUN = 0.0, 0.06


def measured(step_ms: float, cpu_ms: float | None = None) -> UntracedSteps:
    cpu_ns = None if cpu_ms is None else round(cpu_ms * 1e6)
    return UntracedSteps(steps=60, step_ns=round(step_ms * 1e6), cpu_ns=cpu_ns)


def model_boundary(text: str = MODEL, **more) -> Boundary:
    return boundary_of(graph(text, shared={"put": "b", "take": "b"}, **more), targets=["train"])


def staged(boundary: Boundary, *names: str, threads=1, capacity=1) -> CandidateStage:
    view, side = boundary.view, boundary.sides[0]
    moved = view.mask(map(view.number, names))
    return CandidateStage(side=side, moved=moved, num_threads=threads, capacity=capacity)


def candidate(*stages: CandidateStage) -> Candidate:
    return Candidate(label="a candidate", stages=stages, removes_own=not stages)


def unstaged_costs(**meta) -> tuple[Boundary, Costs]:
    boundary = model_boundary()
    meta = {"untraced": measured(20.6, 10.6), "source_cores": 0.0} | meta
    return boundary, node_costs(timed_trace(UNSTAGED_STEP, **meta), boundary.view)


def ms_of(costs: Costs, boundary: Boundary, name: str) -> float:
    return costs.span_ns[boundary.view.number(name)] / 1e6


def test_costs_of_nodes_and_of_the_input():
    boundary, costs = unstaged_costs()
    assert ms_of(costs, boundary, "parse") == pytest.approx(2, rel=0.01)
    assert ms_of(costs, boundary, "dense") == pytest.approx(7, rel=0.01)
    assert ms_of(costs, boundary, "next") == 0
    next_ = boundary.view.number("next")
    assert costs.wait_ns[next_] == 10e6
    assert costs.wait_ns.sum() == 10e6
    assert costs.work_ns[next_] == 0
    assert costs.work_ns.sum() == pytest.approx(10.5e6, rel=0.01)
    assert costs.client_ns == 100_000
    assert costs.cores_per_op == pytest.approx(1, rel=0.01)
    assert (costs.cores, costs.unmatched_ns) == (2, 0)


def test_the_way_that_was_traced_is_predicted_as_it_was_measured():
    boundary, costs = unstaged_costs()
    found = predict(boundary, costs, candidate())
    assert found == Prediction(
        label="a candidate",
        step_ms=pytest.approx(20.6, rel=0.005),
        bound_ms=pytest.approx(20.6, rel=0.005),
        limited_by=STEP,
    )


def test_a_stage_hides_the_wait_and_what_it_moves():
    boundary, costs = unstaged_costs()
    raw = predict(boundary, costs, candidate(staged(boundary, "next")))
    # 0.1 of the client, 2 + 1 + 7 + 0.5 of ops; the wait is a little shorter
    assert raw.step_ms == pytest.approx(10.6, rel=0.02)
    assert raw.limited_by == STEP
    wide = predict(boundary, costs, candidate(staged(boundary, "next", "parse", "hash")))
    assert wide.step_ms == pytest.approx(13.06, rel=0.02)
    assert (wide.limited_by, wide.bound_ms) == ("stage 1", pytest.approx(13.06, rel=0.01))
    chained = predict(
        boundary,
        costs,
        candidate(staged(boundary, "next"), staged(boundary, "next", "parse", "hash")),
    )
    assert chained.step_ms == pytest.approx(10.06, rel=0.02)
    assert chained.limited_by in (INPUT, "stage 1")


def test_a_tracer_that_slows_the_ops_is_taken_out_again():
    slowed = [(name, op, ms * (1.4 if name != "next" else 1)) for name, op, ms in UNSTAGED_STEP]
    boundary = model_boundary()
    trace = timed_trace(slowed, untraced=measured(20.6, 10.6), source_cores=0.0)
    costs = node_costs(trace, boundary.view)
    assert ms_of(costs, boundary, "dense") == pytest.approx(7, rel=0.01)
    assert costs.scale == pytest.approx(1, rel=0.01)


def test_ops_that_use_both_cores_leave_nothing_to_a_stage():
    boundary, costs = unstaged_costs(untraced=measured(20.6, 0.1 + 2 * 20.5), source_cores=1.0)
    # Only the product is known to split its work.
    assert costs.split_cores == pytest.approx(2, rel=0.01)
    assert costs.node_cores[boundary.view.number("dense")] == 2
    found = predict(boundary, costs, candidate(staged(boundary, "next", "parse")))
    assert found.limited_by == CORES
    alone = predict(boundary, costs, candidate()).step_ms
    # the input's own 10 ms on one core find another
    assert found.bound_ms == pytest.approx(alone - 5, rel=0.03)
    four = predict(boundary, costs, candidate(staged(boundary, "next", "parse")), cores=4)
    assert four.step_ms < found.step_ms


def test_an_input_that_computes_is_work_and_no_wait():
    boundary, costs = unstaged_costs(source_cores=0.96, untraced=measured(20.6, 20.2))
    next_ = boundary.view.number("next")
    assert costs.wait_ns[next_] == pytest.approx(0.4e6, rel=0.01)
    assert costs.work_ns[next_] == pytest.approx(9.6e6, rel=0.01)


def test_a_trace_without_notes_is_taken_as_it_is():
    boundary = model_boundary()
    costs = node_costs(timed_trace(UNSTAGED_STEP), boundary.view)
    assert ms_of(costs, boundary, "dense") == 7 + OP
    assert (costs.cores_per_op, costs.scale, costs.packs) == (1, 1, False)
    assert costs.wait_ns.sum() == 10e6


def test_an_untraced_pace_without_cpu_time_gives_each_op_one_core():
    _, costs = unstaged_costs(untraced=measured(20.6))
    assert costs.cores_per_op == 1


def own_trace(**meta) -> Trace:
    """The stage's thread: 10 of wait, 2 of parsing; a step: 0.1 of the client, 8.5 of ops."""
    ahead = [(*NEXT, 10.0), (*PARSE, 2.0)]
    step = [(*HASH, 1.0), (*DENSE, 7.0), (*TRAIN, 0.5)]
    meta = {"untraced": measured(12.06, 10.66), "source_cores": 0.0} | meta
    return timed_trace(step, {"prefetch": ahead}, **meta)


def test_a_trace_of_the_users_stage_says_what_the_step_took_without_it():
    boundary = model_boundary(STAGED)
    costs = node_costs(own_trace(), boundary.view)
    own = Candidate(label="own", stages=(own_stage(boundary, boundary.sides[0]),))
    as_it_is = predict(boundary, costs, own)
    assert as_it_is.step_ms == pytest.approx(12.06, rel=0.01)
    assert as_it_is.limited_by == "your stage"
    assert predict(boundary, costs, candidate()).step_ms == pytest.approx(20.6, rel=0.02)
    # two threads wait in turn and parse while the other waits
    twice = Candidate(
        label="own, 2 threads",
        stages=(
            own_stage(model_boundary(STAGED, stage=StageOptions(num_threads=2)), boundary.sides[0]),
        ),
    )
    assert predict(boundary, costs, twice).step_ms == pytest.approx(10.06, rel=0.02)


def test_widening_the_users_stage_moves_what_is_behind_its_take_before_its_put():
    boundary = model_boundary(STAGED)
    costs = node_costs(own_trace(), boundary.view)
    own = own_stage(boundary, boundary.sides[0])
    wide = CandidateStage(
        side=own.side, moved=own.moved | own.side.widest, num_threads=1, capacity=1
    )
    assert predict(boundary, costs, candidate(wide)).bound_ms == pytest.approx(13.06, rel=0.01)
    second = CandidateStage(side=own.side, moved=own.side.widest, num_threads=1, capacity=1)
    behind = predict(boundary, costs, candidate(own, second))
    assert behind.bound_ms == pytest.approx(12.06, rel=0.01)


@pytest.mark.parametrize("prefix", ["smart_stage", "smart_stage_0"])
def test_copies_that_ran_ahead_count_for_their_originals(prefix: str):
    ahead = [(f"{prefix}/{name}", op, ms) for name, op, ms in UNSTAGED_STEP[:3]]
    step = [("dense", "MatMul", 7.0), ("train", "AssignVariableOp", 0.5)]
    boundary = model_boundary()
    trace = timed_trace(
        step, {"smart_stage": ahead}, untraced=measured(13.06, 10.66), source_cores=0.0
    )
    costs = node_costs(trace, boundary.view)
    assert ms_of(costs, boundary, "hash") == pytest.approx(1, rel=0.01)
    assert costs.wait_ns[boundary.view.number("next")] == 10e6
    assert predict(boundary, costs, candidate()).step_ms == pytest.approx(20.6, rel=0.02)


def test_a_trace_of_chained_stages_is_simulated_as_a_chain():
    first = [("smart_stage_input/next", "IteratorGetNext", 10.0)]
    second = [("smart_stage/parse", "DecodeCSV", 9.0), ("smart_stage/hash", HASH[1], 2.0)]
    step = [("dense", "MatMul", 7.0), ("train", "AssignVariableOp", 0.5)]
    boundary = model_boundary()
    trace = timed_trace(
        step,
        {"smart_stage": second, "smart_stage_input": first},
        untraced=measured(11.06, 18.72),
        source_cores=0.0,
    )
    costs = node_costs(trace, boundary.view)
    # were both stages fed by themselves, a step would take 11.06 too; were they one, 21
    assert costs.scale == pytest.approx(1, rel=0.01)
    assert predict(boundary, costs, candidate()).step_ms == pytest.approx(28.6, rel=0.03)


def test_what_tensorflow_added_stays_in_the_step():
    added = [*UNSTAGED_STEP, ("ArithmeticOptimizer/x", "Mul", 3.0)]
    boundary = model_boundary()
    trace = timed_trace(added, untraced=measured(23.6, 13.6), source_cores=0.0)
    costs = node_costs(trace, boundary.view)
    assert costs.unmatched_ns == pytest.approx(3e6, rel=0.01)
    raw = predict(boundary, costs, candidate(staged(boundary, "next")))
    assert raw.step_ms == pytest.approx(13.6, rel=0.02)


def test_ops_of_an_inlined_function_count_for_its_call():
    text = MODEL.replace("dense = MatMul(read, hash)", "dense = PartitionedCall(read, hash)")
    view = graph(text, functions={"dense": ("f",)})
    inlined = [*UNSTAGED_STEP[:3], ("dense/MatMul", "MatMul", 4.0), ("dense/Add", "AddV2", 2.0)]
    costs = node_costs(timed_trace(inlined), view)
    assert costs.span_ns[view.number("dense")] == pytest.approx(6e6, rel=0.001)
    # where the call itself has a time, its ops are part of it
    called = [*inlined, ("dense", "PartitionedCall", 6.5)]
    costs = node_costs(timed_trace(called), view)
    assert costs.span_ns[view.number("dense")] == pytest.approx(6.5e6, rel=0.001)


def test_a_node_in_a_loop_counts_as_often_as_it_ran():
    looped = [*UNSTAGED_STEP, (*HASH, 1.0), (*HASH, 1.0)]
    boundary = model_boundary()
    costs = node_costs(timed_trace(looped), boundary.view)
    assert ms_of(costs, boundary, "hash") == pytest.approx(3 + 3 * OP)


def test_a_step_that_something_disturbed_is_left_out():
    boundary = model_boundary()
    steps = [UNSTAGED_STEP] * 11 + [[(*NEXT, 200.0), *UNSTAGED_STEP[1:]]]
    costs = node_costs(timed_trace(steps), boundary.view)
    assert costs.wait_ns.sum() == 10e6


def test_a_queue_that_is_waited_for_gains_nothing_from_a_stage():
    text = MODEL.replace("IteratorGetNext(it)", "QueueDequeueV2(it)").replace(
        "IteratorV2", "FIFOQueueV2"
    )
    boundary = model_boundary(text)
    dequeue = [("next", "QueueDequeueV2", 10.0), *UNSTAGED_STEP[1:]]
    trace = timed_trace(dequeue, untraced=measured(20.6, 10.6), source_cores=0.0)
    costs = node_costs(trace, boundary.view)
    found = predict(boundary, costs, candidate(staged(boundary, "next", "parse")))
    assert found.step_ms == pytest.approx(20.6, rel=0.01)
    assert found.limited_by == INPUT


@pytest.mark.parametrize(
    ("end", "gains"),
    [
        ("PrefetchDataset(slow)", False),
        ("ParallelMapDatasetV2(slow)", False),
        ("MapDataset(ahead)", True),
    ],
)
def test_a_pipeline_that_ends_in_a_prefetch_gains_nothing_from_a_stage(end: str, gains: bool):
    pipeline = f"""
    slow = BatchDatasetV2 variant
    ahead = PrefetchDataset(slow) variant
    end = {end} variant
    options = OptionsDataset(end) variant
    maker = MakeIterator(options, it)
    """
    boundary = model_boundary(MODEL.replace("next =", pipeline + "next ="))
    costs = node_costs(
        timed_trace(UNSTAGED_STEP, untraced=measured(20.6, 10.6), source_cores=0.0), boundary.view
    )
    found = predict(boundary, costs, candidate(staged(boundary, "next", "parse")))
    assert found.step_ms == pytest.approx(12.06 if gains else 20.6, rel=0.02)
    assert (found.limited_by == INPUT) is not gains


def test_an_iterator_that_goes_on_by_itself_shows_in_the_rhythm_of_its_items():
    random = np.random.default_rng(5)
    steps = 30
    longer = random.normal(0, 0.6, steps)
    boundary = model_boundary()

    def gain(waits: np.ndarray) -> float:
        sides = [
            [(*NEXT, wait), *UNSTAGED_STEP[1:3], (*DENSE, 7.0 + more), (*TRAIN, 0.5)]
            for wait, more in zip(waits.tolist(), longer.tolist(), strict=True)
        ]
        trace = timed_trace(sides, steps=steps, untraced=measured(20.6, 10.6), source_cores=0.0)
        costs = node_costs(trace, boundary.view)
        ahead = predict(boundary, costs, candidate(staged(boundary, "next")))
        return predict(boundary, costs, candidate()).step_ms / ahead.step_ms

    asked_for = random.normal(10, 0.1, steps)
    assert gain(asked_for) == pytest.approx(1.9, rel=0.05)
    # an item every 20.6 ms, whoever asks
    assert gain(10 - np.concatenate(([0.0], longer[:-1]))) == pytest.approx(1, rel=0.02)


def test_an_input_that_is_asked_in_the_rhythm_of_the_steps_does_not_go_on_by_itself():
    # Each step asks at its begin, and what hides the wait is as long whenever the item arrives.
    waits = np.random.default_rng(5).integers(2_000_000, 8_000_000, 30)
    begin = np.arange(30) * 20_000_000
    view = model_boundary().view
    node = view.number("next")
    spans = InputSpans(node=node, start_ns=begin, end_ns=begin + waits)
    assert not input_cost(spans, view, 0.0, 20e6).ahead
    # One that delivers every 20 ms, asked now sooner and now later, does.
    spans = InputSpans(node=node, start_ns=begin + waits, end_ns=begin + 20_000_000)
    assert input_cost(spans, view, 0.0, 20e6).ahead


def test_callers_who_stand_in_line_wait_for_the_input_only_once():
    boundary = model_boundary()
    ahead = [("smart_stage/next", "IteratorGetNext", 10.0)]
    trace = timed_trace([(*DENSE, 5.0)], {"smart_stage": ahead}, threads=2)
    # both threads ask at once: the second stands in line for 10 ms
    events = trace.events.copy()
    asking = events["node"] == trace.nodes.index[trace.nodes["op"] == "IteratorGetNext"][0]
    late = asking & (events["step"] > 1)
    events.loc[late, "start_ns"] -= 10_000_000
    events.loc[late, "dur_ns"] += 10_000_000
    made = Trace(
        events=events.sort_values("start_ns"),
        nodes=trace.nodes,
        tracks=trace.tracks,
        runs=trace.runs,
        items=trace.items,
        meta=trace.meta,
    )
    assert node_costs(made, boundary.view).wait_ns.sum() == 10e6


def test_a_packing_machine_makes_the_step_after_a_wait_slower():
    wide = [(name, op, ms * (4 if name == "next" else 1)) for name, op, ms in UNSTAGED_STEP]
    boundary = model_boundary()
    notes = {"untraced": measured(50.6, 0.1 + 2 * 10.5), "source_cores": 0.0}
    plain = node_costs(timed_trace(wide, **notes, packs_when_idle=False), boundary.view)
    packed = node_costs(timed_trace(wide, **notes, packs_when_idle=True), boundary.view)
    stage = candidate(staged(boundary, "next"))
    # measured at 50.6 either way; if that was on one core, the ops are shorter on two
    assert predict(boundary, packed, candidate()).step_ms == pytest.approx(50.6, rel=0.01)
    assert packed.span_ns.sum() < 0.8 * plain.span_ns.sum()
    narrow = [predict(boundary, costs, stage, cores=1).step_ms for costs in (plain, packed)]
    assert narrow[1] <= narrow[0] * 1.01


def test_ops_that_got_less_than_a_core_after_a_wait_shared_one():
    wide = [(name, op, ms * (4 if name == "next" else 1)) for name, op, ms in UNSTAGED_STEP]
    boundary = model_boundary()
    notes = {"untraced": measured(50.6, 0.1 + 0.8 * 10.5), "source_cores": 0.0}
    assert node_costs(timed_trace(wide, **notes), boundary.view).packs
    known = timed_trace(wide, **notes, packs_when_idle=False)
    assert not node_costs(known, boundary.view).packs
    busy = timed_trace(UNSTAGED_STEP[1:], untraced=measured(10.6, 8), source_cores=0.0)
    assert not node_costs(busy, boundary.view).packs


def test_all_candidates_of_a_large_graph_are_predicted():
    lines = ["it = IteratorV2", "next = IteratorGetNext(it) string", "w = VarHandleOp"]
    step = [("next", "IteratorGetNext", 10.0)]
    for tower in range(40):
        lines.append(f"t{tower}/n0 = StringToHashBucketFast(next) int64")
        lines += [f"t{tower}/n{i} = Neg(t{tower}/n{i - 1})" for i in range(1, 50)]
        lines.append(f"t{tower}/read = ReadVariableOp(w)")
        lines.append(f"t{tower}/m0 = Mul(t{tower}/n49, t{tower}/read)")
        lines += [f"t{tower}/m{i} = Neg(t{tower}/m{i - 1})" for i in range(1, 50)]
        step += [(f"t{tower}/{kind}{i}", "Neg", 0.002) for kind in "nm" for i in range(50)]
    lines.append("train = AssignVariableOp(w, " + ", ".join(f"t{t}/m49" for t in range(40)) + ")")
    boundary = boundary_of(graph("\n".join(lines)), targets=["train"])
    trace = timed_trace(step, untraced=measured(19, 9), source_cores=0.0)
    candidates = candidates_of(
        boundary, boundary.sides[0], SmartStageOptions(reorder=True), cores=4
    )
    assert len(boundary.view) > 4000 and len(candidates) > 20
    costs = node_costs(trace, boundary.view)
    found = [predict(boundary, costs, each) for each in candidates]
    assert found[0].step_ms == pytest.approx(19, rel=0.02)
    assert all(each.step_ms >= each.bound_ms for each in found)


def test_ops_of_a_called_function_that_ran_side_by_side_take_the_time_of_the_call():
    view = graph(
        "a = Neg\ncall = StatefulPartitionedCall(a)\nb = Neg(call)", functions={"call": ("f",)}
    )
    inside = ("call/left", "Neg"), ("call/right", "Neg")
    trace = timed_trace(
        [("a", "Neg", 1.0), (*inside[0], 4.0), (*inside[1], 4.0), ("b", "Neg", 1.0)]
    )
    # the second begins with the first, on another thread
    events = trace.events.copy()
    right = trace.nodes.index[trace.nodes["name"] == "call/right"][0]
    events.loc[events["node"] == right, "start_ns"] -= 4_000_000
    events = events.sort_values("start_ns", ignore_index=True)
    costs = node_costs(dataclasses.replace(trace, events=events), view)
    call = view.number("call")
    assert costs.lanes is not None and costs.lanes[call] == 2
    assert costs.span_ns[call] / 1e6 == pytest.approx(4, rel=0.001)
    assert costs.op_ns[call] / 1e6 == pytest.approx(8, rel=0.001)
    # one thread runs one after the other
    serial = costs.dispatched(INLINE)
    assert serial.span_ns[call] / 1e6 == pytest.approx(8, rel=0.001)
    assert serial.lanes is None


def test_a_call_takes_what_passes_between_its_ops_and_no_wait_for_a_core():
    view = graph("a = Neg\nloop = StatelessWhile(a)\nb = Neg(loop)", functions={"loop": ("f",)})
    rounds = [(f"loop/body/op{number}", "Neg", 0.001) for number in range(100)]
    trace = timed_trace([("a", "Neg", 1.0), *rounds, ("b", "Neg", 1.0)])
    # 2 µs before each op but the first, and once half a millisecond
    place = trace.events.groupby("step").cumcount().to_numpy()
    late = 2_000 * place + np.where(place > 50, 500_000, 0)
    spread = dataclasses.replace(
        trace, events=trace.events.assign(start_ns=trace.events["start_ns"] + late)
    )
    packed, costs = node_costs(trace, view), node_costs(spread, view)
    loop = view.number("loop")
    assert packed.span_ns[loop] / 1e3 == pytest.approx(100, rel=0.01)
    assert costs.span_ns[loop] / 1e3 == pytest.approx(100 + 98 * 2, rel=0.01)
    assert costs.lanes is not None and costs.lanes[loop] == 1


def test_steps_whose_ops_vary_take_longer_than_one_of_their_means():
    view = graph("a = Neg\nb = Neg\nend = AssignVariableOp(a, b)")
    # a and b stand side by side on two threads; in turn one of them is the longer
    one = [("a", "Neg", 6.0), ("b", "Neg", 2.0), ("end", "AssignVariableOp", 1.0)]
    other = [("a", "Neg", 2.0), ("b", "Neg", 6.0), ("end", "AssignVariableOp", 1.0)]
    varied = node_costs(timed_trace([one, other] * 6, inter_op_threads=2), view)
    # 6 + 1 ms a step, of the means 4 + 1
    assert varied.unevenness == pytest.approx(7 / 5)
    even = node_costs(timed_trace(one, inter_op_threads=2), view)
    assert even.unevenness == 1
    # one thread waits for nobody
    alone = node_costs(timed_trace([one, other] * 6, inter_op_threads=1), view)
    assert alone.unevenness == pytest.approx(1)


def test_a_client_that_fetches_its_input_takes_time_until_it_calls_the_step():
    events, runs = [], []
    for step in range(1, 13):
        at = START_NS + step * 7_000_000
        # The input takes 1, the client 0.6 until it calls, the call 5, and the client 0.4 after it.
        events += [(at, 1_000_000, 0, 0, 1, step), (at + 1_600_000, 5_000_000, 0, 1, 1, step)]
        runs.append((0, step, at, at + 7_000_000))
    trace = make_trace(
        events,
        nodes=[NEXT, DENSE],
        tracks=[("Main step", "step", 0, ""), ("Inter-op 0", "inter_op", 0, "")],
        runs=runs,
        cores=2,
        untraced=measured(7.0),
    )
    view = graph("next = IteratorGetNext\ndense = MatMul(next)")
    costs = node_costs(trace, view)
    assert costs.client_ns == pytest.approx(1_000_000, rel=1e-3)
    assert costs.calling_ns == pytest.approx(600_000, rel=1e-3)
    assert costs.replayed_ns == pytest.approx(7e6, rel=0.01)
    # Behind a stage the function is called without Python, in 0.06.
    dense = view.mask([view.number("dense")])
    plain, behind = (
        costs.step(view, dense, name="step", after=after, clients=1, cores=2, unmatched_ns=0.0).work
        for after in ((), (0,))
    )
    assert plain.alone_ns - behind.alone_ns == pytest.approx(540_000, rel=1e-3)


FUNCTION = """
weights = Placeholder resource
batch = Placeholder string
label = Placeholder
parse = DecodeCSV(batch)
scale = Neg(label)
dense = MatMul(parse, scale)
train = AssignVariableOp(weights, dense)
"""
# The client fetches the batch, then calls the function.
FETCHED_STEP = [
    *(("get", "IteratorGetNext", 4.0), ("parse", "DecodeCSV", 2.0), ("scale", "Neg", 3.0)),
    *(("dense", "MatMul", 1.0), ("train", "AssignVariableOp", 0.5)),
]


def test_what_a_function_is_fetched_by_its_client_comes_before_its_step():
    view = graph(FUNCTION, captures={"weights": "variable"})
    boundary = boundary_of(view, targets=["train"], starts=("batch", "label"))
    assert view.arguments == (view.number("batch"), view.number("label"))
    meta = {"untraced": measured(10.6, 10.6), "source_cores": 1.0, "inter_op_threads": 1}
    trace = timed_trace(FETCHED_STEP, **meta)
    costs = node_costs(trace, boundary.view)
    assert costs.replayed_ns / 1e6 == pytest.approx(10.6, rel=0.01)
    # No op of the function runs while its client fetches.
    assert predict(boundary, costs, candidate()).step_ms == pytest.approx(10.6, rel=0.01)
    ahead = predict(boundary, costs, candidate(staged(boundary, "batch", "label")))
    assert ahead.step_ms == pytest.approx(6.6, rel=0.01)


def test_another_executor_saves_of_what_its_steps_took_between_ops():
    costs = Costs(
        span_ns=np.array([10_000.0, 400.0]),
        runs=np.array([4.0, 1.0]),
        between_ns=900.0,
        client_ns=100_000.0,
        wake_ns=20_000.0,
    )
    inline = costs.dispatched(INLINE)
    assert inline.span_ns.tolist() == pytest.approx([10_000 - 4 * 600, 0])
    # No thread of the pool is woken, and none wakes the client.
    assert (inline.between_ns, inline.client_ns) == (pytest.approx(300), 60_000)
    assert costs.dispatched(costs.dispatch).span_ns.tolist() == costs.span_ns.tolist()


def test_ops_beside_each_other_in_another_setting_have_the_cores_that_others_leave():
    lines = "a = MatMul\nb = MatMul\nc = AddN(a, b)"
    view = graph(lines)
    # One ran after the other, on both cores.
    step = [("a", "MatMul", 4.0), ("b", "MatMul", 4.0), ("c", "AddN", 1.0)]
    trace = timed_trace(step, untraced=measured(9.1, 18.1), inter_op_threads=1)
    costs = node_costs(trace, view)
    assert costs.split_cores == pytest.approx(2, rel=0.01)
    wider = dataclasses.replace(costs, inter_op_threads=2)
    boundary = uncut(view)
    assert predict(boundary, wider, candidate()).step_ms == pytest.approx(9.1, rel=0.02)
    plain = dataclasses.replace(wider, splits=None)
    assert predict(boundary, plain, candidate()).step_ms < 8
