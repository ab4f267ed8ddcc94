"""Live bytes over a step by part, solved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.memories import chain_trace, of_ops, staged_trace
from workbench.core.analysis.memory.live_parts import OTHERS, live_parts
from workbench.core.analysis.memory.memory import BUFFER, memory
from workbench.core.graph.op_families import DENSE, FAMILY_NAMES, INPUT
from workbench.errors import OptionError

_INPUT, _DENSE = FAMILY_NAMES[INPUT], FAMILY_NAMES[DENSE]


def at(parts, moment):
    """The parts at a moment: those of the window that it is in."""
    row = parts.loc[: float(moment)].iloc[-1]
    return {name: int(value) for name, value in row.items() if value}


def test_by_family():
    parts = live_parts(memory(chain_trace()))
    assert list(parts.columns) == [_INPUT, _DENSE]
    assert at(parts, 9) == {} and at(parts, 10) == {_INPUT: 100}
    assert at(parts, 40) == {_INPUT: 100, _DENSE: 50}
    assert at(parts, 60) == at(parts, 70) == {_INPUT: 100, _DENSE: 70}
    assert at(parts, 71) == {}


def test_by_scope_the_largest_first():
    parts = live_parts(memory(chain_trace()), "scope", most=1)
    assert list(parts.columns) == ["in", OTHERS]
    assert at(parts, 65) == {"in": 100, OTHERS: 70}


def test_a_buffer_is_a_part_of_its_own_and_the_last():
    parts = live_parts(memory(staged_trace()))
    assert list(parts.columns)[-1] == BUFFER
    # The step begins at 50; its item is taken at 60, and its op runs at 70 to 80.
    assert at(parts, 5) == {BUFFER: 64} and BUFFER not in at(parts, 15)


def test_a_step_of_its_number():
    trace = chain_trace(steps=2)
    assert live_parts(memory(trace), step=2).equals(live_parts(memory(trace), step=1))
    with pytest.raises(OptionError, match="step is 3; expected one from 1 to 2"):
        live_parts(memory(trace), step=3)


def test_another_part_is_refused():
    with pytest.raises(OptionError, match="by is 'op'; expected 'family' or 'scope'"):
        live_parts(memory(chain_trace()), "op")  # type: ignore[arg-type]


_OP = st.tuples(st.integers(0, 8_000), st.integers(1, 900), st.integers(1, 5000))


@given(st.lists(_OP, min_size=1, max_size=12), st.sampled_from(["family", "scope"]))
def test_no_peak_is_lost_and_the_parts_add_up(ops, by):
    kinds = ("MatMul", "ReadFile", "GatherV2")
    rows = [
        (f"s{n % 3}/op{n}", kinds[n % 3], start, start + lasts, size, 0)
        for n, (start, lasts, size) in enumerate(sorted(ops))
    ]
    # An edge from an op to itself: the trace knows edges, and none makes an op live longer.
    found = memory(of_ops(rows, [(rows[0][0], rows[0][0])], until=10_000))
    parts = live_parts(found, by)
    total = parts.sum(axis=1).to_numpy(np.int64)
    assert total.max() == found.peak_bytes and (parts.to_numpy() >= 0).all()
    # What is drawn at a window lives at one moment of it.
    curve = found.curve
    assert set(total.tolist()) <= {0, *(curve["op_bytes"] + curve["buffer_bytes"]).tolist()}
