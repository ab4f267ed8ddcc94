"""StagePlan and how it is chosen: words, JSON, refusals, candidates."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tests.builders.graphs import graph
from tests.builders.plans import OWN_STAGE
from workbench.core.boundary.candidates import candidates_of, widest_chained
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.buffer_placement import ComputeDevice
from workbench.core.planning.planner import plan_of, plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.prediction.prediction import Prediction
from workbench.errors import OptionError, PlanError

GPU = ComputeDevice(name="/device:GPU:0")
MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string int64
hash = StringToHashBucketFast(next) int64
scaled = Mul(hash, next:1) int64
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(read, scaled)
"""
SHARED = {"put": "clicks", "take": "clicks"}


def auto(**keywords):
    return boundary_of(graph(MODEL), targets=["loss"], **keywords)


def own(text: str = OWN_STAGE, **options):
    view = graph(text, shared=SHARED, stage=StageOptions(**options))
    return boundary_of(view, targets=["loss"])


def in_words(boundary, label, **options):
    """The plan of the candidate with this label."""
    wishes = SmartStageOptions(**options)
    candidates = candidates_of(boundary, boundary.sides[0], wishes, cores=2)
    (candidate,) = [each for each in candidates if each.label == label]
    return plan_of(boundary, [candidate], wishes)


def test_without_a_trace_the_input_has_a_stage_of_its_own():
    made = plan_stages(auto())
    first, second = made.stages
    assert (first.name, first.moved, first.carried) == ("smart_stage_input", ("next",), ("next",))
    assert first.dtypes == (("string", "int64"),)
    assert second.moved == ("next", "hash", "scaled")
    assert second.moved_ops == ("IteratorGetNext", "StringToHashBucketFast", "Mul")
    assert second.carried == ("next", "scaled")
    assert made.describe() == (
        "new stage for the input: 'next' is read in 'smart_stage_input', so that pre-processing "
        "never waits for the input\n"
        "new stage: widest in two chained stages: everything that may run ahead does\n"
        "stage 'smart_stage_input' (new buffer): 1 nodes run ahead from 'next'; 2 tensors of 1 "
        "nodes travel; threads 1, capacity 1\n"
        "stage 'smart_stage' (new buffer): 3 nodes run ahead from 'next'; 3 tensors of 2 nodes "
        "travel; threads 1, capacity 1\n"
        "no prediction: give a trace to plan(…, trace=…) to have one"
    )


def test_behind_the_users_own_stage_comes_a_second_one():
    made = plan_stages(own(capacity=3), SmartStageOptions(capacity=2))
    (stage,) = made.stages
    assert stage.start == ("take",) and stage.carried == ("take", "scaled")
    assert stage.widens == () and stage.options.capacity == 2
    assert made.edits[0].name == "new stage behind your stage"


def test_a_wide_stage_widens_the_users_own_and_keeps_its_options():
    made = in_words(own(capacity=3, timeout_millis=7), "widest, 1 thread", capacity=2)
    (stage,) = made.stages
    assert stage.own_buffer == "/clicks" and stage.own_name == "prefetch"
    (widened,) = stage.widens
    assert (widened.put, widened.owner) == ("put", "owner:0")
    assert widened.record == ("next:0", "next:1")
    assert stage.options == StageOptions(capacity=3, timeout_millis=7)
    assert made.edits[0].name == "widen your stage"
    assert "widens your stage 'prefetch'" in made.describe()
    assert made.roots == ("loss", "put")


def test_the_ways_worth_a_prediction():
    boundary = own()
    candidates = candidates_of(boundary, boundary.sides[0], SmartStageOptions(), cores=2)
    assert [candidate.label for candidate in candidates] == [
        "un-staged",
        "your stage",
        "2/4 of the widest, 1 thread",
        "2/4 of the widest in two chained stages, 1 thread",
        "widest, 1 thread",
        "widest in two chained stages, 1 thread",
    ]
    several = candidates_of(boundary, boundary.sides[0], SmartStageOptions(reorder=True), cores=2)
    assert "widest, 2 threads" in [candidate.label for candidate in several]
    assert [candidate.removes_own for candidate in candidates] == [True, *[False] * 5]
    own_candidate, wide = candidates[1], candidates[4]
    assert (
        own_candidate.stages[0].is_users
        and not own_candidate.stages[0].moved[boundary.view.number("hash")]
    )
    assert wide.stages[0].moved[boundary.view.number("next")], "the user's put comes along"


