"""What "all" measures, and which toggles a program has no use for; no process is started."""

from __future__ import annotations

import contextlib
import math
from types import SimpleNamespace

import pytest

from tests.builders.opened import OPENED
from workbench import usable
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError, PlanError, RunError
from workbench.experiments.comparison import applicable_toggles
from workbench.experiments.comparison import compare as compare_module
from workbench.experiments.comparison import summary as summary_module
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.running.interleaved_run import InterleavedRun
from workbench.experiments.comparison.running.process_groups import groups_that_fit
from workbench.experiments.measurement.blocks import MeasuredBlocks
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import BlockPlan
from workbench.experiments.program.program import Built, Program
from workbench.experiments.program.toggles import FUSED, TOGGLES, every_toggle, optimizations_of
from workbench.experiments.program.variant import variants_of
from workbench.experiments.worker.wire.messages import Close

STAGE, SMART = StageOptions(), SmartStageOptions()
PROGRAM = Program(name="mine", build=lambda optimizations: Built(train_op=None))


def test_all_is_each_alone_and_then_those_that_suit_each_other():
    assert every_toggle() == (*TOGGLES, "stage+smart_stage+fused_v2+cost_model_executor")
    together = optimizations_of(every_toggle()[-1], STAGE, SMART)
    assert together.label() == "stage + smart stage + fused V2 + cost model executor"


def test_what_is_left_out_is_not_in_the_sum_either():
    executors = ("inline_executor", "cost_model_executor")
    assert every_toggle({"stage", *FUSED}) == (
        "smart_stage", *executors, "smart_stage+cost_model_executor",
    )  # fmt: skip
    # a sum of one is that one, which is measured already
    assert every_toggle(set(TOGGLES) - set(executors)) == executors


def test_all_takes_no_toggles_beside_it():
    with pytest.raises(OptionError) as caught:
        compare(PROGRAM, ["stage"], all=True, progress=False)
    assert str(caught.value) == (
        "all=True measures every toggle, and toggles is ['stage']; give one of the two"
    )


@pytest.fixture
def tried(monkeypatch):
    """`without_effect` of a program that is opened as a function of its optimizations says."""

    def ask(opened, said=None):
        sessions = []

        class Worker:
            def call(self, command):
                if isinstance(command, Close):
                    return sessions.remove(command.session)
                found = opened(command.optimizations)
                if isinstance(found, Exception):
                    raise found
                sessions.append(command.session)
                return found

        @contextlib.contextmanager
        def started_workers(programs):
            yield [Worker() for _ in programs]
            assert sessions == []

        monkeypatch.setattr(applicable_toggles, "started_workers", started_workers)
        show = said.append if said is not None else False
        return applicable_toggles.without_effect(PROGRAM, STAGE, SMART, Progress(show))

    return ask


def test_a_program_with_everything_leaves_nothing_out(tried):
    said: list[str] = []
    assert tried(lambda wish: SimpleNamespace(stages=1, fused_ops=26), said) == {}
    assert said == ["Trying which optimizations mine has a use for"]


def test_a_program_without_stage_and_lookups_leaves_them_out(tried):
    found = tried(lambda wish: SimpleNamespace(stages=0, fused_ops=0))
    assert found == {
        "stage": "the program builds no stage when optimizations.stage is set",
        "fused_v1": "the program builds no embedding lookup through Workbench",
        "fused_v2": "the program builds no embedding lookup through Workbench",
        "grouped": "the program builds no embedding lookup through Workbench",
        "auto_fused": applicable_toggles.NO_STOCK_LOOKUP,
    }


def test_stock_lookups_and_those_built_through_workbench_are_tried_apart(tried):
    found = tried(lambda wish: SimpleNamespace(stages=1, fused_ops=3 * wish.fuses_graph))
    assert set(found) == {"fused_v1", "fused_v2", "grouped"}


def test_a_refusal_is_the_reason(tried):
    def opened(wish):
        if wish.smart_stage:
            return PlanError("found two inputs, 'a' and 'b'")
        if wish.stage:
            return OptionError("a tf.function has no stage of its own")
        return SimpleNamespace(stages=0, fused_ops=1)

    assert tried(opened) == {
        "stage": "a tf.function has no stage of its own",
        "smart_stage": "found two inputs, 'a' and 'b'",
    }


