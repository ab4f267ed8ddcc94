"""Each moment of a lane is an op or has a name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.traces import make_trace, staged_trace, unstaged_trace
from workbench.core.analysis.lane_time import GAP_NAMES, lane_table, lane_times

STEP, POOL, PREFETCH, OTHER = range(4)
TRACKS = (
    ("Main step", "step", 0, ""),
    ("Inter-op 0", "inter_op", 0, ""),
    ("Prefetch 0", "prefetch", 0, "in"),
    ("Inter-op 1", "inter_op", 1, ""),
)
US = 1_000


def gaps_of(trace, lane: str) -> list[tuple[str, int, int]]:
    """(name, start, end) of the gaps of a lane, by start, in µs."""
    for each in lane_times(trace):
        if trace.tracks["name"].iloc[each.track] == lane:
            return sorted(
                (
                    (name, start // US, end // US)
                    for name in GAP_NAMES
                    for start, end in zip(*(edge.tolist() for edge in each.gaps[name]), strict=True)
                ),
                key=lambda gap: gap[1],
            )
    raise AssertionError(lane)


def test_the_gaps_of_a_threads_lane():
    trace = make_trace(
        [
            (150 * US, 10 * US, 0, 0, POOL, 1),
            (180 * US, 20 * US, 12 * US, 1, POOL, 1),
            (185 * US, 5 * US, 3 * US, 0, OTHER, 1),
            (320 * US, 10 * US, 0, 1, POOL, 2),
        ],
        nodes=(("a", "Add"), ("b", "Add")),
        tracks=TRACKS,
        runs=[(STEP, 1, 90 * US, 210 * US), (STEP, 2, 240 * US, 340 * US)],
        items=[
            ("in", 0, 0, 50 * US, 100 * US, 140 * US, -1, -1, 1, STEP),
            ("in", 1, 0, 60 * US, 250 * US, 250 * US + 1, -1, -1, 2, STEP),
        ],
        cores=2,
    )
    assert gaps_of(trace, "Inter-op 0") == [
        ("call of the step", 90, 100),
        ("wait in take", 100, 140),
        ("no ready node", 140, 150),
        ("no ready node", 160, 168),
        ("dispatch", 168, 180),
        ("return of the step", 200, 210),
        ("between steps", 210, 240),
        ("call of the step", 240, 250),
        ("no ready node", 250, 320),
        ("return of the step", 330, 340),
    ]
    one_core = make_trace(
        [(10, 100, 0, 0, POOL, 1), (60, 60, 40, 0, OTHER, 1)],
        nodes=(("a", "Add"),),
        tracks=TRACKS,
        runs=[(STEP, 1, 10, 120)],
        cores=1,
    )
    table = lane_table(one_core).set_index("lane")
    assert table.loc["Inter-op 1", ["no ready node", "core contention", "busy_ns"]].tolist() == [
        10,
        40,
        60,
    ]


def test_the_gaps_of_a_prefetch_lane():
    trace = make_trace(
        [(20 * US, 10 * US, 2 * US, 0, PREFETCH, 1), (200 * US, 10 * US, 0, 0, PREFETCH, 2)],
        nodes=(("a", "Add"),),
        tracks=TRACKS,
        runs=[(PREFETCH, 1, 10 * US, 150 * US), (PREFETCH, 2, 190 * US, 220 * US)],
        items=[("in", 0, 40 * US, 140 * US, -1, -1, PREFETCH, 1, -1, -1)],
    )
    assert gaps_of(trace, "Prefetch 0") == [
        ("no ready node", 10, 18),
        ("dispatch", 18, 20),
        ("no ready node", 30, 40),
        ("wait in put", 40, 140),
        ("no ready node", 140, 150),
        ("between stage runs", 150, 190),
        ("no ready node", 190, 200),
        ("no ready node", 210, 220),
    ]


def test_a_trace_of_nothing_has_no_time():
    table = lane_table(make_trace())
    assert table["wall_ns"].tolist() == [0, 0]


TIMES = st.integers(0, 400_000)


@st.composite
def any_trace(draw):
    def stretch():
        return sorted(draw(st.tuples(TIMES, TIMES)))

    events = []
    for _ in range(draw(st.integers(0, 12))):
        start, end = stretch()
        track = draw(st.sampled_from([POOL, PREFETCH, OTHER]))
        events.append(
            (start, end - start, draw(st.integers(0, start)), 0, track, draw(st.integers(1, 3)))
        )
    runs = [(track, number, *stretch()) for track in (STEP, PREFETCH) for number in (1, 2, 3)]
    items = []
    for number in range(draw(st.integers(0, 4))):
        put, taken = stretch(), stretch()
        items.append(("in", number, *put, *taken, PREFETCH, number + 1, number + 1, STEP))
    cores = draw(st.sampled_from([None, 1, 2]))
    more = {} if cores is None else {"cores": cores}
    return make_trace(events, nodes=(("a", "Add"),), tracks=TRACKS, runs=runs, items=items, **more)


@given(any_trace())
def test_ops_and_named_gaps_are_the_whole_time_of_every_lane(trace):
    begun = [*trace.events["start_ns"], *trace.runs["start_ns"]]
    ended = [*(trace.events["start_ns"] + trace.events["dur_ns"]), *trace.runs["end_ns"]]
    assert set(lane_table(trace)["wall_ns"]) == {max(ended) - min(begun)}


def test_every_lane_of_a_usual_trace_is_explained():
    for trace in (unstaged_trace(), staged_trace()):
        table = lane_table(trace)
        assert (table["busy_ns"] > 0).all()
        assert table["wall_ns"].nunique() == 1