def test_every_way_is_a_cut_that_lacks_no_ancestor():
    boundary = own()
    side = boundary.sides[0]
    for candidate in candidates_of(boundary, side, SmartStageOptions(), cores=2):
        for stage in candidate.stages:
            moved = stage.moved & side.legal
            assert (boundary.view.ancestors(moved, within=side.legal) == moved).all()
            made = plan_of(boundary, [candidate], SmartStageOptions())
            assert StagePlan.from_json(made.to_json()) == made


def test_where_nothing_but_the_input_moves_the_input_alone_is_staged():
    boundary = auto(keep=["hash"])
    assert [stage.moved for stage in plan_stages(boundary).stages] == [("next",)]
    made = plan_stages(boundary_of(own().view, targets=["loss"], keep=["hash"]))
    assert made.stages == ()
    assert made.describe().startswith(
        "leave your stage: every node behind 'take' that the compute side needs must stay there"
    )


@pytest.mark.parametrize(
    ("text", "targets", "said"),
    [
        (
            "it = IteratorV2\nnext = IteratorGetNext(it)\ny = Neg(next)",
            [],
            "stage nothing: nothing that depends on 'next' has to stay on the compute side; name "
            "the step's targets, or mark them with mark_target_node",
        ),
        (
            "it = IteratorV2\nnext = IteratorGetNext(it)\ny = Neg(next, ^next)\nz = NoOp(^y)",
            ["z"],
            "stage nothing: no node on the compute side needs 'next'",
        ),
        (
            "q = FIFOQueueV2\nnext = QueueDequeueV2(q)\nfill = QueueEnqueueV2(q, next)",
            ["fill"],
            "stage nothing: 'next' reads 'q', which 'fill' (QueueEnqueueV2) touches in the step",
        ),
        (
            "handle = Placeholder string\nit = IteratorFromStringHandleV2(handle)\n"
            "next = IteratorGetNext(it)\ny = Neg(next)",
            ["y"],
            "stage nothing: 'next' reads the iterator whose handle 'handle' each run feeds, so "
            "that no run can read ahead for another one; stage its batch with wb.staged(…, "
            "feed_dict={handle: …}), or read one iterator",
        ),
        (
            "size = Placeholder int64\nit = MakeIteratorOf(size)\nnext = IteratorGetNext(it)\n"
            "y = Neg(next)",
            ["y"],
            "stage nothing: 'next' stays: 'size' is fed (Placeholder); the way there: next ← it ← "
            "size. To free it: read 'size' from the input pipeline instead of feeding it",
        ),
    ],
)
def test_what_cannot_be_staged_is_said_in_the_plan(text, targets, said):
    made = plan_stages(boundary_of(graph(text), targets=targets))
    assert made.stages == () and made.describe().startswith(said)


def test_explain_tells_what_a_node_does():
    made = plan_stages(auto())
    assert made.explain("hash") == "'hash' runs ahead in stage 'smart_stage'."
    assert made.explain("scaled:0").endswith("; its outputs travel.")
    assert "'w' is a variable" in made.explain("loss")
    with pytest.raises(PlanError, match="no node 'nix'"):
        made.explain("nix")
    with pytest.raises(PlanError, match="read from JSON holds no graph to explain"):
        StagePlan.from_json(made.to_json()).explain("loss")


def test_what_is_no_plan_is_said():
    good = json.loads(plan_stages(auto()).to_json())
    for text, said in (
        ("{", "this is no JSON"),
        ("[]", "format version None; this workbench reads 2"),
        (json.dumps({**good, "format_version": 9}), "format version 9"),
        (
            json.dumps({k: v for k, v in good.items() if k != "stages"}),
            "damaged: the plan has no stages",
        ),
    ):
        with pytest.raises(PlanError, match=said):
            StagePlan.from_json(text)
    good["stages"][0]["options"]["nix"] = 1
    with pytest.raises(PlanError, match=r"the plan.stages\[0\].options has an unknown 'nix'"):
        StagePlan.from_json(json.dumps(good))
    del good["stages"][0]["options"]["nix"]
    good["stages"][0]["options"]["capacity"] = 0
    with pytest.raises(PlanError, match="damaged: .*StageOptions.capacity is 0"):
        StagePlan.from_json(json.dumps(good))


