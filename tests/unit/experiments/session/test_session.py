"""A session over made-up comparisons: which runs it keeps, what it refuses, what it predicts."""

from __future__ import annotations

import dataclasses
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders.replays import every_replay_holds
from tests.builders.sessions import (
    INLINE,
    OFF,
    PROGRAM,
    SMART,
    STAGE,
    WIDE,
    build,
    fake_compare,
    learned,
    measured,
    trace,
    with_trace,
)
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.errors import OptionError, RunError, TraceError
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.session import learned_graphs, setting_predictions
from workbench.experiments.session import session as module
from workbench.experiments.session.background import Job
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.experiments.session.setting_predictions import CANCELLED_AFTER_RUN
from workbench.experiments.worker.wire.cancellation import CANCELLED, require_not_cancelled


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `compare` was asked for; nothing has a trace."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "compare", fake_compare(asked))
    return asked


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Comparisons have a trace of the baseline; notes that graphs were learned."""
    asked: list[str] = []

    def learn(program: Program, baseline: Optimizations, progress: Any) -> Any:
        asked.append(program.name)
        return learned()

    monkeypatch.setattr(module, "compare", fake_compare([], traced=True))
    monkeypatch.setattr(setting_predictions, "learned_graphs", learn)
    every_replay_holds(monkeypatch)
    return asked


def test_the_first_run_adds_that_of_the_baseline(calls: list[dict[str, Any]]):
    session = Session(PROGRAM, budget_s=5, trace_steps=3)
    stage = session.run(STAGE, progress=False)
    wide = session.run(WIDE, progress=False)
    off, *others = session.runs
    assert others == [stage, wide] and [run.number for run in session.runs] == [1, 2, 3]
    assert [run.label for run in session.runs] == [
        "off",
        "stage",
        "stage (capacity 2, 2 threads)",
    ]
    assert off.is_baseline and off.comparison is stage.comparison
    assert (off.measured.steps_per_s, wide.measured.steps_per_s) == (40.0, 80.0)
    assert calls[1] == {
        "program": PROGRAM,
        "toggles": [WIDE],
        "baseline": OFF,
        "budget_s": 5,
        "trace_steps": 3,
        "stop_when_clear": False,
        "samples": {},
        "progress": calls[1]["progress"],
    }
    assert repr(session) == "Session('tiny', 3 runs)"
    assert repr(stage) == "Run(2, 'stage', 60 steps/s)"
    assert stage.started[10] == "T" and stage.started[-6] in "+-"


def test_the_baseline_alone_and_once_more(calls: list[dict[str, Any]]):
    session = Session(PROGRAM, baseline=STAGE)
    first, again = session.run(progress=False), session.run(STAGE, progress=False)
    assert [call["toggles"] for call in calls] == [[], []]
    assert session.runs == (first, again) and first.label == "stage"
    assert session.run_of(STAGE) is again and session.run_of(OFF) is None
    assert session.ratio(again, first) is None


@pytest.mark.usefixtures("calls")
def test_ratios_of_its_runs():
    session = Session(PROGRAM)
    stage, wide = session.run(STAGE, progress=False), session.run(WIDE, progress=False)
    paired, apart = session.ratio(wide, session.runs[0]), session.ratio(wide, stage)
    assert paired is not None and apart is not None
    assert (paired.ratio, apart.ratio) == (2.0, pytest.approx(80 / 60))


def test_what_was_measured_elsewhere_is_kept_too():
    session = Session(PROGRAM)
    off, stage, smart = session.add(measured([OFF, STAGE, SMART]), [OFF, STAGE, SMART])
    assert session.runs == (off, stage, smart)
    (inline,) = session.add(measured([OFF, INLINE]), [OFF, INLINE], started="2026-01-01T12:00Z")
    assert (inline.number, inline.started) == (4, "2026-01-01T12:00Z")
    with pytest.raises(OptionError, match="of program 'dlrm'; expected one of 'tiny'"):
        session.add(measured([OFF], program="dlrm"), [OFF])
    with pytest.raises(OptionError, match=r"are \['off'\], the comparison has \['off', 'stage'\]"):
        session.add(measured([OFF, STAGE]), [OFF])
    with pytest.raises(OptionError, match=r"are \['off', 'smart stage'\], the comparison has"):
        session.add(measured([OFF, STAGE]), [OFF, SMART])
    with pytest.raises(OptionError, match="the session's baseline 'off' first"):
        session.add(measured([STAGE, OFF]), [STAGE, OFF])


REFUSED = [
    ({"program": build}, "expected a wb.Program, .* give wb.Program"),
    ({"baseline": "stage"}, "a setting is 'stage'; expected wb.Optimizations"),
    ({"budget_s": 0}, "budget_s is 0; expected seconds above 0"),
    ({"budget_s": float("inf")}, "budget_s is inf; expected seconds above 0 and at most a day"),
    ({"budget_s": "30s"}, "budget_s is '30s'; expected seconds above 0"),
    ({"trace_steps": -1}, "trace_steps is -1; expected an integer of at least 0"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
def test_what_no_session_is_made_of(wrong: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        Session(**{"program": PROGRAM, **wrong})


def test_settings_that_cannot_be_run(calls: list[dict[str, Any]]):
    with pytest.raises(OptionError, match="a setting is 'stage'; expected wb.Optimizations"):
        Session(PROGRAM).run("stage")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a setting is 'stage'; expected wb.Optimizations"):
        Session(PROGRAM).predict("stage")  # type: ignore[arg-type]
    function = FunctionProgram(name="mine", make=lambda: (None, None))
    with pytest.raises(OptionError, match="a tf.function is staged as a whole"):
        Session(function, baseline=STAGE)
    for method in (Session(function).run, Session(function).start):
        with pytest.raises(OptionError, match="a tf.function is staged as a whole"):
            method(STAGE)
    assert calls == []


class Held:
    """A `compare` that waits until it is let go, and looks whether it was cancelled."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, program: Program, toggles: list[Optimizations], **options: Any) -> Any:
        options["progress"]("Starting 2 child processes")
        self.begun.set()
        while not self.go_on.wait(0.01):
            require_not_cancelled()
        return measured([options["baseline"], *toggles])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made = Held()
    monkeypatch.setattr(module, "compare", made)
    yield made
    made.go_on.set()


