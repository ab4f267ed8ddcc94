"""Sessions in directories: they come back as they were, and what is damaged says so."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.replays import every_replay_holds
from tests.builders.sessions import (
    INLINE,
    OFF,
    PROGRAM,
    SMART,
    STAGE,
    WIDE,
    build,
    learned,
    measured,
    with_trace,
)
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.stock import GRAPPLER, XLA
from workbench.core.toggles.toggle import Toggle
from workbench.core.what_if.base import Sample
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.core.what_if.scenario import GraphKey, SampleKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.errors import DataError, OptionError, OutputError, TraceError
from workbench.experiments.program.program import Program
from workbench.experiments.session.load_session import load_session
from workbench.experiments.session.saved.options import (
    optimizations_from_json,
    optimizations_to_json,
)
from workbench.experiments.session.session import Session

FUSED = Optimizations(fused_embeddings="auto")
ODD = Optimizations(
    stage=StageOptions(capacity=3, closed_exception_types=(11,), ignored_exception_types=(3, 5)),
    smart_stage=SmartStageOptions(
        keep=("a", "b"), include=(), exclude=("c",), reorder=True, num_threads=2, name="mine"
    ),
    fused_embeddings="v2",
    executor="cost_model",
    inter_op_threads=3,
    intra_op_threads=1,
    batch_size=64,
)


def session(*, graphs: bool = False) -> Session:
    """Runs 1 to 4, of two comparisons."""
    made = Session(PROGRAM, budget_s=7.5, trace_steps=4)
    made.add(with_trace(measured([OFF, STAGE])), [OFF, STAGE], started="2026-01-02T03:04:05+00:00")
    made.add(measured([OFF, WIDE, ODD]), [OFF, WIDE, ODD])
    if graphs:
        made._foreseen.known = learned()
    return made


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    every_replay_holds(monkeypatch)


def test_it_comes_back_without_its_program(tmp_path: Path):
    before = session()
    assert before.save(tmp_path / "new" / "here") == tmp_path / "new" / "here"
    after = load_session(tmp_path / "new" / "here")
    assert after.program is None and after.name == "tiny" and after.baseline == OFF
    assert (after.budget_s, after.trace_steps) == (7.5, 4)
    assert [run.optimizations for run in after.runs] == [OFF, STAGE, WIDE, ODD]
    assert [run.number for run in after.runs] == [1, 2, 3, 4]
    for old, new in zip(before.runs, after.runs, strict=True):
        assert (old.label, old.started, old.variant) == (new.label, new.started, new.variant)
        assert old.measured.block_steps_per_s == new.measured.block_steps_per_s
    off, stage, wide, odd = after.runs
    assert off.comparison is stage.comparison and wide.comparison is odd.comparison
    assert off.measured.trace is not None and len(off.measured.trace.events) == 60
    assert after.ratio(stage, off) == before.ratio(before.runs[1], before.runs[0])


def test_it_runs_nothing_until_it_has_its_program(tmp_path: Path):
    session().save(tmp_path)
    loaded = load_session(tmp_path)
    for method in (loaded.run, loaded.start, loaded.learn_graphs):
        with pytest.raises(OptionError) as caught:
            method()
        assert str(caught.value) == (
            "the session was loaded without its program 'tiny', so nothing can be run; give it: "
            "wb.load_session(directory, program)"
        )
    assert load_session(tmp_path, PROGRAM).program is PROGRAM
    with pytest.raises(OptionError, match="is of program 'tiny', and 'other' was given"):
        load_session(tmp_path, Program(name="other", build=build))
    with pytest.raises(OptionError, match="expected a wb.Program"):
        load_session(tmp_path, build)  # type: ignore[arg-type]


@pytest.mark.usefixtures("held")
def test_its_predictions_are_those_from_before(tmp_path: Path):
    before = session(graphs=True)
    before.save(tmp_path)
    after = load_session(tmp_path)
    for setting in (OFF, STAGE, WIDE, SMART, INLINE):
        found = before.predict(setting)
        assert isinstance(found, Predicted) and after.predict(setting) == found
    batch = after.predict(Optimizations(batch_size=16))
    assert isinstance(batch, Predicted) and batch.scenario.batch_ratio == 2
    assert before.predictions is not None and after.predictions is not None
    assert after.predictions.predicted == before.predictions.predicted
    assert after.predictions.withheld == before.predictions.withheld


def with_sample() -> Session:
    """It also knows a fused graph, of which steps were traced."""
    made = session(graphs=True)
    known = learned()
    sample = Sample(trace=with_trace(measured([OFF])).variants[0].trace, beside_ns=2e6)
    samples = {SampleKey(fused="auto"): sample}
    fused = KnownGraph(boundary=known.graphs[GraphKey()].boundary, samples=samples)
    graphs = {**known.graphs, GraphKey(fused="auto"): fused}
    made._foreseen.known = dataclasses.replace(known, graphs=graphs)
    return made


@pytest.mark.usefixtures("held")
def test_what_is_predicted_from_a_sample_comes_back(tmp_path: Path):
    before = with_sample()
    before.save(tmp_path)
    found = before.predict(FUSED)
    assert isinstance(found, Predicted)
    assert load_session(tmp_path).predict(FUSED) == found
    (sample,) = tmp_path.rglob("sample-*.parquet")
    sample.write_bytes(b"")
    with pytest.raises(TraceError, match="sample-"):
        load_session(tmp_path)


@pytest.mark.usefixtures("held")
def test_a_session_of_before_there_were_samples_loads_without_its_estimates(tmp_path: Path):
    session(graphs=True).save(tmp_path)
    index = json.loads((tmp_path / "session.json").read_text())
    for each in index["learned"]["graphs"]:
        each.update(added_ns=[[1, 2.0]], likened=[[1, "train", 2.0]])
        each.pop("samples", None)
    (tmp_path / "session.json").write_text(json.dumps(index))
    assert isinstance(load_session(tmp_path).predict(STAGE), Predicted)


@pytest.mark.usefixtures("held")
def test_graphs_that_were_not_known_are_not_known_later(tmp_path: Path):
    session().save(tmp_path)
    found = load_session(tmp_path).predict(STAGE)
    # the trace does not say which op feeds which, so it says nothing of executors either
    assert isinstance(found, Withheld) and "was not saved with it" in found.reason


def test_an_empty_one(tmp_path: Path):
    Session(PROGRAM, baseline=STAGE).save(tmp_path)
    loaded = load_session(tmp_path)
    assert loaded.runs == () and loaded.baseline == STAGE and loaded.predictions is None


def test_saving_again_leaves_only_the_newest(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("not ours")
    grows = session()
    grows.save(tmp_path)
    grows.add(measured([OFF, SMART]), [OFF, SMART])
    grows.save(tmp_path)
    assert len(load_session(tmp_path).runs) == 5
    names = sorted(path.name.partition("-")[0] for path in tmp_path.iterdir())
    assert names == ["mine.txt", "saved", "session.json"]


def test_what_cannot_be_written_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = session()
    made.save(tmp_path)

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    made.add(measured([OFF, SMART]), [OFF, SMART])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OutputError, match="No space left on device"):
            made.save(tmp_path)
    assert len(load_session(tmp_path).runs) == 4 and len(list(tmp_path.iterdir())) == 2


def test_exception_classes_cannot_be_saved(tmp_path: Path):
    setting = Optimizations(stage=StageOptions(ignored_exception_types=(StopIteration,)))
    made = Session(PROGRAM, baseline=setting)
    with pytest.raises(OptionError) as caught:
        made.save(tmp_path)
    assert str(caught.value) == (
        "StageOptions.ignored_exception_types of the setting 'stage' holds <class 'StopIteration'>"
        ", and only integer codes can be saved; give codes such as tf.errors.OUT_OF_RANGE"
    )
    assert list(tmp_path.iterdir()) == []


stages = st.builds(
    StageOptions,
    capacity=st.integers(1, 9),
    num_threads=st.integers(1, 9),
    closed_exception_types=st.none() | st.lists(st.integers(1, 16)).map(tuple),
    use_stage_subgraph_thread_pool=st.booleans(),
)
smart_stages = st.builds(
    SmartStageOptions,
    capacity=st.none() | st.integers(1, 9),
    reorder=st.booleans(),
    move=st.lists(st.text()).map(tuple),
    on_cpu=st.booleans(),
)


@given(
    st.builds(
        Optimizations,
        stage=st.none() | stages,
        smart_stage=st.none() | smart_stages,
        fused_embeddings=st.sampled_from([None, "v1", "v2"]),
        executor=st.sampled_from([None, "normal", "inline", "cost_model"]),
        batch_size=st.none() | st.integers(1, 9),
        chosen=st.sets(
            st.sampled_from([XLA, GRAPPLER, Toggle("dim", (16, 32)), Toggle("jit", (False, True))])
        ).map(lambda toggles: tuple(each.at(each.choices[1]) for each in toggles)),
    )
)
def test_every_setting_comes_back(setting: Optimizations):
    text = json.dumps(optimizations_to_json(setting))
    assert optimizations_from_json(json.loads(text)) == setting


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("session")
    session(graphs=True).save(home)
    return home


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "copy")
    return tmp_path / "copy"


Edit = Callable[[dict[str, Any]], Any]
DAMAGED: list[tuple[Edit, str]] = [
    (lambda index: index.update(format_version=99), "update it (pip install --upgrade"),
    (lambda index: index.update(format_version=0), "run the settings again"),
    (lambda index: index.pop("format_version"), "is not a saved session: it was saved in format"),
    (lambda index: index.update(folder="../../etc"), "it names '../../etc' as its folder"),
    (lambda index: index.update(folder="/etc"), "it names '/etc' as its folder"),
    (lambda index: index.update(folder=3), "the session.folder is 3; expected text"),
    (lambda index: index.update(folder="saved-" + "0" * 32), "comparison-0: holds no comparison"),
    (lambda index: index.update(comparisons=3), "comparison-2: holds no comparison.json"),
    (
        lambda index: index.update(comparisons="many"),
        "comparisons is 'many'; expected an integer",
    ),
    (
        lambda index: index["runs"][1].update(comparison="../other"),
        "is '../other'; expected",
    ),
    (lambda index: index["runs"][1].update(comparison=-1), "run 2 is of comparison -1"),
    (lambda index: index["runs"][1].update(variant="gone"), "has no variant 'gone'"),
    (lambda index: index["runs"][1].update(number=7), "its runs are not numbered 1, 2, …"),
    (lambda index: index["runs"].append(None), "the session.runs[4] is None; expected values"),
    (lambda index: index["baseline"].update(colour="red"), "Optimizations has no 'colour'"),
    (lambda index: index["baseline"].update(stage={}), "StageOptions has no value of capacity"),
    (
        lambda index: index["runs"][3]["optimizations"]["stage"].update(
            closed_exception_types=["os.system"]
        ),
        "expected integer codes",
    ),
    (
        lambda index: index["program"].update(name=[1]),
        "program.name is [1]; expected text",
    ),
    (lambda index: index.update(program=None), "the session.program is None; expected values"),
    (lambda index: index.update(budget_s=10**400), "expected a number of 64 bits"),
    (lambda index: index.update(budget_s=float("nan")), "its budget is nan seconds"),
    (lambda index: index["learned"].update(graphs=7), "learned.graphs is 7; expected a list"),
    (lambda index: index["learned"].update(smart_stage=index["baseline"]), "what decided"),
    (
        lambda index: index["learned"]["graphs"][-1].update(shared_names=[[99, "train"]]),
        "has 11 nodes, and others are named",
    ),
    (
        lambda index: index["learned"]["graphs"][-1].update(
            samples=[{"fused": None, "serial": False, "beside_ns": "1"}]
        ),
        "beside_ns is '1'; expected",
    ),
]


@pytest.mark.parametrize(("edit", "message"), DAMAGED, ids=[each[1] for each in DAMAGED])
def test_a_damaged_index(copy: Path, edit: Edit, message: str):
    index = json.loads((copy / "session.json").read_text())
    edit(index)
    (copy / "session.json").write_text(json.dumps(index))
    with pytest.raises(DataError) as caught:
        load_session(copy)
    assert message in str(caught.value) and str(copy) in str(caught.value)


TEXTS = [
    (b"", "or was cut off: .*; save the session again"),
    (b"\xff\xfe{}", "or was cut off"),
    (b"[" * 100_000, "or was cut off"),
    (b"[1]", "is not a saved session; give a directory that Session.save wrote"),
]


@pytest.mark.parametrize(("text", "message"), TEXTS)
def test_what_is_no_index(copy: Path, text: bytes, message: str):
    (copy / "session.json").write_bytes(text)
    with pytest.raises(DataError, match=message):
        load_session(copy)


def test_where_there_is_none(tmp_path: Path):
    said = "holds no session.json; give a directory that Session.save wrote"
    with pytest.raises(DataError, match=said):
        load_session(tmp_path)
    (tmp_path / "session.json").mkdir()
    with pytest.raises(DataError, match="Is a directory"):
        load_session(tmp_path)


@given(at=st.floats(0, 1, exclude_max=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_an_index_that_was_cut_off_anywhere(copy: Path, saved: Path, at: float):
    text = (saved / "session.json").read_bytes().rstrip()
    (copy / "session.json").write_bytes(text[: int(at * len(text))])
    with pytest.raises(DataError, match="or was cut off"):
        load_session(copy)


def test_damaged_files_below_it(copy: Path):
    (folder,) = copy.glob("saved-*")
    graph = next(folder.glob("graph-*"))
    whole = graph.read_bytes()
    graph.write_bytes(whole[:20])
    with pytest.raises(DataError, match="is not a saved boundary"):
        load_session(copy)
    graph.unlink()
    with pytest.raises(DataError, match="No such file"):
        load_session(copy)
    graph.write_bytes(whole)
    trace = folder / "comparison-0" / "trace-0.parquet"
    trace.write_bytes(trace.read_bytes()[:100])
    with pytest.raises(TraceError):
        load_session(copy)


@pytest.mark.parametrize("name", ["../../../outside.parquet", "/etc/passwd", "..", "a\0b", 7])
def test_a_comparison_leads_nowhere_else(copy: Path, name: Any):
    (index,) = copy.glob("saved-*/comparison-0/comparison.json")
    document = json.loads(index.read_text())
    document["variants"][0]["trace"] = name
    index.write_text(json.dumps(document))
    with pytest.raises(DataError, match="expected one of its own directory"):
        load_session(copy)