def test_a_plan_fits_its_own_graph_only():
    made = plan_stages(auto())
    made.require_graph(made.fingerprint)
    with pytest.raises(PlanError, match="made for another graph: its fingerprint is .* is 00"):
        made.require_graph("00")
    longer = plan_stages(boundary_of(graph(MODEL + "saver = NoOp(^loss)"), targets=["loss"]))
    assert longer.fingerprint == made.fingerprint
    other = plan_stages(boundary_of(graph(MODEL.replace("Mul(hash", "Add(hash")), targets=["loss"]))
    assert other.fingerprint != made.fingerprint


def test_predictions_are_part_of_the_description():
    made = dataclasses.replace(
        plan_stages(auto()),
        predictions=(
            Prediction(label="un-staged", step_ms=4.0, bound_ms=4.0, limited_by="the step"),
            Prediction(
                label="widest", step_ms=2.5, bound_ms=2.0, limited_by="the cores", chosen=True
            ),
        ),
    )
    assert made.describe().splitlines()[-2:] == [
        "  un-staged     4.000 ms, limited by the step (4.000 ms)",
        "→ widest        2.500 ms, limited by the cores (2.000 ms)",
    ]


def test_several_producers_need_leave_to_reorder():
    with pytest.raises(OptionError, match="num_threads=2 lets batches overtake.*reorder=True"):
        plan_stages(auto(), SmartStageOptions(num_threads=2))
    made = plan_stages(auto(), SmartStageOptions(num_threads=2, reorder=True))
    assert [stage.options.num_threads for stage in made.stages] == [1, 2]


def test_a_chained_stage_ends_when_the_one_before_it_does():
    made = plan_stages(auto(), SmartStageOptions(closed_exception_types=(3,)))
    assert [stage.options.closed_exception_types for stage in made.stages] == [(3,), (3, 11)]


def test_a_name_that_is_taken_is_avoided():
    boundary = boundary_of(graph(MODEL + "smart_stage/x = Const"), targets=["loss"])
    assert [stage.name for stage in plan_stages(boundary).stages] == [
        "smart_stage_1_input",
        "smart_stage_1",
    ]


def test_the_buffer_is_where_the_input_is():
    view = graph(MODEL, devices={"next": "/job:worker/task:1"})
    made = plan_stages(boundary_of(view, targets=["loss"]))
    assert {stage.buffer_device for stage in made.stages} == {"/job:worker/task:1/device:CPU:0"}
    assert {stage.device for stage in made.stages} == {""}
    view = graph(MODEL, devices={"next": "/gpu:0"})
    made = plan_stages(boundary_of(view, targets=["loss"]))
    assert {stage.buffer_device for stage in made.stages} == {"/device:CPU:0"}


def test_on_cpu_the_step_takes_from_the_device_of_what_reads_the_batch():
    view = graph(MODEL, devices={"next": "/job:w", "loss": "/job:w/CPU:1"})
    made = plan_stages(boundary_of(view, targets=["loss"]), SmartStageOptions(on_cpu=True))
    assert [stage.device for stage in made.stages] == ["/device:CPU:0"] * 2
    assert [stage.buffer_device for stage in made.stages] == [
        "/job:w/device:CPU:0",
        "/job:w/device:CPU:1",
    ]
    assert [stage.host for stage in made.stages] == [(), ()]


def test_on_a_gpu_strings_and_the_raw_batch_stay_in_host_memory_and_come_last():
    made = plan_stages(auto(), SmartStageOptions(on_cpu=True), compute_device=GPU)
    first, second = made.stages
    assert (first.buffer_device, second.buffer_device) == ("/device:CPU:0", "/device:GPU:0")
    assert second.carried == ("scaled", "next") and second.host == ("next",)
    assert StagePlan.from_json(made.to_json()) == made
    assert made.compute_device == GPU


# `far` is read by `there`, `near` by `here`.
MIXED = """
it = IteratorV2
next = IteratorGetNext(it) string int64
near = Neg(next:1) int64
far = Abs(next:1) int64
w = VarHandleOp
read = ReadVariableOp(w)
there = Mul(read, far)
here = Mul(read, near)
loss = AddN(there, here)
"""