def test_a_job_runs_while_the_caller_goes_on(held: Held):
    session = Session(PROGRAM)
    said: list[str] = []
    ended: list[tuple[bool, Any]] = []

    def on_end(job: Job[Run]) -> None:
        ended.append((job.running, job.result))

    job = session.start(STAGE, on_progress=said.append, on_end=on_end)
    assert held.begun.wait(10)
    assert job.running and not job.wait(0.01) and session.runs == ()
    assert said == ["Starting 2 child processes"] and job.progress == said[-1]
    held.go_on.set()
    assert job.wait(10) and not job.running and job.error is None
    assert job.result is session.run_of(STAGE)
    assert ended == [(False, job.result)] and not job.cancelled
    job.cancel()
    assert not job.cancelled


def test_two_at_once_are_refused(held: Held):
    session = Session(PROGRAM)
    job = session.start(STAGE)
    refused = "a run of 'tiny' goes on, and two at the same time would slow each other; wait for it"
    for method in (session.run, session.start):
        with pytest.raises(OptionError, match=refused):
            method(WIDE)
    with pytest.raises(OptionError, match=refused):
        session.learn_graphs()
    held.go_on.set()
    assert job.wait(10) and len(session.runs) == 2
    assert session.start(WIDE).wait(10) and len(session.runs) == 3


def test_a_job_that_starts_the_next_one(held: Held):
    session = Session(PROGRAM)
    held.go_on.set()
    next_one: list[Job[Run]] = []
    job = session.start(STAGE, on_end=lambda job: next_one.append(session.start(WIDE)))
    assert job.wait(10) and next_one[0].wait(10)
    assert [run.number for run in session.runs] == [1, 2, 3]


def test_a_cancelled_job_keeps_nothing_and_says_so(held: Held):
    session = Session(PROGRAM)
    job = session.start(STAGE)
    assert held.begun.wait(10)
    job.cancel()
    assert job.wait(10) and job.cancelled
    assert str(job.error) == CANCELLED and job.result is None and session.runs == ()
    held.go_on.set()
    assert session.start(STAGE).wait(10) and len(session.runs) == 2


def test_what_is_cancelled_as_it_ends_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    jobs: list[Job[Run]] = []
    started = threading.Event()

    def compare(program: Program, toggles: list[Optimizations], **options: Any) -> Any:
        assert started.wait(10)
        jobs[0].cancel()
        return measured([options["baseline"], *toggles])

    monkeypatch.setattr(module, "compare", compare)
    session = Session(PROGRAM)
    jobs.append(session.start(STAGE))
    started.set()
    assert jobs[0].wait(10) and jobs[0].cancelled and session.runs == ()


