"""Predictions of settings, from tiny graphs and literal traces, reckoned by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from tests.builders.graphs import graph
from tests.builders.replays import every_replay_holds
from tests.builders.small_models import MODEL, STAGED
from tests.builders.traces import START_NS, make_trace, timed_trace
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.prediction.doubts import NO_PLACE, UNEVEN, doubts_of
from workbench.core.prediction.traced_graph import traced_graph, uncut
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.core.what_if.base import Sample
from workbench.core.what_if.faster import Faster
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.scenario import GraphKey, SampleKey, Scenario
from workbench.core.what_if.what_if import KnownGraph, predictor, what_if
from workbench.errors import OptionError, TraceError

FUSED = MODEL.replace("hash = String", "other = String").replace("read, hash", "read, other")
# 0.1 ms of the client, then these: 20.6 ms
STEP = [
    ("next", "IteratorGetNext", 10.0),
    ("parse", "DecodeCSV", 2.0),
    ("hash", "StringToHashBucketFast", 1.0),
    ("dense", "MatMul", 7.0),
    ("train", "AssignVariableOp", 0.5),
]
ON_STAGE = Scenario(optimizations=Optimizations(stage=StageOptions()))
ON_SMART = Scenario(optimizations=Optimizations(smart_stage=SmartStageOptions()))
ON_FUSED = Scenario(optimizations=Optimizations(fused_embeddings="v1"))
ON_COST_MODEL = Scenario(optimizations=Optimizations(executor=ExecutorPolicy.COST_MODEL))
ON_INLINE = Scenario(optimizations=Optimizations(executor=ExecutorPolicy.INLINE))


def boundary(text: str) -> Boundary:
    return boundary_of(graph(text, shared={"put": "b", "take": "b"}), targets=["train"])


def traced(step_ms: float = 20.6, cpu_ms: float = 10.6) -> Trace:
    untraced = UntracedSteps(steps=60, step_ns=round(step_ms * 1e6), cpu_ns=round(cpu_ms * 1e6))
    return timed_trace(STEP, title="tiny", untraced=untraced, source_cores=0.0)


def with_rests(trace: Trace, times: float) -> Trace:
    """Steps that last so many times as long, while their ops do not."""
    events, runs = trace.events.copy(), trace.runs.copy()
    for frame, column in ((events, "start_ns"), (runs, "start_ns"), (runs, "end_ns")):
        since = frame[column] - START_NS
        frame[column] = START_NS + (since * times).round().astype("int64")
    return dataclasses.replace(trace, events=events, runs=runs)


def predicted(
    *scenarios: Scenario, trace: Trace | None = None, **graphs: KnownGraph
) -> Predictions:
    known = {
        GraphKey(): KnownGraph(boundary=boundary(MODEL)),
        GraphKey(staged=True): KnownGraph(boundary=boundary(STAGED)),
    }
    if "fused" in graphs:
        known[GraphKey(fused="v1")] = graphs["fused"]
    return what_if(trace or traced(), Scenario(), known, scenarios)


def test_a_moved_boundary_is_predicted_as_it_was_moved():
    moved = SmartStageOptions(exclude=("hash",))
    lost = SmartStageOptions(exclude=("dense",))
    found = predicted(
        *(Scenario(optimizations=Optimizations(smart_stage=each)) for each in (moved, lost)),
    )
    (cut,) = (each for each in found.predicted if each.scenario.optimizations.smart_stage == moved)
    assert cut.plan == "the chosen cut"
    # The hash of 1 ms stays with the 7 ms of the layer and the 0.5 ms of its training.
    assert cut.step_ms > 8.5
    (refused,) = found.withheld
    assert refused.reason.startswith("the cut names a node that cannot move: 'dense'")


def test_what_was_traced_is_there_as_it_was_measured():
    found = predicted(ON_STAGE)
    off = found.of("off")
    assert off is not None
    assert (off.step_ms, off.low_ms, off.high_ms, off.ratio) == (20.6, 20.6, 20.6, 1.0)
    assert found.replay is not None
    assert found.replay.measured_ms == 20.6
    assert found.replay.simulated_ms == pytest.approx(20.6, rel=0.005)


def test_steps_that_something_disturbed_are_left_out_of_both_times():
    longer = [(name, op, 3 * ms) for name, op, ms in STEP]
    untraced = UntracedSteps(steps=60, step_ns=20_600_000, cpu_ns=10_600_000)
    steps = [STEP] * 5 + [longer] + [STEP] * 6
    trace = timed_trace(steps, title="tiny", untraced=untraced, source_cores=0.0)
    replay = predicted(trace=trace).replay
    assert replay is not None
    assert replay.measured_ms == pytest.approx(20.6)
    assert replay.simulated_ms == pytest.approx(20.6, rel=0.005)


def test_steps_that_are_long_again_and_again_count_in_both_times():
    longer = [(name, op, 3 * ms) for name, op, ms in STEP]
    untraced = UntracedSteps(steps=60, step_ns=30_850_000, cpu_ns=15_900_000)
    trace = timed_trace(
        [STEP, STEP, longer, STEP] * 3, title="tiny", untraced=untraced, source_cores=0.0
    )
    replay = predicted(trace=trace).replay
    assert replay is not None
    # of the last step it is not known when the next one begins
    assert replay.measured_ms == pytest.approx((8 * 20.6 + 3 * 61.6) / 11, rel=0.005)
    assert abs(replay.error) < 0.05


def test_a_toggle_of_which_nothing_is_known_is_withheld():
    choice = Toggle("freed", ("kept", "given_back")).at("given_back")
    other = Optimizations(executor=ExecutorPolicy.INLINE, chosen=(choice,))
    (withheld,) = predicted(Scenario(optimizations=other)).withheld
    assert withheld.reason == "what freed gives is not predicted; measure it with wb.compare"
    # In the traced setting it is part of what is known.
    known = {GraphKey(): KnownGraph(boundary=boundary(MODEL))}
    before = Scenario(optimizations=Optimizations(chosen=(choice,)))
    assert not what_if(traced(), before, known, [Scenario(optimizations=other)]).withheld


def test_what_no_step_runs_costs_nothing_in_a_graph_of_which_nothing_may_run_ahead():
    # What only a summary reads is no part of a step.
    view = graph(MODEL + "summary = Sum(dense)\n")
    assert uncut(view, ["train"]).step.sum() == len(view) - 1
    assert uncut(view).step.all()


def test_a_stage_hides_the_wait_and_what_stands_before_its_put():
    found = predicted(ON_STAGE).of("stage")
    assert found is not None
    # the stage waits 10 ms and parses for 2; 60 µs a run are its thread's own
    assert found.step_ms == pytest.approx(12.06, rel=0.01)
    assert found.ratio == pytest.approx(20.6 / found.step_ms)
    assert found.limited_by == "your stage"
    assert found.low < found.ratio < found.high
    assert found.low_ms < found.step_ms < found.high_ms


def test_a_smart_stage_takes_the_candidate_that_is_predicted_to_be_best():
    found = predicted(ON_SMART).of("smart stage")
    assert found is not None
    # the input alone waits 10 ms; parsing and hashing stand in a second stage
    assert found.step_ms == pytest.approx(10.06, rel=0.02)
    assert "two chained stages" in found.plan


def test_settings_come_by_their_ratio_and_the_first_is_the_best():
    found = predicted(ON_STAGE, ON_SMART)
    assert [each.label for each in found.predicted] == ["smart stage", "stage", "off"]
    assert found.best == found.predicted[0]
    assert list(found.df.index) == ["smart stage", "stage", "off"]
    assert found.df.loc["off", "steps_per_s"] == pytest.approx(1e3 / 20.6)


def test_capacity_and_threads_of_a_stage_are_those_of_its_options():
    two = Scenario(optimizations=Optimizations(stage=StageOptions(num_threads=2, capacity=2)))
    found = predicted(two).of("stage")
    assert found is not None
    # one thread parses while the other waits; the input answers one of them at a time
    assert found.step_ms == pytest.approx(10.0, rel=0.02)


def test_a_setting_on_more_cores_says_so_and_is_not_slower():
    four = dataclasses.replace(ON_STAGE, cores=4)
    found = predicted(ON_STAGE, four)
    more, same = found.of("stage + 4 cores"), found.of("stage")
    assert more is not None and same is not None
    assert more.step_ms <= same.step_ms * 1.001


def test_a_batch_of_twice_the_size_takes_longer_and_gives_more_samples():
    twice = Scenario(batch_ratio=2.0)
    found = predicted(twice).of("batch × 2")
    assert found is not None
    # all but the client, the write of the whole variable and 2 µs an op follow from the batch
    assert found.step_ms == pytest.approx(2 * 20.0 + 0.6, rel=0.01)
    assert found.ratio == pytest.approx(2 * 20.6 / found.step_ms)


# 0.8 ms less: 19.8 ms
FUSED_STEP = [("other", "StringToHashBucketFast", 0.2) if n == "hash" else (n, op, ms)
              for n, op, ms in STEP]  # fmt: skip


def fused_sample(*, slower: float = 1.0, beside_ms: float = 0.0) -> KnownGraph:
    """A fused graph, and steps of it on a machine that is slower by then."""
    steps = [(name, op, slower * ms) for name, op, ms in FUSED_STEP]
    untraced = UntracedSteps(steps=60, step_ns=round(slower * 19.8e6), cpu_ns=round(slower * 9.8e6))
    trace = timed_trace(steps, title="tiny", untraced=untraced, source_cores=0.0)
    sample = Sample(trace=trace, beside_ns=beside_ms * 1e6)
    return KnownGraph(boundary=boundary(FUSED), samples={SampleKey(fused="v1"): sample})


def test_a_fused_graph_is_predicted_from_a_sample_of_its_steps():
    both = Optimizations(fused_embeddings="v1", smart_stage=SmartStageOptions())
    found = predicted(ON_FUSED, Scenario(optimizations=both), fused=fused_sample())
    fused, staged = found.of("fused V1"), found.of("smart stage + fused V1")
    assert fused is not None and staged is not None
    assert fused.step_ms == pytest.approx(19.8, rel=0.005)
    assert fused.ratio == pytest.approx(20.6 / 19.8, rel=0.005)
    # What a stage gives is simulated, from the ops of the sample: its input of 10 ms and more run
    # ahead.
    assert staged.step_ms < 12.5


def test_a_machine_that_is_slower_by_then_has_the_same_ratio():
    sample = fused_sample(slower=1.5, beside_ms=1.5 * 20.6)
    found = predicted(ON_FUSED, fused=sample).of("fused V1")
    assert found is not None
    assert found.ratio == pytest.approx(20.6 / 19.8, rel=0.005)
    assert found.step_ms == pytest.approx(19.8, rel=0.005)


def test_an_interval_is_wider_where_the_replay_of_the_sample_does_not_hold():
    exact, loose = fused_sample(), fused_sample()
    (held,) = loose.samples.values()
    sample = dataclasses.replace(held, trace=with_rests(held.trace, 1.2))
    samples = {SampleKey(fused="v1"): sample}
    found = [
        predicted(ON_FUSED, fused=each).of("fused V1")
        for each in (exact, dataclasses.replace(loose, samples=samples))
    ]
    half, wider = (each.high_ms / each.step_ms - 1 for each in found if each is not None)
    assert wider - half == pytest.approx(1 - 1 / 1.2, abs=0.01)


def inline_sample() -> dict[SampleKey, Sample]:
    """Steps of one op after the other, in which parsing takes 0.4 ms less."""
    steps = [(name, op, ms - 0.4 * (name == "parse")) for name, op, ms in STEP]
    untraced = UntracedSteps(steps=60, step_ns=20_200_000, cpu_ns=10_200_000)
    trace = timed_trace(steps, title="tiny", untraced=untraced, source_cores=0.0)
    return {SampleKey(serial=True): Sample(trace=trace, beside_ns=20.6e6)}


def test_ops_that_run_one_after_the_other_take_what_they_took_so():
    both = Optimizations(stage=StageOptions(), executor=ExecutorPolicy.INLINE)
    staged = KnownGraph(boundary=boundary(STAGED))
    without, found = (
        what_if(
            traced(),
            Scenario(),
            {
                GraphKey(): KnownGraph(boundary=boundary(MODEL), samples=samples),
                GraphKey(staged=True): staged,
            },
            [ON_INLINE, Scenario(optimizations=both), ON_STAGE],
        )
        for samples in ({}, inline_sample())
    )
    inline = found.of("inline executor")
    assert inline is not None
    assert inline.ratio == pytest.approx(20.6 / 20.2, rel=0.005)
    before, now = (each.of("stage + inline executor") for each in (without, found))
    assert before is not None and now is not None
    assert before.step_ms - now.step_ms == pytest.approx(0.4, abs=0.05)
    # Where ops run beside each other they take what the trace says.
    assert found.of("stage") == without.of("stage")


def test_an_inline_executor_without_a_sample_takes_the_ops_of_other_steps():
    on = Optimizations(fused_embeddings="v1", executor=ExecutorPolicy.INLINE)
    found = predicted(ON_INLINE, Scenario(optimizations=on), fused=fused_sample())
    inline, fused = found.of("inline executor"), found.of("fused V1 + inline executor")
    assert inline is not None and fused is not None
    assert inline.step_ms - fused.step_ms == pytest.approx(0.8, rel=0.02)


def test_a_fused_graph_without_a_sample_is_withheld():
    known = KnownGraph(boundary=boundary(FUSED))
    (withheld,) = predicted(ON_FUSED, fused=known).withheld
    assert withheld.reason == "what its ops take is not known: no step of it was traced"
    known = dataclasses.replace(known, problem="its steps cannot be traced: no")
    (withheld,) = predicted(ON_FUSED, fused=known).withheld
    assert withheld.reason == "its steps cannot be traced: no"


def test_the_interval_of_a_step_that_loses_much_is_open_to_more():
    work = Scenario(faster=(Faster(work="dense"),))
    found = predicted(work).of("no dense")
    assert found is not None
    assert found.ratio > 20.6 / 13.6
    half, gone = math.hypot(0.03, 0.10), 1 - found.step_ms / 20.6
    assert found.low == pytest.approx(found.ratio / (1 + half))
    # What is left may be as many times as fast as 1.6 times what is gone, and 1.
    assert found.high == pytest.approx(found.ratio / (1 - half) * (1 + 1.6 * gone))
    assert found.low_ms == pytest.approx(20.6 / found.high)


def test_less_work_is_no_longer_step(monkeypatch):
    every_replay_holds(monkeypatch)
    lines = [
        *("next = IteratorGetNext string", "a = Neg(next)", "b = MatMul(next)", "e = Neg(next)"),
        *("c = Neg(next, a, b)", "d = Neg(next, a)", "train = AssignVariableOp(a, b, c, d, e)"),
    ]
    ms = {"next": 1.0, "a": 2.0, "b": 3.0, "c": 4.0, "d": 2.0, "e": 2.0, "train": 1.0}
    ops = {"next": "IteratorGetNext", "b": "MatMul", "train": "AssignVariableOp"}
    step = [(node, ops.get(node, "Neg"), took) for node, took in ms.items()]
    untraced = UntracedSteps(steps=60, step_ns=10_500_000, cpu_ns=15_000_000)
    trace = timed_trace(step, untraced=untraced, source_cores=0.0, inter_op_threads=2)
    known = {GraphKey(): KnownGraph(boundary=uncut(graph("\n".join(lines))))}
    for times in (1.5, 2.0, 3.0, math.inf):
        changed = Scenario(faster=(Faster(work="b", times=times),))
        found = what_if(trace, Scenario(), known, [changed]).of(changed.label)
        # A thread takes e up where it would have taken c, on which the step waits.
        assert found is not None and found.ratio >= 1


def test_more_that_is_faster_is_no_longer_step(monkeypatch):
    every_replay_holds(monkeypatch)
    lines = [
        *("next = IteratorGetNext string", "a = Neg(next)", "b = Neg(next)", "c = Neg(next)"),
        *("d = Neg(next, b)", "e = Neg(next, c)", "f = Neg(next, a, b, c)", "g = Neg(next, a, d)"),
        "train = AssignVariableOp(a, b, c, d, e, f, g)",
    ]
    ms = {"a": 3.0, "b": 9.0, "c": 4.0, "d": 8.0, "e": 5.0, "f": 9.0, "g": 6.0}
    step = [("next", "IteratorGetNext", 1.0), *((node, "Neg", took) for node, took in ms.items())]
    step.append(("train", "AssignVariableOp", 1.0))
    untraced = UntracedSteps(steps=60, step_ns=32_200_000, cpu_ns=46_000_000)
    trace = timed_trace(step, untraced=untraced, source_cores=0.0, inter_op_threads=2)
    known = {GraphKey(): KnownGraph(boundary=uncut(graph("\n".join(lines))))}
    b, c = (Faster(work=work, times=1.5) for work in "bc")
    alone, both = Scenario(faster=(b,)), Scenario(faster=(b, c))
    found = what_if(trace, Scenario(), known, [alone, both])
    one, two = found.of(alone.label), found.of(both.label)
    assert one is not None and two is not None and two.ratio >= one.ratio > 1


def test_a_cost_model_gives_some_of_what_the_best_order_would(monkeypatch):
    every_replay_holds(monkeypatch)
    leaves = ("s", "t", "u", "v", "x")
    lines = ["next = IteratorGetNext string", *(f"{leaf} = Neg(next)" for leaf in leaves)]
    lines += ["y = Neg(x)", "train = AssignVariableOp(next, s, t, u, v, y)"]
    step = [("next", "IteratorGetNext", 1.0), *((leaf, "Neg", 1.0) for leaf in (*leaves, "y"))]
    step.append(("train", "AssignVariableOp", 1.0))
    # on two threads stock takes x last, with y behind it: 1 + 4 + 1 ms, at best 1 + 3 + 1
    untraced = UntracedSteps(steps=60, step_ns=6_100_000, cpu_ns=7_100_000)
    trace = timed_trace(step, untraced=untraced, source_cores=0.0, inter_op_threads=2)
    known = {GraphKey(): KnownGraph(boundary=uncut(graph("\n".join(lines))))}
    found = what_if(trace, Scenario(), known, [ON_COST_MODEL]).of("cost model executor")
    assert found is not None
    assert found.step_ms == pytest.approx(6.1 - 0.25, rel=0.003)


def test_what_the_program_does_not_build_is_withheld_with_the_reason():
    found = predicted(ON_FUSED, fused=KnownGraph(problem="it builds no lookup"))
    assert [(each.label, each.reason) for each in found.withheld] == [
        ("fused V1", "it builds no lookup")
    ]
    assert found.df.loc["fused V1", "withheld"] == "it builds no lookup"
    assert found.of("fused V1") is None
    assert "1 withheld" in repr(found)


def test_where_nothing_may_run_ahead_only_stages_are_withheld():
    plain = KnownGraph(boundary=uncut(boundary(MODEL).view), problem="no input was found")
    found = what_if(traced(), Scenario(), {GraphKey(): plain}, [ON_SMART, ON_INLINE])
    assert {each.label for each in found.predicted} == {"inline executor", "off"}
    assert [each.reason for each in found.withheld] == ["no input was found"]


def test_a_trace_whose_steps_cannot_be_simulated_predicts_nothing():
    # between two ops a thread rests, and nothing says what for
    found = predicted(ON_STAGE, trace=with_rests(traced(), 2.0))
    assert found.predicted == () and found.best is None
    assert {each.label for each in found.withheld} == {"off", "stage"}
    assert found.withheld[0].reason.startswith("the traced steps take 41.2 ms, simulated 21.")
    assert found.replay is not None and found.replay.error == pytest.approx(-0.48, abs=0.01)


def overlapping(more_ms: float = 4.0) -> Trace:
    """The parsing seems to last for so much longer, while the ids are hashed already."""
    trace = traced()
    events = trace.events.copy()
    names = trace.nodes["name"].to_numpy()[events["node"]]
    events.loc[names == "parse", "dur_ns"] += round(more_ms * 1e6)
    rows = {name: row for row, name in enumerate(trace.nodes["name"])}
    chain = [name for name, _, _ in STEP]
    edges = [(rows[a], rows[b], 0) for a, b in itertools.pairwise(chain)]
    return dataclasses.replace(trace, events=events, edges=make_trace(edges=edges).edges)


def test_where_the_replay_does_not_hold_the_ops_are_named_and_what_leaves_them_is_predicted():
    found = predicted(ON_STAGE, ON_INLINE, trace=overlapping())
    assert found.replay is not None and not found.replay.holds
    (doubt,) = found.replay.doubts
    assert (doubt.node, doubt.op, doubt.ns) == ("parse", "DecodeCSV", pytest.approx(4e6))
    (staged,) = found.withheld
    assert staged.label == "stage"
    assert "parse (DecodeCSV), 4 ms a step, ran on after what reads it had begun" in staged.reason
    inline = found.of("inline executor")
    sure = predicted(ON_INLINE).of("inline executor")
    assert inline is not None and sure is not None
    # Wider by as much as the replay is off: 24.6 against 20.6 ms.
    half, usual = ((each.high_ms / each.step_ms - 1) for each in (inline, sure))
    assert half - usual == pytest.approx(4 / 20.6, rel=0.02)


def test_where_no_op_is_in_doubt_every_interval_is_wider():
    slower = timed_trace(
        [(name, op, 1.2 * ms) for name, op, ms in STEP],
        untraced=UntracedSteps(steps=60, step_ns=20_600_000, cpu_ns=10_600_000),
    )
    events = slower.events.copy()
    events["dur_ns"] = (events["dur_ns"] / 1.2).astype(int)
    found = predicted(ON_STAGE, trace=dataclasses.replace(slower, events=events))
    stage = found.of("stage")
    assert found.replay is not None and found.replay.doubts == ()
    assert found.replay.error == pytest.approx(1 / 1.2 - 1, abs=0.01)
    assert stage is not None and stage.high_ms / stage.step_ms - 1 > 1 - 1 / 1.2


def test_an_op_that_varies_from_step_to_step_is_in_doubt_and_so_is_one_without_a_place():
    steps = [[*STEP, ("odd", "Print", 9.0 if number < 4 else 1.0)] for number in range(12)]
    known = boundary(MODEL).view
    (odd,) = doubts_of(timed_trace(steps), known, set())
    assert (odd.node, odd.why) == ("odd", UNEVEN)
    even = [*STEP, ("odd", "Print", 1.0)]
    (odd,) = doubts_of(timed_trace(even), known, set())
    assert (odd.node, odd.why, odd.ns) == ("odd", NO_PLACE, pytest.approx(1e6))
    assert doubts_of(timed_trace(even), known, {"odd"}) == ()
    assert doubts_of(make_trace(), known, set()) == ()


def test_a_trace_without_untraced_steps_predicts_nothing():
    found = predicted(ON_STAGE, trace=timed_trace(STEP))
    assert found.replay is None
    assert "how long an untraced step takes" in found.withheld[0].reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cores": 0}, "cores is 0; expected an integer of at least 1"),
        ({"inter_op_threads": 1.5}, "inter_op_threads is 1.5"),
        ({"batch_ratio": 0.0}, "batch_ratio is 0.0; expected a number above 0"),
        ({"batch_ratio": float("nan")}, "batch_ratio is nan"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, float], message: str):
    with pytest.raises(OptionError, match=message):
        Scenario(**wrong)  # type: ignore[arg-type]


def test_the_graph_of_a_trace_is_what_ran():
    trace = dataclasses.replace(traced())
    with pytest.raises(TraceError, match="does not know which op feeds which"):
        traced_graph(trace)
    edges = trace.edges.reindex(range(2)).assign(source=[0, 1], target=[1, 2], control=[0, 1])
    found = traced_graph(dataclasses.replace(trace, edges=edges.astype("int64")))
    assert found.view.names == ("next", "parse", "hash", "dense", "train")
    assert found.view.data.tolist() == [[0, 0, 1, 0]]
    assert found.view.control.tolist() == [[1, 2]]
    assert found.sides == ()


def test_the_graph_of_a_staged_trace_is_not_what_ran():
    edges = traced().edges.reindex(range(1)).assign(source=0, target=1, control=0).astype("int64")
    staged = timed_trace(STEP[2:], {"input": STEP[:2]})
    with pytest.raises(TraceError, match="the trace has a stage"):
        traced_graph(dataclasses.replace(staged, edges=edges))


def test_one_setting_after_the_other_gives_what_all_at_once_do():
    graphs = {
        GraphKey(): KnownGraph(boundary=boundary(MODEL)),
        GraphKey(staged=True): KnownGraph(boundary=boundary(STAGED)),
    }
    two = Scenario(optimizations=Optimizations(stage=StageOptions(num_threads=2, capacity=2)))
    settings = [ON_STAGE, two, ON_SMART, ON_COST_MODEL, dataclasses.replace(ON_STAGE, cores=4)]
    made = predictor(traced(), Scenario(), graphs)
    for setting in [*settings, *reversed(settings)]:
        fresh = what_if(traced(), Scenario(), graphs, [setting])
        assert made.answer(setting) in fresh.predicted
    assert made.answer(two) is made.answer(two)
    assert made.answer(ON_FUSED).reason == "the program's graph for it is not known"


def test_of_steps_on_a_gpu_everything_is_withheld():
    nodes = traced().nodes.copy()
    nodes["device"] = "/job:localhost/replica:0/task:0/device:GPU:0"
    trace = dataclasses.replace(traced(), nodes=nodes)
    graphs = {GraphKey(): KnownGraph(boundary=boundary(MODEL))}
    found = what_if(trace, Scenario(), graphs, [ON_COST_MODEL])
    (reason,) = {each.reason for each in found.withheld}
    assert reason.startswith("steps of the trace ran ops on a GPU, and a trace has the times in")
    assert not found.predicted


def test_of_a_trace_of_a_cluster_everything_is_withheld():
    meta = dataclasses.replace(traced().meta, task="worker 0")
    trace = dataclasses.replace(traced(), meta=meta)
    graphs = {GraphKey(): KnownGraph(boundary=boundary(MODEL))}
    found = what_if(trace, Scenario(), graphs, [ON_COST_MODEL])
    assert {each.reason for each in found.withheld} == {
        "the trace is of a cluster, and what is simulated are the steps of one machine; measure "
        "settings there with workbench cluster"
    }
    assert not found.predicted


def test_stale_lookups_are_withheld():
    stale = Scenario(optimizations=Optimizations(smart_stage=SmartStageOptions(stale_lookups=1)))
    (refused,) = predicted(stale).withheld
    assert refused.label == "smart stage, 1 step stale"
    assert refused.reason == (
        "what stale lookups give is not predicted; measure them beside the exact ones with compare"
    )