@pytest.mark.parametrize(
    ("device", "host"),
    [
        ("", ("next",)),
        ("/gpu:0", ("next",)),
        ("/cpu:0", ("next", "near")),
        ("/job:w/device:CPU:1", ("next", "near")),
    ],
)
def test_on_a_gpu_what_is_read_on_a_cpu_alone_stays_in_host_memory(device, host):
    boundary = boundary_of(graph(MIXED, devices={"here": device}), targets=["loss"])
    made = plan_stages(boundary, SmartStageOptions(on_cpu=True), compute_device=GPU)
    last = made.stages[-1]
    assert last.buffer_device == "/device:GPU:0"
    assert set(last.host) == set(host) and last.carried[-len(host) :] == last.host


def test_an_op_without_a_kernel_for_the_gpu_is_read_on_the_cpu():
    text = MIXED.replace("there = Mul", "there = Fast").replace("here = Mul", "here = SparseThing")
    boundary = boundary_of(graph(text), targets=["loss"])

    def planned(*cpu_ops):
        compute = ComputeDevice(name="/device:GPU:0", cpu_ops=frozenset(cpu_ops))
        made = plan_stages(boundary, SmartStageOptions(on_cpu=True), compute_device=compute)
        return made.stages[-1]

    assert set(planned().host) == {"next"}
    assert set(planned("SparseThing").host) == {"next", "near"}
    # All that reads is on the CPU: nothing is moved.
    on_cpu = planned("SparseThing", "Fast")
    assert (on_cpu.buffer_device, on_cpu.host) == ("/device:CPU:0", ())


def test_with_a_stream_of_its_own_the_staged_side_stays_where_it_is():
    wishes = SmartStageOptions(on_cpu=True, stage_subgraph_stream_id=1)
    first, second = plan_stages(auto(), wishes, compute_device=GPU).stages
    assert (first.device, second.device) == ("", "")
    assert (first.buffer_device, second.buffer_device) == ("/device:CPU:0", "/device:GPU:0")
    assert second.options.stage_subgraph_stream_id == 1


def test_on_cpu_the_users_own_buffer_is_never_widened():
    boundary = own()
    wishes = SmartStageOptions(on_cpu=True)
    candidates = candidates_of(boundary, boundary.sides[0], wishes, cores=2)
    assert [w.label for w in candidates if len(w.stages) == 1] == ["your stage"]


def test_a_cut_never_ends_in_what_cannot_travel():
    text = MODEL.replace("loss = Mul(read, scaled)", "") + (
        "list = TensorListReserve(scaled) variant\nlong = TensorListLength(list) int32\n"
        "abs = Abs(scaled)\nloss = Mul(read, long, abs)"
    )
    boundary = boundary_of(graph(text), targets=["loss"])
    side = boundary.sides[0]
    for candidate in candidates_of(boundary, side, SmartStageOptions(), cores=2):
        for stage in candidate.stages:
            names = [boundary.view.names[n] for n in boundary.carried(side, stage.moved)]
            assert "list" not in names
    assert (
        np.count_nonzero(widest_chained(boundary, side, SmartStageOptions()).stages[1].moved) == 6
    )


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"capacity": 0}, "SmartStageOptions.capacity is 0; expected an integer of at least 1"),
        ({"num_threads": True}, "SmartStageOptions.num_threads is True"),
        ({"keep": "loss"}, "SmartStageOptions.keep is 'loss'; expected a tuple of node names"),
        ({"name": "a b"}, "SmartStageOptions.name is 'a b'; expected letters"),
        ({"timeout_millis": 0}, "timeout_millis is 0"),
    ],
)
def test_wishes_are_checked(wishes, said):
    with pytest.raises(OptionError, match=said):
        SmartStageOptions(**wishes)


def test_plans_and_boundaries_are_short_in_a_list():
    assert (
        repr(plan_stages(auto())) == "StagePlan(smart_stage_input: 1 nodes, smart_stage: 3 nodes)"
    )
    assert repr(auto()) == "Boundary(3 of 7 nodes may run ahead, 1 stay)"
    assert repr(graph(MODEL)) == "GraphView(7 nodes, 7 data edges)"