def test_an_error_of_the_users_code_is_the_jobs(monkeypatch: pytest.MonkeyPatch):
    def compare(*arguments: Any, **options: Any) -> Any:
        raise RunError("`train.py`, line 41: KeyError: 'clicks'")

    monkeypatch.setattr(module, "compare", compare)
    session = Session(PROGRAM)
    job = session.start(STAGE)
    assert job.wait(10)
    assert isinstance(job.error, RunError) and not job.cancelled
    assert str(job.error) == "`train.py`, line 41: KeyError: 'clicks'"
    with pytest.raises(RunError, match="line 41"):
        session.run(STAGE)


@pytest.mark.usefixtures("calls")
def test_without_a_trace_nothing_is_predicted():
    session = Session(PROGRAM)
    assert session.predict(STAGE) is None
    session.run(STAGE, progress=False)
    assert session.predict(STAGE) is None and session.predictions is None


def test_the_first_run_learns_the_graphs_and_the_next_does_not(traced: list[str]):
    session = Session(PROGRAM)
    session.run(STAGE, progress=False)
    session.run(WIDE, progress=False)
    assert traced == ["tiny"]
    stage, wide = session.predict(STAGE), session.predict(WIDE)
    assert isinstance(stage, Predicted) and isinstance(wide, Predicted)
    # the stage waits 10 ms and parses for 2; two threads wait and parse in turn. The steps beside
    # the trace took 20.6 ms, the measured ones 25.
    assert stage.step_ms == pytest.approx(12.06 * 25 / 20.6, rel=0.01)
    assert wide.step_ms == pytest.approx(10.0 * 25 / 20.6, rel=0.02)
    # the newest trace counts
    session.run(WIDE, progress=False)
    assert session.predict(STAGE) is not stage
    assert session.predict(STAGE) == session.predict(STAGE)
    every = session.predictions
    assert every is not None and every.of("stage") == session.predict(STAGE)
    assert len(every.predicted) + len(every.withheld) == 45
    assert {each.label for each in every.predicted} >= {"off", "stage", "smart stage"}
    assert every.traced.label == "off"


def test_of_several_traces_the_newest_counts_whose_steps_can_be_simulated(
    monkeypatch: pytest.MonkeyPatch,
):
    every_replay_holds(monkeypatch)
    session = Session(PROGRAM)
    session._foreseen.known = learned()
    session.add(with_trace(measured([OFF, STAGE])), [OFF, STAGE])
    expected = session.predict(INLINE)
    untold = dataclasses.replace(trace(), meta=dataclasses.replace(trace().meta, untraced=None))
    session.add(with_trace(measured([OFF, WIDE]), untold), [OFF, WIDE])
    assert isinstance(expected, Predicted) and session.predict(INLINE) == expected

    worse = Session(PROGRAM)
    worse.add(with_trace(measured([OFF]), untold), [OFF])
    found = worse.predict(INLINE)
    assert isinstance(found, Withheld) and "does not say how long" not in found.reason
    worse._foreseen.known = learned()
    found = worse.predict(INLINE)
    assert isinstance(found, Withheld) and "does not say how long" in found.reason


@pytest.mark.usefixtures("traced")
def test_what_is_not_known_before_it_is_run_is_withheld_with_the_reason():
    session = Session(PROGRAM)
    session.run(progress=False)
    reasons = {
        Optimizations(intra_op_threads=2): "another number of intra-op threads is not known",
        Optimizations(fused_embeddings="v1"): "the program builds no embedding lookup",
        Optimizations(smart_stage=SmartStageOptions(keep=("hash",))): "with other starts, keep",
    }
    for setting, reason in reasons.items():
        found = session.predict(setting)
        assert isinstance(found, Withheld) and reason in found.reason


@pytest.mark.usefixtures("traced")
def test_a_function_has_no_stage_of_the_users_own():
    session = Session(FunctionProgram(name="tiny", make=lambda: (None, None)))
    session.run(progress=False)
    found, every = session.predict(STAGE), session.predictions
    assert isinstance(found, Withheld) and found.reason == (
        "a tf.function is staged as a whole, so it has no stage of your own"
    )
    assert every is not None and len(every.predicted) + len(every.withheld) == 30


