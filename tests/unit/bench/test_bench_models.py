"""The bench of models: jobs, how time is divided, rows and tables; nothing here runs a model."""

from __future__ import annotations

import dataclasses
import json
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench import bench_models, published
from tests.bench.model_jobs import (
    COMPUTE,
    LATENCY,
    MODELS,
    QUICK_FUSIONS,
    QUICK_MODELS,
    STAGED_MODELS,
    STEP_S,
    Job,
    Outcome,
    OutOfTimeError,
    planned_jobs,
    run_jobs,
)
from tests.bench.model_tables import frame_of, markdown, rows_of
from tests.builders.comparisons import ENVIRONMENT
from workbench.errors import RunError
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.program.toggles import TOGGLES
from workbench.models import MODELS as ZOO

JOB = Job(model="dlrm", input_kind=COMPUTE, toggles=("stage", "smart_stage"))


class Clock:
    """Seconds that pass when told so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def comparison(job: Job = JOB, step_ms: float = 25.0) -> Comparison:
    """Each variant is a tenth of the baseline faster than the one before."""
    speed = {label: 1 + number / 10 for number, label in enumerate(job.labels)}
    rates = {label: tuple(s * r for r in (38.0, 40.0, 42.0, 40.0)) for label, s in speed.items()}
    return Comparison(
        program=job.model,
        variants=tuple(
            MeasuredVariant(
                label=label,
                steps_per_s=40 * s,
                low=39 * s,
                high=41 * s,
                block_steps_per_s=rates[label],
                step_ms_median=step_ms / s,
            )
            for label, s in speed.items()
        ),
        baseline="off",
        ratios=tuple(
            Ratio(label=label, ratio=s, low=s - 0.02, high=s + 0.03, verdict="faster",
                  predicted=1.5 if label == "smart stage" else None)
            for label, s in speed.items() if label != "off"
        ),
        equivalence=(),
        bounds=(),
        environment=ENVIRONMENT,
        command="",
        settings={"rounds": 4, "batch_size": 512, "rows": 50_000},
    )  # fmt: skip


def outcomes(jobs, measure, total_s=1000.0, clock=None):
    said: list[str] = []
    found = list(
        run_jobs(jobs, measure, total_s=total_s, say=said.append, clock=clock or time.monotonic)
    )
    return found, said


def test_every_toggle_of_every_model_is_planned_once():
    assert set(MODELS) == set(ZOO) == set(STEP_S)
    jobs = planned_jobs(MODELS)
    compute = {job.model: job for job in jobs if job.input_kind == COMPUTE}
    assert list(compute) == list(MODELS)
    for model, job in compute.items():
        missing = set(TOGGLES) - set(job.toggles)
        assert missing == (set() if model in STAGED_MODELS else {"stage", "smart_stage"})
    waiting = [job for job in jobs if job.input_kind == LATENCY]
    assert [job.model for job in waiting] == list(STAGED_MODELS)
    assert all(job.toggles == ("stage", "smart_stage") for job in waiting)
    # it waits as long as the step of the same model took, which must be known by then
    assert all(jobs.index(job) == jobs.index(compute[job.model]) + 1 for job in waiting)


def test_what_the_plan_needs_fits_into_the_bounds():
    full, quick = planned_jobs(MODELS), planned_jobs(QUICK_MODELS, QUICK_FUSIONS)
    assert sum(job.need_s for job in full) < 60 * bench_models.FULL_MINUTES
    assert bench_models.QUICK_MINUTES < 5
    assert sum(job.overhead_s for job in quick) < 60 * bench_models.QUICK_MINUTES


def test_labels_are_those_of_the_comparison():
    assert JOB.labels == ("off", "stage", "smart stage")


def test_a_latency_is_the_step_of_the_run_before():
    seen = {}

    def measure(job, *, budget_s, limit_s, latency_ms):
        seen[job.model, job.input_kind] = latency_ms
        return comparison(job, step_ms=25.04)

    found, _ = outcomes(planned_jobs(["dlrm"]), measure)
    assert seen == {("dlrm", COMPUTE): 0.0, ("dlrm", LATENCY): 25.0}
    assert [outcome.latency_ms for outcome in found] == [0.0, 25.0]


@settings(max_examples=40)
@given(slow=st.lists(st.floats(0.2, 8.0), min_size=11, max_size=11), total=st.floats(60, 4000))
def test_no_more_time_is_taken_than_there_is(slow, total):
    clock, turns = Clock(), iter(slow)

    def measure(job, *, budget_s, limit_s, latency_ms):
        assert budget_s > 0
        takes = max(next(turns) * job.overhead_s, budget_s)
        clock.now += min(takes, limit_s)
        if takes > limit_s:
            raise OutOfTimeError
        return comparison(job)

    found, _ = outcomes(planned_jobs(MODELS), measure, total, clock)
    assert len(found) == 11
    assert clock.now - 1000 <= total * 1.0001
    assert sum(outcome.seconds for outcome in found) == pytest.approx(clock.now - 1000)


def test_time_that_one_job_leaves_is_given_to_those_behind():
    clock, budgets = Clock(), []

    def measure(job, *, budget_s, limit_s, latency_ms):
        budgets.append(budget_s)
        clock.now += 1.0
        return comparison(job)

    jobs = [dataclasses.replace(JOB, model="dlrm") for _ in range(4)]
    outcomes(jobs, measure, 180.0, clock)
    assert budgets == sorted(budgets) and budgets[-1] > 2 * budgets[0]


def test_blocks_leave_room_before_the_limit_and_are_not_longer_than_they_say_something():
    seen = []

    def measure(job, *, budget_s, limit_s, latency_ms):
        seen.append((budget_s, limit_s))
        return comparison(job)

    for total_s in (100.0, 10_000.0):
        outcomes([JOB], measure, total_s)
    (short, limit), (most, _) = seen
    assert short == pytest.approx(0.85 * limit, rel=1e-3)
    assert most == 24.0 * 3 + JOB.overhead_s


def test_a_model_that_fails_is_an_outcome_and_not_the_end():
    def measure(job, *, budget_s, limit_s, latency_ms):
        if job.model == "deepfm":
            raise RunError("`deepfm.py`, line 3: ValueError: no\nand more")
        return comparison(job)

    found, said = outcomes(planned_jobs(["dlrm", "deepfm", "wdl"]), measure)
    assert [outcome.failure for outcome in found] == [
        "",
        "",
        "`deepfm.py`, line 3: ValueError: no",
        "the compute-bound run gave no step time to wait for",
        "",
    ]
    assert "deepfm, compute-bound: `deepfm.py`, line 3: ValueError: no" in said


def test_without_time_nothing_is_begun():
    def measure(job, *, budget_s, limit_s, latency_ms):
        raise AssertionError("begun")

    found, _ = outcomes([JOB], measure, total_s=5.0)
    assert found == [Outcome(job=JOB, failure="no time was left")]


def test_ctrl_c_keeps_what_was_measured():
    def measure(job, *, budget_s, limit_s, latency_ms):
        if job.input_kind == LATENCY:
            raise KeyboardInterrupt
        return comparison(job)

    found, _ = outcomes(planned_jobs(["dlrm", "wdl"]), measure)
    assert [outcome.failure for outcome in found] == ["", "cancelled", "cancelled"]
    assert found[0].found is not None


def test_a_job_is_ended_at_its_limit():
    with pytest.raises(OutOfTimeError), bench_models.limited(0.05):
        threading.Event().wait(20)


def test_a_limit_goes_with_its_job():
    before = signal.getsignal(signal.SIGALRM)
    with bench_models.limited(60.0):
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_one_row_for_each_variant_and_equal_columns_whatever_failed():
    good = Outcome(job=JOB, found=comparison(), seconds=60.0)
    bad = Outcome(job=dataclasses.replace(JOB, model="din"), failure="no memory", seconds=3.0)
    frame = frame_of([*rows_of(good, run="now"), *rows_of(bad, run="now")])
    assert list(zip(frame["model"], frame["variant"], strict=True)) == [
        (model, label) for model in ("dlrm", "din") for label in ("off", "stage", "smart stage")
    ]
    ours = frame.set_index(["model", "variant"])
    assert ours.loc[("dlrm", "stage"), "ratio"] == pytest.approx(1.1)
    assert ours.loc[("dlrm", "smart stage"), "ratio_predicted"] == 1.5
    assert ours.loc[("dlrm", "smart stage"), "to_stage"] == pytest.approx(1.2 / 1.1)
    assert np.isnan(ours.loc[("dlrm", "stage"), "to_stage"])
    assert ours.loc[("din", "off"), "failure"] == "no memory"
    assert ours.loc["din"]["steps_per_s"].isna().all()
    # the types do not hang on which of them failed
    alone = frame_of(rows_of(bad, run="now"))
    assert (alone.dtypes == frame.dtypes).all()


def test_rows_survive_their_file(tmp_path):
    frame = frame_of(rows_of(Outcome(job=JOB, found=comparison()), run="now"))
    path = bench_models.write_parquet(frame, tmp_path / "new", quick=False)
    assert path.name == "models.parquet"
    read = pd.read_parquet(path)
    pd.testing.assert_frame_equal(read, frame)
    # a quick run leaves the figures of a full one alone
    assert bench_models.write_parquet(frame, path.parent, quick=True).name == "models-quick.parquet"


def test_each_run_appends_what_it_ran_on(tmp_path):
    found = [
        Outcome(job=JOB, failure="no memory", seconds=1.0),
        Outcome(job=JOB, found=comparison(), seconds=60.0),
    ]
    for run in ("first", "second"):
        path = bench_models.append_environment(found, tmp_path, run=run, quick=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["run"] for line in lines] == ["first", "second"]
    assert lines[0]["cpu"] == ENVIRONMENT["cpu"] and lines[0]["seconds"] == 61.0
    assert lines[0]["failures"] == 1


def tables(*found: Outcome) -> dict[str, list[str]]:
    """Lines of each table of the outcomes, by its title."""
    text = markdown(frame_of([row for each in found for row in rows_of(each, run="now")]))
    parts = [part.splitlines() for part in text.split("### ")[1:]]
    return {part[0]: part for part in parts}


def test_tables_show_ours_with_intervals_and_theirs_with_their_source():
    local, waiting, wdl = planned_jobs(["dlrm", "wdl"])
    shown = tables(
        Outcome(job=local, found=comparison(local)),
        Outcome(job=waiting, found=comparison(waiting), latency_ms=25.0),
        Outcome(job=wdl, found=comparison(wdl)),
    )
    stages = shown["Stage and smart stage"]
    assert stages[6] == (
        "| DLRM | compute-bound | 512 | 40 (39–41) | 1.10× (1.08–1.13) | 1.20× (1.18–1.23) | 1.50× "
        "| 1.09× (1.09–1.09) | 91.7 → 67.7 (0.74×), 188.1 (2.05×) | 201 → 212 (1.05×) |"
    )
    assert stages[7].startswith("| DLRM | latency-bound, each batch waits 25.0 ms | 512 |")
    assert not any(line.startswith("| WDL") for line in stages)
    assert "another machine with other software" in stages[9]
    assert stages[9].startswith("DeepRec, docs/docs_en/Smart-Stage.md")
    fused = shown["Fused embedding lookups"]
    assert fused[6].endswith("| v2, batch 512: 20.0 → 14.8 ms (1.35×) |")
    assert fused[7].startswith("| WDL | compute-bound | 512 | 40 (39–41) | 1.10× (1.08–1.13) |")
    executors = shown["Executors"]
    assert executors[6].startswith("| DLRM |") and executors[7].startswith("| WDL |")
    assert executors[-1] == published.EXECUTOR_SOURCE
    # every table has as many cells in each row as in its head
    for part in shown.values():
        cells = {line.count(" | ") for line in part if line.startswith("| ")}
        assert len(cells) == 1


def test_a_failed_model_is_a_row_that_says_so():
    local, waiting = planned_jobs(["din"])
    shown = tables(
        Outcome(job=local, found=comparison(local)),
        Outcome(job=waiting, failure="a | b" + "." * 300),
    )
    failed = shown["Stage and smart stage"][7]
    assert failed.startswith("| DIN | latency-bound |  | not measured: a \\| b....")
    assert failed.split(" | ")[3].endswith("…") and len(failed) < 250


def test_the_bench_prints_its_tables_and_says_by_its_exit_what_failed(
    tmp_path, monkeypatch, capsys
):
    def measured(job, effort, home, *, budget_s, latency_ms):
        if job.input_kind == LATENCY:
            raise RunError("no")
        return comparison(job)

    monkeypatch.setattr(bench_models, "measured", measured)
    assert bench_models.main(["--quick", "--model", "wdl", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("### Fused embedding lookups\n")
    assert bench_models.main(["--quick", "--model", "dlrm", "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "not measured: no" in shown.out and "dlrm, latency-bound: no" in shown.err
    assert len(pd.read_parquet(tmp_path / "models-quick.parquet")) == 8 + 3
    assert len((tmp_path / "models-environment.jsonl").read_text().splitlines()) == 2
