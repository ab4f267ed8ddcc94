"""StepMetrics of traces small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.builders.traces import make_trace, staged_trace, unstaged_trace
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.metrics import step_metrics


def item(number, put, take, *, step, run, track=0):
    return ("input", number, *put, *take, 1, run, step, track)


def a_staged_trace(**changes):
    """Times in ns, capacity 2:
    step 1   0 ─ 100, waits in take 10 ─ 30          step 2   100 ─ 200, does not wait
    run 1    0 ─ 30, put 25 ─ 30                     run 2    30 ─ 80, put 60 ─ 80
    run 3    180 ─ 220, put 210 ─ 220
    """
    values = {
        "events": [
            (40, 50, 2, 4, 2, 1),
            (45, 20, 0, 3, 2, 1),  # called by the one before, on the same thread
            (110, 30, 5, 3, 2, 2),
            (0, 24, 0, 0, 1, 1),
            (2, 10, 0, 1, 1, 1),  # beside the one before, on another thread
        ],
        "runs": [(0, 1, 0, 100), (0, 2, 100, 200), (1, 1, 0, 30), (1, 2, 30, 80), (1, 3, 180, 220)],
        "items": [
            item(0, (25, 30), (10, 30), step=1, run=1),
            item(1, (60, 80), (105, 105), step=2, run=2),
            item(2, (210, 220), (-1, -1), step=-1, run=3, track=-1),
        ],
    } | changes
    trace = make_trace(**values)
    trace.self_check()
    return trace


def test_steps_and_waits():
    metrics = step_metrics(a_staged_trace())
    assert metrics.steps == 2
    assert metrics.step_ns_median == 100
    assert metrics.per_step["take_wait_ns"].tolist() == [20, 0]
    assert metrics.per_step["ops"].tolist() == [2, 1]
    assert metrics.take_wait_ns_median == 10
    assert metrics.take_wait_share == 20 / 200
    assert metrics.per_stage_run["put_wait_ns"].tolist() == [5, 20, 10]
    assert metrics.per_stage_run["stage"].tolist() == ["input"] * 3
    assert metrics.put_wait_ns_median == 10
    assert metrics.stage_work_ns_median == 30


def test_the_p95_lies_between_the_two_slowest():
    runs = [(0, n, n * 1000, n * 1000 + n) for n in range(1, 22)]
    assert step_metrics(make_trace(runs=runs)).step_ns_p95 == 20


def test_overlap_is_work_while_a_step_computes():
    # Work: 0–25, 30–60, 180–210, 85 ns. Computing: 0–10, 30–100, 100–200. Both: 10 + 30 + 20.
    assert step_metrics(a_staged_trace()).overlap == 60 / 85


def test_a_client_that_waits_hides_no_other_that_computes():
    trace = a_staged_trace(
        tracks=(
            ("Main step", "step", 0, ""),
            ("Prefetch 0", "prefetch", 0, "input"),
            ("Inter-op 0", "inter_op", 0, ""),
            ("Main step 2", "step", 1, ""),
        ),
        runs=[(0, 1, 0, 100), (3, 2, 0, 100), (1, 1, 0, 30), (1, 2, 30, 80)],
    )
    assert step_metrics(trace).overlap == 1.0


def test_run_ahead_is_what_take_finds():
    # Take 0 finds nothing, take 1 finds item 1.
    assert step_metrics(a_staged_trace()).run_ahead == 0.5
    fuller = a_staged_trace(occupancy_at_start={"input": 1})
    assert step_metrics(fuller).run_ahead == 1.5


def test_two_takes_of_one_step_at_one_time_wait_once():
    items = [
        item(0, (25, 30), (10, 30), step=1, run=1),
        item(1, (60, 80), (20, 80), step=1, run=2),
    ]
    assert step_metrics(a_staged_trace(items=items)).per_step["take_wait_ns"].tolist() == [70, 0]


def test_each_step_of_each_client_waits_for_its_own_takes():
    tracks = (("Main step", "step", 0, ""), ("Main step 2", "step", 1, ""))
    items = [
        ("input", number, -1, -1, start, end, -1, -1, step, track)
        for number, (start, end, step, track) in enumerate(
            [(10, 30, 1, 0), (20, 25, 1, 1), (30, 31, 1, 0), (40, -1, 2, 0), (90, 99, 3, 1)]
        )
    ]
    runs = [(0, 1, 0, 35), (1, 1, 1, 40), (0, 2, 36, 50), (1, 3, 80, 100)]
    per_step = step_metrics(make_trace(tracks=tracks, runs=runs, items=items)).per_step
    assert per_step["take_wait_ns"].tolist() == [21, 5, 0, 9]


def test_self_time_takes_calls_off_but_not_neighbors():
    by_node = step_metrics(a_staged_trace()).by_node
    rows = {r.name: r for r in by_node.itertuples(index=False)}
    assert rows["gradients/dense/MatMul_grad"][1:] == ("MatMul", "step", 1, 50, 30, 50)
    assert rows["dense/MatMul"][1:] == ("MatMul", "step", 2, 50, 50, 30)
    assert rows["input/ReadLines"][1:] == ("ReaderReadV2", "stage", 1, 24, 24, 24)
    assert rows["ids/hash"][4:6] == (10, 10)


def test_without_a_stage_there_is_nothing_to_wait_for():
    metrics = step_metrics(unstaged_trace())
    assert metrics.step_ns_median == 10_000_000
    assert metrics.take_wait_ns_median is None
    assert metrics.take_wait_share is None
    assert metrics.overlap is None
    assert metrics.run_ahead is None
    assert metrics.stage_runs == 0


def test_an_empty_trace_has_no_numbers():
    row = step_metrics(make_trace()).to_pandas().iloc[0]
    assert row["steps"] == 0
    assert row.drop(["steps", "untraced_steps", "stage_runs"]).isna().all()


def test_to_pandas_is_one_row_of_plain_numbers():
    frames = [step_metrics(t).to_pandas() for t in (unstaged_trace(), staged_trace())]
    table = pd.concat(frames, ignore_index=True)
    assert table["steps"].tolist() == [4, 4]
    assert table["overlap"].isna().tolist() == [True, False]


def test_the_staged_builder_is_staged():
    metrics = step_metrics(staged_trace(8))
    assert metrics.overlap == pytest.approx(0.886, abs=0.001)
    assert metrics.per_step["take_wait_ns"].tolist()[:2] == [1_025_000, 10_000]


def test_untraced_steps_are_those_that_were_measured_beside_the_trace() -> None:
    def beside(**fields: Any) -> tuple[int, int | None]:
        untraced = UntracedSteps(**fields) if fields else None
        found = step_metrics(make_trace(runs=[(0, 1, 0, 10)], untraced=untraced))
        return found.untraced_steps, found.untraced_ns_median

    assert beside(steps=28, step_ns=12, run_ns=9) == (28, 9)
    # of an older trace; the time of the traced steps themselves; none
    assert beside(steps=28, step_ns=12) == (28, 12)
    assert beside(steps=28, step_ns=12, run_ns=9, while_traced=True) == (0, None)
    assert beside() == (0, None)
