"""Each moment of a trace's steps is charged once."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.builders.examples import few
from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.step_account import step_account

# a, then c is ready at 10: its thread runs b until 14 and nothing until 16.
DELAYED = (
    ("a", "MatMul", 0, 0, 0, 10),
    ("b", "Mul", 0, 0, 10, 14),
    ("c", "MatMul", 0, 10, 16, 20),
)


def charged(trace) -> dict[tuple[str, str], float]:
    account = step_account(trace)
    names = [account.name[node] if node >= 0 else "" for node in account.node]
    found: dict[tuple[str, str], float] = {}
    for kind, name, ns in zip(account.pieces["kind"], names, account.dur_ns, strict=True):
        found[kind, name] = found.get((kind, name), 0) + int(ns) / account.steps
    return found


def test_a_wait_is_what_the_thread_ran_meanwhile_or_a_handover():
    assert charged(step_trace(DELAYED, chain("a", "c"), step_us=22)) == {
        ("op", "a"): 10 * US,
        ("behind", "b"): 4 * US,
        ("handover", "c"): 2 * US,
        ("op", "c"): 4 * US,
        ("return of the step", ""): 2 * US,
    }


def test_an_op_of_another_thread_delays_nobody():
    ops = (DELAYED[0], ("b", "Mul", 1, 0, 10, 14), DELAYED[2])
    found = charged(step_trace(ops, chain("a", "c"), step_us=22))
    assert ("behind", "b") not in found and found["handover", "c"] == 6 * US


def test_an_op_that_began_before_the_wait_counts_from_there():
    ops = (("a", "MatMul", 1, 0, 0, 10), ("b", "Mul", 0, 0, 4, 14), ("c", "Mul", 0, 10, 14, 20))
    found = charged(step_trace(ops, chain("a", "c"), step_us=20))
    assert found == {("op", "a"): 10 * US, ("behind", "b"): 4 * US, ("op", "c"): 6 * US}


def test_work_is_of_ops_that_keep_a_thread():
    ops = (("get", "IteratorGetNext", 0, 0, 0, 10), ("a", "MatMul", 0, 10, 10, 30))
    account = step_account(step_trace(ops, chain("get", "a"), step_us=30))
    assert account.work_ns == 20 * US
    assert account.threads == 2 and account.least_ns == 10 * US


@pytest.mark.parametrize(("meta", "threads"), [({"inter_op_threads": 3}, 3), ({"cores": 8}, 8)])
def test_threads_are_the_sessions_or_one_for_each_core(meta, threads):
    assert step_account(step_trace(DELAYED, chain("a", "c"), step_us=22, **meta)).threads == threads


def test_time_of_the_stage_is_wait_of_the_step():
    account = step_account(waiting_steps())
    waited = account.per_step(account.waits)
    # In the first step nothing before its begin counts.
    assert waited == 40 * US


@st.composite
def steps_in_order(draw):
    """Ops on two threads, each ready some time before it begins, fed by some that ended."""
    free, ops, edges = [0, 0], [], []
    for number in range(draw(st.integers(1, 8))):
        lane = draw(st.integers(0, 1))
        begin = free[lane] + draw(st.integers(0, 5))
        end = begin + draw(st.integers(1, 9))
        free[lane] = end
        ended = [(name, until) for name, _, _, _, _, until in ops if until <= begin]
        fed = draw(st.lists(st.sampled_from(ended), max_size=2)) if ended else []
        earliest = max((until for _, until in fed), default=0)
        ready = draw(st.integers(earliest, begin))
        ops.append((f"n{number}", draw(st.sampled_from(TYPES)), lane, ready, begin, end))
        edges += [(name, f"n{number}") for name, _ in fed]
    return step_trace(ops, edges or [("n0", "n0")], step_us=max(free) + draw(st.integers(0, 5)))


TYPES = ("MatMul", "IteratorGetNext", "DecodeCSV", "Unique", "ReadVariableOp", "VarHandleOp")


@few(12)
@given(steps_in_order())
def test_what_is_charged_sums_to_the_time_of_the_steps(trace):
    account = step_account(trace)
    assert account.dur_ns.sum() == account.path.end_ns - account.path.begin_ns
    assert (account.dur_ns > 0).all()
    findings = find(trace)
    assert 0 <= findings.not_explained_ns <= findings.wait_ns <= findings.step_ns
    for each in findings:
        assert 0 < each.cost_ns <= findings.step_ns + 1
        assert 0 <= each.wait_share <= 1 + 1e-9
        assert each.gain_ns is None or 0 <= each.gain_ns <= findings.step_ns * account.threads