def test_a_library_without_executors_leaves_them_out(tried, without_executors):
    found = tried(lambda wish: SimpleNamespace(stages=1, fused_ops=26))
    assert set(found) == {"inline_executor", "cost_model_executor"}
    assert (
        "it needs Workbench's executors, which this build for TensorFlow 2.18.1"
        in found.popitem()[1]
    )


def test_a_failure_of_the_users_own_code_is_no_refusal(tried):
    with pytest.raises(RunError, match="line 41"):
        tried(lambda wish: RunError("`train.py`, line 41: ValueError: no"))


GB = 1 << 30


@pytest.mark.parametrize(
    ("free", "sizes"),
    [
        (math.inf, [10]),
        # of nine tenths: ten variants, and the session in which one of them is traced
        (13 * GB, [10]),
        (10 * GB, [6, 5]),
        (5 * GB, [3, 3, 3, 3, 2]),
        # two at a time is what a ratio needs
        (0, [2] * 9),
    ],
)
def test_variants_that_do_not_fit_into_memory_form_groups_with_the_baseline(free, sizes):
    made = variants_of(every_toggle(), STAGE, SMART)
    groups = groups_that_fit(made, GB, free)
    assert [len(group) for group in groups] == sizes
    assert all(group[0] == made[0] for group in groups)
    assert [each for group in groups for each in group[1:]] == made[1:]


def test_free_memory_is_read_from_the_machine_and_the_container(tmp_path, monkeypatch):
    meminfo, group = tmp_path / "meminfo", tmp_path / "cgroup"
    monkeypatch.setattr(usable, "_MEMINFO", meminfo)
    monkeypatch.setattr(usable, "_GROUP", group)
    assert usable.free_bytes() == math.inf
    meminfo.write_text("MemTotal: 4000 kB\nMemAvailable: 3000 kB\n")
    assert usable.free_bytes() == 3000 * 1024
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("5\n")
    assert usable.free_bytes() == 3000 * 1024
    (group / "memory.max").write_text("105\n")
    assert usable.free_bytes() == 100


def test_groups_are_one_comparison_with_ratios_to_their_own_baselines(monkeypatch):
    rates = {"stage": (20.0, 10.0), "inline executor": (30.0, 15.0)}
    seen = []

    def run_interleaved(program, variants, *, budget_s, **others):
        seen.append(([v.label for v in variants], budget_s))
        rate, base = rates[variants[1].label]
        measured = {
            v.label: MeasuredBlocks(rates=(rate if n else base,) * 6, step_ns_median=1e9)
            for n, v in enumerate(variants)
        }
        plan = BlockPlan(
            rounds=6, steps=(len(seen) * 10,) * 2, dropped=(3,) * len(variants), seconds=1.0
        )
        return InterleavedRun(
            variants=tuple(variants), opened=OPENED, checks=(), plan=plan, measured=measured,
            traces={},
        )  # fmt: skip

    left_out = dict.fromkeys(set(TOGGLES) - {"stage", "inline_executor"}, "it has none")
    monkeypatch.setattr(compare_module, "without_effect", lambda *_: left_out)
    monkeypatch.setattr(compare_module, "free_bytes", lambda: 2.0)
    warm = SimpleNamespace(largest_child_bytes=1)
    monkeypatch.setattr(compare_module, "warm_python", lambda: contextlib.nullcontext(warm))
    monkeypatch.setattr(summary_module, "environment", lambda opened: {})
    monkeypatch.setattr(compare_module, "run_interleaved", run_interleaved)
    found = compare(PROGRAM, all=True, budget_s=40.0, progress=False)
    # what one group leaves, the next one has
    assert [labels for labels, _ in seen] == [["off", "stage"], ["off", "inline executor"]]
    assert [seconds for _, seconds in seen] == pytest.approx([20.0, 40.0], rel=0.1)
    assert [variant.label for variant in found.variants] == ["off", "stage", "inline executor"]
    assert found.variants[0].steps_per_s == pytest.approx(10.0)
    assert [ratio.ratio for ratio in found.ratios] == pytest.approx([2.0, 2.0])
    assert found.settings["steps_per_block"] == {"off": 10, "stage": 10, "inline executor": 20}
    assert found.command == "wb.compare(mine, all=True, budget_s=40)"
    *reasons, groups = found.variants[0].notes
    assert "fused_v1 was left out: it has none." in reasons and len(reasons) == 6
    assert "were measured in 2 groups, each beside a baseline of its own" in groups
