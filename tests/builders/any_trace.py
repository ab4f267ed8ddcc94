"""Hypothesis's strategy for traces that keep the rules."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.builders.traces import make_trace

TRACKS = (
    ("Main step", "step", 0, ""),
    ("Prefetch 0", "prefetch", 0, "input"),
    ("Inter-op 0", "inter_op", 0, ""),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(0, 2**40)


@st.composite
def traces(draw):
    nodes = draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=4))
    node = st.integers(0, len(nodes) - 1)
    event = st.tuples(NUMBERS, NUMBERS, NUMBERS, node, st.integers(0, 2), st.integers(0, 2**33))
    stages = draw(st.lists(NAMES, max_size=3))
    items = []
    for number, stage in enumerate(stages):
        a, b, c, d = sorted(draw(st.tuples(*[NUMBERS] * 4)))
        missing = draw(st.booleans())
        taken = (-1, -1, 1, 1, -1, -1) if missing else (c, d, 1, 1, 1, 0)
        items.append((stage, number, a, b, *taken))
    return make_trace(
        draw(st.lists(event, max_size=12)),
        nodes=nodes,
        edges=draw(st.lists(st.tuples(node, node, st.integers(0, 1)), max_size=6)),
        tracks=TRACKS,
        runs=[(0, 1, 3, 9), (1, 1, 0, 5)],
        items=items,
        title=draw(NAMES),
        capacity={"input": 2},
    )
