"""The native tracer's events, drained from a fake of its C functions, and whose run each was of."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import _native
from workbench.core.capture.op_events import OpEvents, Recording, StepEvents, op_columns

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
NODES = [("_SOURCE", "NoOp"), ("a", "Add"), ("b", "MatMul")]


class FakeTracer:
    """The C functions, over lists that the test fills.

    Attributes:
      ops: (scheduled_ns, start_ns, end_ns, step, node, thread) of each op.
      steps: (start_ns, end_ns, step, executor, tid, root) of each step.
      edges: (source, target, 1 for a control edge) of each edge.
      meanwhile: how many ops other threads add, before all others, once it was asked how many there
        are.
    """

    def __init__(self) -> None:
        self.on = False
        self.lost = 0
        self.ops: list[tuple[int, ...]] = []
        self.steps: list[tuple[int, ...]] = []
        self.nodes = NODES
        self.edges: list[tuple[int, int, int]] = []
        self.threads = [(700, "pool"), (701, "")]
        self.shuffled = False
        self.meanwhile = 0

    def workbench_trace_ops(self, on: int) -> None:
        self.on = bool(on)

    def workbench_traced_ops(self) -> int:
        return len(self.ops)

    def workbench_traced_steps(self) -> int:
        return len(self.steps)

    def workbench_lost_ops(self) -> int:
        return self.lost

    def workbench_take_ops(self, most: int, *places) -> int:
        self.ops[:0] = [(1, 1, 2, 99, 1, 0)] * self.meanwhile
        self.meanwhile = 0
        # Ops of no outputs, unless a row says otherwise.
        self.ops[:] = [op if len(op) == 8 else (*op[:4], 0, 0, *op[4:]) for op in self.ops]
        return self._take(self.ops, most, places)

    def workbench_take_steps(self, most: int, *places) -> int:
        return self._take(self.steps, most, places)

    def _take(self, rows: list[tuple[int, ...]], most: int, places) -> int:
        moved, rows[:] = rows[:most], rows[most:]
        for place, column in zip(places, zip(*moved, strict=True), strict=bool(moved)):
            np.ctypeslib.as_array(place, (len(moved),))[:] = column
        return len(moved)

    def text(self, call: str) -> str:
        if call == "workbench_traced_nodes":
            header, rows = "node\top_name\top\tdevice", [(*node, CPU) for node in self.nodes]
        elif call == "workbench_traced_edges":
            return "".join("\t".join(map(str, edge)) + "\n" for edge in self.edges)
        else:
            assert call == "workbench_traced_threads"
            header, rows = "thread\ttid\tname", self.threads
        lines = ["\t".join(map(str, (i, *row))) for i, row in enumerate(rows)]
        return "\n".join([header, *(reversed(lines) if self.shuffled else lines)]) + "\n"


@pytest.fixture
def tracer(monkeypatch):
    fake = FakeTracer()
    monkeypatch.setattr(_native, "calls", lambda: fake)
    monkeypatch.setattr(_native, "taken_text", fake.text)
    yield fake
    gc.collect()  # a recording that is forgotten calls the tracer


def runs_of(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 3)


def test_a_recording_drains_what_happened_while_it_was_on(tracer):
    tracer.ops = [(1, 2, 3, 90, 1, 0)]  # before it
    recording = Recording()
    assert tracer.on and tracer.ops == []
    tracer.ops += [(10, 12, 15, 100, 1, 1), (11, 11, 30, 100, 2, 0)]
    tracer.steps += [(9, 31, 100, 4, 55, 1), (12, 14, 100, 5, 700, 0)]
    events = recording.stop()
    assert not tracer.on
    assert events.scheduled_ns.tolist() == [10, 11]
    assert events.start_ns.tolist() == [12, 11]
    assert events.end_ns.tolist() == [15, 30]
    assert events.step.tolist() == [100, 100]
    assert events.node.tolist() == [1, 2]
    assert events.thread.tolist() == [1, 0]
    assert events.steps.start_ns.tolist() == [9, 12]
    assert events.steps.end_ns.tolist() == [31, 14]
    assert events.steps.tid.tolist() == [55, 700]
    assert events.steps.root.tolist() == [True, False]
    assert events.nodes["name"].tolist() == ["_SOURCE", "a", "b"]
    assert events.nodes["op"].tolist() == ["NoOp", "Add", "MatMul"]
    assert set(events.nodes["device"]) == {CPU}
    assert events.threads["tid"].tolist() == [700, 701]
    assert events.threads["name"].tolist() == ["pool", ""]
    assert events.lost == 0


def test_the_tables_count_by_their_numbers_and_take_any_name(tracer):
    tracer.nodes = [
        ('quoted"', "A"),
        ("#b", "B"),
        ("nan", "C"),
        *[(f"n{i}", "D") for i in range(9)],
    ]
    tracer.shuffled = True
    nodes = Recording().stop().nodes
    assert nodes["name"].tolist() == ['quoted"', "#b", "nan", *[f"n{i}" for i in range(9)]]
    assert nodes["op"].tolist()[:3] == ["A", "B", "C"]


def test_nothing_happened(tracer):
    ops = op_columns(Recording().stop(), runs_of((55, 0, 10)))
    assert len(ops.run) == 0 and ops.run_of_step == {}


def test_recordings_that_overlap_both_see_what_happened_meanwhile(tracer):
    first = Recording()
    tracer.ops.append((1, 1, 2, 10, 1, 0))
    second = Recording()
    tracer.ops.append((3, 3, 4, 11, 1, 0))
    assert first.stop().step.tolist() == [10, 11]
    assert tracer.on
    tracer.ops.append((5, 5, 6, 12, 1, 0))
    # The second has what came before it as well: whose run that was, is not for it to say.
    assert second.stop().step.tolist() == [10, 11, 12]
    assert not tracer.on


@pytest.mark.parametrize("meanwhile", [1, 5, 30_000])
def test_what_happened_is_taken_whatever_other_threads_add_meanwhile(tracer, meanwhile):
    recording, other = Recording(), Recording()
    tracer.ops += [(3, 3, 4, 10, 1, 0), (4, 4, 5, 11, 1, 0)]
    tracer.meanwhile = meanwhile
    assert recording.stop().step.tolist() == [*[99] * meanwhile, 10, 11]
    other.stop()


def test_an_executor_that_is_made_while_the_tables_are_read_leaves_them_whole(tracer, monkeypatch):
    def made_meanwhile(call: str) -> str:
        said = tracer.text(call)
        tracer.nodes = [*tracer.nodes, ("late", "Add")]
        tracer.edges.append((1, len(tracer.nodes) - 1, 0))
        return said

    recording = Recording()
    tracer.edges = [(1, 2, 0)]
    tracer.ops.append((3, 3, 4, 10, 1, 0))
    tracer.steps.append((2, 5, 10, 4, 55, 1))
    monkeypatch.setattr(_native, "taken_text", made_meanwhile)
    columns = op_columns(recording.stop(), runs_of((55, 0, 10)))
    assert columns.edges[:, :2].tolist() == [[0, 1]] and len(columns.run) == 1


def test_abandoned_and_forgotten_recordings_switch_the_tracer_off(tracer):
    recording, other = Recording(), Recording()
    recording.abandon()
    assert tracer.on
    other.abandon()
    assert not tracer.on
    forgotten = Recording()
    assert tracer.on
    del forgotten
    gc.collect()
    assert not tracer.on


def test_lost_events_are_counted_for_every_recording(tracer):
    first, second = Recording(), Recording()
    tracer.lost = 7
    assert first.stop().lost == 7
    tracer.lost = 9
    assert second.stop().lost == 9


def test_recordings_come_and_go_in_many_threads(tracer):
    def work() -> None:
        for _ in range(50):
            Recording().stop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not tracer.on


def events_of(ops, steps, nodes=NODES, threads=((700, "pool"),), edges=()) -> OpEvents:
    """Of rows as the C functions have them."""
    columns = np.array(ops, np.int64).reshape(-1, 6).T
    start_ns, end_ns, step, _, tid, root = np.array(steps, np.int64).reshape(-1, 6).T
    names = ("scheduled_ns", "start_ns", "end_ns", "step", "node", "thread")
    no_bytes = np.zeros(len(ops), np.int64)
    return OpEvents(
        **dict(zip(names, columns, strict=True)),
        made_bytes=no_bytes,
        passed_bytes=no_bytes,
        steps=StepEvents(start_ns=start_ns, end_ns=end_ns, step=step, tid=tid, root=root > 0),
        nodes=pd.DataFrame([(*node, CPU) for node in nodes], columns=["name", "op", "device"]),
        edges=np.array(edges, np.int64).reshape(-1, 3),
        threads=pd.DataFrame(threads, columns=["tid", "name"]),
        lost=0,
    )


def test_ops_belong_to_the_run_on_whose_thread_their_step_began():
    events = events_of(
        [
            (20, 21, 22, 100, 1, 0),  # thread 55, first run
            (31, 33, 34, 101, 2, 0),  # thread 56, meanwhile
            (61, 61, 62, 102, 1, 0),  # thread 55, second run
        ],
        [(20, 25, 100, 1, 55, 1), (30, 35, 101, 2, 56, 1), (60, 65, 102, 1, 55, 1)],
    )
    ops = op_columns(events, runs_of((55, 50, 70), (55, 10, 40), (56, 10, 40)))
    assert ops.run.tolist() == [1, 2, 0]
    assert ops.run_of_step == {100: 1, 101: 2, 102: 0}
    assert ops.nodes["name"][ops.node].tolist() == ["a", "b", "a"]
    assert ops.thread.tolist() == [700, 700, 700]
    assert (ops.start_ns - ops.scheduled_ns).tolist() == [1, 2, 0]
    assert ops.thread_names == {700: "pool"}


def test_edges_join_distinct_nodes_each_once():
    """Two executors of one graph have equal nodes; bookkeeping is left out."""
    nodes = [*NODES, *NODES]
    edges = [(0, 1, 1), (1, 2, 0), (1, 2, 0), (1, 2, 1), (4, 5, 0)]
    events = events_of(
        [(20, 21, 22, 100, 1, 0)], [(20, 25, 100, 1, 55, 1)], nodes=nodes, edges=edges
    )
    ops = op_columns(events, runs_of((55, 10, 40)))
    assert ops.nodes["name"].tolist() == ["a", "b"]
    assert ops.edges.tolist() == [[0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize(
    ("what", "step"),
    [
        ("of another thread", (20, 25, 100, 1, 57, 1)),
        ("before every run", (9, 25, 100, 1, 55, 1)),
        ("between two runs", (45, 46, 100, 1, 55, 1)),
        ("after every run", (71, 72, 100, 1, 55, 1)),
        ("a function's, whose caller's step nobody saw", (20, 25, 100, 1, 55, 0)),
    ],
)
def test_steps_that_nobody_recorded_are_left_out_whole(what, step):
    events = events_of([(20, 21, 22, 100, 1, 0)], [step])
    ops = op_columns(events, runs_of((55, 10, 40), (55, 50, 70)))
    assert len(ops.run) == 0, what


def test_ops_without_a_step_are_left_out():
    # The step was under way when the recording ended.
    events = events_of(
        [(20, 21, 22, 100, 1, 0), (20, 21, 22, 99, 1, 0), (20, 21, 22, 101, 1, 0)],
        [(20, 25, 100, 1, 55, 1)],
    )
    assert op_columns(events, runs_of((55, 10, 40))).run.tolist() == [0]


def test_functions_and_other_devices_of_a_run_belong_to_it():
    events = events_of(
        [(21, 21, 22, 100, 1, 0), (23, 23, 24, 100, 2, 0)],
        [
            (22, 26, 100, 9, 700, 0),  # a function, called on a thread of the pool
            (21, 25, 100, 2, 55, 1),  # the second device's executor, begun a little later
            (20, 27, 100, 1, 55, 1),
        ],
    )
    ops = op_columns(events, runs_of((55, 10, 40)))
    assert ops.run.tolist() == [0, 0]
    assert ops.run_of_step == {100: 0}


def test_nodes_of_several_executors_are_joined_and_bookkeeping_is_no_op():
    nodes = [("_SOURCE", "NoOp"), ("a", "Add"), ("_SINK", "NoOp"), ("b", "Mul"), ("a", "Add")]
    events = events_of(
        [(20, 20, 21, 100, node, 0) for node in range(5)], [(20, 25, 100, 1, 55, 1)], nodes
    )
    ops = op_columns(events, runs_of((55, 10, 40)))
    assert ops.nodes["name"].tolist() == ["a", "b"]
    assert ops.node.tolist() == [0, 1, 0]


def test_no_op_ends_before_it_starts_or_starts_before_it_is_ready():
    events = events_of([(25, 22, 20, 100, 1, 0)], [(20, 25, 100, 1, 55, 1)])
    ops = op_columns(events, runs_of((55, 10, 40)))
    assert (ops.scheduled_ns[0], ops.start_ns[0], ops.end_ns[0]) == (22, 22, 22)


@st.composite
def recorded(draw):
    """Runs that lie apart on each of three threads, and steps anywhere."""
    runs = []
    for thread in range(draw(st.integers(0, 3))):
        edges = sorted(draw(st.lists(st.integers(0, 60), unique=True, max_size=12)))
        runs += [(thread, a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    step = st.tuples(st.integers(0, 60), st.integers(0, 3), st.integers(0, 1))
    steps = [
        (start, start + 1, 1000 + i, 0, tid, root)
        for i, (start, tid, root) in enumerate(draw(st.lists(step, max_size=20)))
    ]
    return draw(st.permutations(runs)), draw(st.permutations(steps))


@settings(deadline=None)
@given(recorded())
def test_matching_is_what_looking_at_every_run_finds(case):
    runs, steps = case
    ops = [(5, 5, 6, step[2], 1, 0) for step in steps]
    found = op_columns(events_of(ops, steps), runs_of(*runs)).run_of_step
    expected = {
        step[2]: number
        for step in steps
        for number, (thread, start, end) in enumerate(runs)
        if step[5] and step[4] == thread and start <= step[0] <= end
    }
    assert found == expected
