"""Options: defaults of the seeds, and one message for each refused value."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions, ThreadPoolOptions
from workbench.errors import OptionError


def test_defaults_are_those_of_the_documents():
    options = StageOptions()
    assert (options.capacity, options.num_threads, options.num_clients) == (1, 1, 1)
    assert options.timeout_millis == 300_000
    assert not options.use_stage_subgraph_thread_pool


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("capacity", 0),
        ("num_threads", 0),
        ("num_threads", 1.5),
        ("num_clients", -1),
        ("timeout_millis", 0),
        ("stage_subgraph_thread_pool_id", -1),
        ("stage_subgraph_stream_id", -2),
        ("capacity", True),
    ],
)
def test_values_outside_the_range_are_refused(field, value):
    with pytest.raises(
        OptionError, match=rf"StageOptions\.{field} is {value}; expected an integer"
    ):
        StageOptions(**{field: value})


def test_pools_are_checked_too():
    with pytest.raises(OptionError, match=r"ThreadPoolOptions\.inter_op_threads_num is -1"):
        ThreadPoolOptions(inter_op_threads_num=-1)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        StageOptions().capacity = 3  # type: ignore[misc]


def test_labels():
    assert Optimizations().label() == "off"
    assert Optimizations(stage=StageOptions()).label() == "stage"
    assert Optimizations(smart_stage=SmartStageOptions()).label() == "smart stage"
    both = Optimizations(stage=StageOptions(), smart_stage=SmartStageOptions())
    assert both.label() == "stage + smart stage"
    moved = Optimizations(
        smart_stage=SmartStageOptions(include=("a/b/c", "d"), exclude=("e",), num_threads=2)
    )
    assert moved.label() == "moved boundary"
    assert (
        moved.label(in_full=True) == "moved boundary (up to b/c and 1 more, without e, 2 threads)"
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            lambda: StageOptions(threads=2),
            r"StageOptions has no 'threads' \(did you mean 'num_threads'\?\); its fields are cap",
        ),
        (lambda: StageOptions(zzz=2), "StageOptions has no 'zzz'; its fields are capacity, num_"),
        (lambda: StageOptions(4), "StageOptions takes its fields by name, and got 4 without one"),
        (lambda: wb.Optimizations(stages=None), r"did you mean 'stage'\?"),
        (lambda: wb.Program(name="a"), "Program needs build; its fields are name, build, "),
        (lambda: wb.FunctionProgram(), "FunctionProgram needs name and make; its fields"),
        (lambda: wb.Built(loss=1), "Built needs train_op"),
    ],
)
def test_wrong_arguments_are_told_the_fields(wrong, words):
    with pytest.raises(OptionError, match=words):
        wrong()


def test_checked_fields_stay_those_of_a_dataclass():
    options = StageOptions(capacity=3)
    assert dataclasses.replace(options, num_threads=2) == StageOptions(capacity=3, num_threads=2)
    assert list(inspect.signature(StageOptions).parameters)[:2] == ["capacity", "num_threads"]
    assert pickle.loads(pickle.dumps(options)) == options


def test_stale_lookups_are_a_number_of_steps_and_in_the_name():
    assert SmartStageOptions().stale_lookups == 0 and SmartStageOptions().staleness == ""
    assert SmartStageOptions(stale_lookups=2).staleness == "2 steps stale"
    with pytest.raises(OptionError, match="stale_lookups is -1; expected an integer of at least 0"):
        SmartStageOptions(stale_lookups=-1)
    with pytest.raises(OptionError, match="stale_lookups is True; expected an integer"):
        SmartStageOptions(stale_lookups=True)
    with pytest.raises(OptionError, match=r"stale_lookups=1 and on_cpu=True; a lookup runs beside"):
        SmartStageOptions(stale_lookups=1, on_cpu=True)
    stale = Optimizations(smart_stage=SmartStageOptions(stale_lookups=1))
    assert stale.label() == "smart stage, 1 step stale"
    joined = Optimizations(fused_embeddings="v2", smart_stage=stale.smart_stage)
    assert joined.label() == "smart stage, 1 step stale + fused V2"