@pytest.mark.usefixtures("traced")
def test_graphs_that_cannot_be_built_leave_the_run_and_the_reason(
    monkeypatch: pytest.MonkeyPatch,
):
    def fails(*arguments: Any) -> Any:
        raise RunError("`train.py`, line 7: NameError: name 'staged' is not defined")

    with monkeypatch.context() as patch:
        patch.setattr(setting_predictions, "learned_graphs", fails)
        session = Session(PROGRAM)
        assert session.run(STAGE, progress=False).number == 2
        with pytest.raises(RunError, match="line 7"):
            session.learn_graphs(progress=False)
    found = session.predict(STAGE)
    assert isinstance(found, Withheld)
    assert found.reason == (
        "its graph could not be built: `train.py`, line 7: NameError: name 'staged' is not defined"
    )
    session.learn_graphs(progress=False)
    assert isinstance(session.predict(STAGE), Predicted)


def test_a_trace_that_cannot_be_simulated_leaves_the_graphs(
    traced: list[str], monkeypatch: pytest.MonkeyPatch
):
    def fails(*arguments: Any) -> Any:
        raise TraceError("no step is whole")

    monkeypatch.setattr(learned_graphs, "predictor", fails)
    session = Session(PROGRAM)
    run = session.run(STAGE, progress=False)
    found = session.predict(STAGE)
    assert isinstance(found, Withheld)
    assert found.reason == "its trace could not be simulated: no step is whole"
    assert session.boundary_of(OFF) is not None
    # Predictions of another trace need no other graphs.
    monkeypatch.undo()
    every_replay_holds(monkeypatch)
    session.add(with_trace(run.comparison), [OFF, STAGE])
    assert isinstance(session.predict(STAGE), Predicted) and traced == ["tiny"]


@pytest.mark.usefixtures("traced")
def test_times_are_learned_of_graphs_that_were_built_alone(monkeypatch: pytest.MonkeyPatch):
    kept: list[str] = []
    monkeypatch.setattr(module, "learn_phases_of_predictions", lambda *_: kept.append("times"))

    def fails(*arguments: Any) -> Any:
        raise RunError("no graph")

    with monkeypatch.context() as patch:
        patch.setattr(setting_predictions, "learned_graphs", fails)
        Session(PROGRAM).run(STAGE, progress=False)
    assert kept == []
    Session(PROGRAM).run(STAGE, progress=False)
    assert kept == ["times"]


@pytest.mark.usefixtures("traced")
def test_a_job_cancelled_while_it_learns_keeps_the_run(monkeypatch: pytest.MonkeyPatch):
    begun = threading.Event()

    def learns(*arguments: Any) -> Any:
        begun.set()
        while True:
            require_not_cancelled()

    monkeypatch.setattr(setting_predictions, "learned_graphs", learns)
    session = Session(PROGRAM)
    job = session.start(STAGE)
    assert begun.wait(10)
    job.cancel()
    assert job.wait(10) and job.cancelled and str(job.error) == CANCELLED_AFTER_RUN
    assert len(session.runs) == 2
    found = session.predict(STAGE)
    assert isinstance(found, Withheld) and "call learn_graphs()" in found.reason


def test_a_job_says_how_it_stands():
    go_on, said = threading.Event(), threading.Event()

    def work(say):
        say("Measuring")
        said.set()
        go_on.wait(20)
        return 7

    job = Job(work, release=lambda: None)
    said.wait(20)
    assert repr(job) == "Job(running, 'Measuring')"
    go_on.set()
    job.wait()
    assert repr(job) == "Job(over, 7)"


def test_a_job_that_is_over_holds_nothing_that_it_worked_on():
    class Model:
        """What a user drops."""

    def started() -> tuple[Job[int], weakref.ref[Model]]:
        model = Model()

        def work(_):
            return len([model])

        return Job(work, release=lambda: None, on_progress=lambda _: model), weakref.ref(model)

    gc.collect()
    gc.disable()
    try:
        job, model = started()
        assert job.wait(20)
        assert job.result == 1 and model() is None
        known = weakref.ref(job)
        del job
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyboardInterrupt("Cancelled."), "Job(cancelled)"),
        (RunError("it broke"), "Job(failed, RunError('it broke'))"),
    ],
)
def test_a_job_without_a_result_says_why(error, words):
    def work(_):
        raise error

    job = Job(work, release=lambda: None)
    job.wait()
    assert repr(job) == words
