"""Options as the Python that makes them."""

from __future__ import annotations

import pytest

import workbench as wb
from tests.builders.comparisons import comparison
from workbench.experiments.program.as_code import compare_code, options_code, program_code

GRAPH = wb.Program(name="mine", build=lambda optimizations: None)
FUNCTION = wb.FunctionProgram(name="mine", make=lambda: None)
EVERYTHING = wb.Optimizations(
    stage=wb.StageOptions(capacity=2, closed_exception_types=(ValueError, 7)),
    smart_stage=wb.SmartStageOptions(keep=("a", 'b"c'), reorder=True),
    fused_embeddings="v2",
    executor="cost_model",
    inter_op_threads=3,
    intra_op_threads=2,
    batch_size=64,
)


@pytest.mark.parametrize("options", [wb.Optimizations(), EVERYTHING, wb.StageOptions(capacity=4)])
def test_the_expression_makes_the_options(options):
    assert eval(options_code(options), {"wb": wb, "ValueError": ValueError}) == options


def test_what_is_as_usual_is_left_out():
    setting = wb.Optimizations(smart_stage=wb.SmartStageOptions(), executor="inline")
    assert options_code(setting) == (
        'wb.Optimizations(smart_stage=wb.SmartStageOptions(), executor="inline")'
    )


@pytest.mark.parametrize("baseline", [wb.Optimizations(), EVERYTHING])
def test_the_cell_compares_the_settings_with_the_baseline(monkeypatch, baseline):
    asked = {}

    def compare(program, settings, baseline=None):
        asked.update(program=program, settings=settings, baseline=baseline)
        return comparison()

    monkeypatch.setattr(wb, "compare", compare, raising=False)
    settings = [wb.Optimizations(fused_embeddings="v1"), EVERYTHING]
    exec(compare_code(settings, baseline), {"program": GRAPH})
    assert asked["settings"] == settings and asked["program"] is GRAPH
    assert (asked["baseline"] or wb.Optimizations()) == baseline


def test_a_graph_of_ones_own():
    assert program_code(EVERYTHING, GRAPH).splitlines() == [
        "tf.config.threading.set_intra_op_parallelism_threads(2)  # before the first dataset",
        "batch = wb.staged(batch, wb.StageOptions(capacity=2, "
        "closed_exception_types=(ValueError, 7,)))",
        'with wb.fused_embeddings("v2"):',
        "    loss, train_op = build_my_model(batch)",
        'config = wb.executor_options("cost_model")',
        "config.inter_op_parallelism_threads = 3",
        "config.intra_op_parallelism_threads = 2",
        "config, plan = wb.prepare_config(",
        "    tf.compat.v1.get_default_graph(), config, "
        'wb.SmartStageOptions(reorder=True, keep=("a", "b\\"c",)), targets=[train_op]',
        ")",
        "with tf.compat.v1.train.MonitoredTrainingSession(",
        "    config=config, hooks=[wb.make_prefetch_hook()]",
        ") as sess:",
        "    sess.run(train_op)",
    ]
    plain = program_code(wb.Optimizations(inter_op_threads=2), GRAPH)
    assert "hooks" not in plain and "config = tf.compat.v1.ConfigProto()" in plain
    assert program_code(wb.Optimizations(), GRAPH) == "# Nothing: the program as it is."


def test_a_function_of_ones_own():
    setting = wb.Optimizations(
        smart_stage=wb.SmartStageOptions(capacity=2), executor="inline", inter_op_threads=2
    )
    assert program_code(setting, FUNCTION).splitlines() == [
        "tf.config.threading.set_inter_op_parallelism_threads(2)",
        'with wb.executor("inline"):',
        "    for loss in wb.smart_stage(train_step, dataset, wb.SmartStageOptions(capacity=2)):",
        "        ...",
    ]
    fused = program_code(wb.Optimizations(fused_embeddings="v1", intra_op_threads=1), FUNCTION)
    assert 'with wb.fused_embeddings("v1"):\n    for element in dataset:' in fused
    sized = program_code(wb.Optimizations(batch_size=64), FUNCTION)
    assert sized.startswith("train_step, dataset = make(batch_size=64)\n")
