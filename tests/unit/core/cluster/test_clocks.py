"""Clocks aligned from messages: the truth is within the error, whatever the messages' delays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.core.cluster.clocks import Messages, clock_offset, require_order
from workbench.errors import TraceError

MS = 1_000_000
TIMES = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10 * MS)), min_size=1)


def messages(pairs: list[tuple[int, int]], sender_ns: int, receiver_ns: int) -> Messages:
    """Messages of (moment of sending, delay) between two clocks that are ahead by so much."""
    moment, delay = np.array(pairs, np.int64).reshape(-1, 2).T
    return Messages(sent_ns=moment + sender_ns, received_ns=moment + delay + receiver_ns)


@given(TIMES, TIMES, st.integers(-(10**11), 10**11))
def test_the_truth_is_within_the_error(there, back, ahead):
    found = clock_offset(messages(there, ahead, 0), messages(back, 0, ahead), task="ps 0")
    assert abs(found.offset_ns - ahead) <= found.error_ns
    # Half a nanosecond more than half of the two shortest delays at most.
    shortest = min(delay for _, delay in there) + min(delay for _, delay in back)
    assert 2 * found.error_ns <= shortest + 1
    assert found.pairs == len(there) + len(back)


@given(TIMES, TIMES, st.integers(-(10**11), 10**11))
def test_no_message_comes_before_it_was_sent_and_the_order_is_never_a_guess(there, back, ahead):
    from_other, to_other = messages(there, ahead, 0), messages(back, 0, ahead)
    found = clock_offset(from_other, to_other, task="ps 0")
    offset = found.offset_ns
    gaps = np.concatenate(
        (
            from_other.received_ns - (from_other.sent_ns - offset),
            to_other.received_ns - offset - to_other.sent_ns,
        )
    )
    assert gaps.min() >= 0
    require_order(gaps, found.error_ns, task="ps 0")


@pytest.mark.parametrize(
    ("there", "back", "does"), [([], [(0, 1)], "sent"), ([(0, 1)], [], "received")]
)
def test_a_task_that_only_sends_or_receives_has_no_clock(there, back, does):
    with pytest.raises(TraceError, match=f"clock of ps 0 cannot be aligned: .* it {does} nothing"):
        clock_offset(messages(there, 0, 0), messages(back, 0, 0), task="ps 0")


def test_a_clock_that_moved_is_refused():
    there = Messages(sent_ns=np.array([60 * MS]), received_ns=np.array([10 * MS]))
    back = Messages(sent_ns=np.array([20 * MS]), received_ns=np.array([30 * MS]))
    with pytest.raises(
        TraceError, match=r"clock of ps 1 moved by 40\.0\sms or more .* fewer steps"
    ):
        clock_offset(there, back, task="ps 1")


def test_an_error_above_the_shortest_gap_is_refused():
    require_order(np.array([2 * MS, 9 * MS]), 2 * MS, task="ps 0")
    with pytest.raises(TraceError, match=r"±3\.0.ms, .* is 2\.0.ms: their order would be a guess"):
        require_order(np.array([2 * MS, 9 * MS]), 3 * MS, task="ps 0")
