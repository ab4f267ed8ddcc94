"""Searches in real child processes: what wins, what is left out, and that none is left."""

from __future__ import annotations

import sys

import cloudpickle
import pytest

import workbench as wb
from workbench.errors import OptionError, RunError
from workbench.experiments.worker.process import CANCELLED

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

WAIT_S = 0.01


def batches(tf):
    """Numbers that each batch waits for."""
    import time

    def waited(number):
        time.sleep(WAIT_S)
        return number

    def read(number):
        found = tf.numpy_function(waited, [number], tf.int64)
        found.set_shape([])
        return tf.fill([4], tf.cast(found % 100, tf.float32))

    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.range(10**7).map(read).with_options(plain)
    return tf.compat.v1.data.make_one_shot_iterator(data).get_next()


def build(optimizations, *, rate_of_staged=0.1):
    """A step that takes about as long as its batch waits."""
    import tensorflow as tf

    v1 = tf.compat.v1
    batch = batches(tf)
    if optimizations.stage:
        batch = wb.staged(batch, optimizations.stage)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)

    def slept(value):
        import time

        time.sleep(WAIT_S)
        return value

    seen = tf.numpy_function(slept, [batch], tf.float32)
    seen.set_shape([4])
    loss = tf.reduce_mean(tf.square(seen * 1e-3 - weight))
    rate = rate_of_staged if optimizations.stage else 0.1
    train_op = v1.train.GradientDescentOptimizer(rate).minimize(
        loss, global_step=v1.train.get_or_create_global_step()
    )
    return wb.Built(train_op=train_op, loss=loss)


PROGRAM = wb.Program(name="waits", build=build)
pytestmark = pytest.mark.usefixtures("no_process_is_left")


@pytest.fixture(scope="module")
def found():
    said: list[str] = []
    best = wb.find_best(
        PROGRAM,
        budget="6s",
        memory="6GB",
        toggles=["stage", "inline_executor", "fused_v2"],
        refine=False,
        trace_steps=5,
        progress=said.append,
    )
    return best, said


def test_a_stage_wins_where_each_batch_waits(found):
    best, _ = found
    assert best.optimizations.stage == wb.StageOptions()
    assert best.ratio > 1.3 and best.best.rounds >= 4
    assert best.best.reason == "" and best.best.memory_bytes > 10**7
    assert best.memory_bytes >= 2 * best.best.memory_bytes * 0.5
    assert (best.memory_limit_bytes, best.budget_s) == (6 * 10**9, 6.0)


def test_every_setting_is_accounted_for_and_lookups_are_not_there(found):
    best, _ = found
    settings = {best.label, *(each.label for each in (*best.runners_up, *best.not_measured))}
    assert len(settings) == 7 and {"stage", "inline executor", "fused V2"} <= settings
    reasons = {each.label: each.reason for each in best.not_measured}
    if "fused V2" in reasons and "time was up" not in reasons["fused V2"]:
        assert reasons["fused V2"] == "the program builds no embedding lookup through Workbench"
    assert not any("fused" in each.label for each in best.runners_up)
    # As slow as this machine is: of nothing, or of what needs no graph more.
    assert best.notes[0].startswith(
        (
            "Nothing is predicted: building the graphs for it would take",
            "Of fused ops nothing is predicted: the budget is too short",
        )
    )


def test_the_best_trains_the_same_and_the_comparison_is_one(found):
    best, _ = found
    comparison = best.comparison
    assert [check.kind for check in comparison.equivalence] == ["bit-equal losses"]
    assert comparison.equivalence[0].passed
    assert comparison.variants[0].label == comparison.baseline == "off"
    assert comparison.variants[1].label == best.label
    assert comparison.ratios[0].ratio == pytest.approx(best.ratio)
    traced = {v.label for v in comparison.variants if v.trace}
    if traced:
        assert traced == {"off", best.label}
        assert len(comparison.variants[1].trace.steps()) == 5
        assert comparison.align("off", best.label) is not None
    else:
        # on a machine that is too busy for six seconds
        assert any("the budget has no room" in note for note in best.notes)
    assert "in different rounds" in comparison.variants[0].notes[-1]


def test_it_says_what_it_does(found):
    _, said = found
    first = said.index("Starting off")
    assert "to start and predict" in said[first - 1]
    # before that a machine that is busy is spoken of
    assert said[: first - 1] == [each for each in said if each.startswith("The machine is busy")]
    rounds = [line for line in said if line.startswith("Round ")]
    assert rounds and "s left: " in rounds[0]
    assert any("Checking that" in line for line in said)


def test_the_code_is_the_setting(found):
    best, _ = found
    asked = []
    scope = {"program": PROGRAM}
    code = best.code.replace("wb.compare(", "asked(")
    exec(code, scope | {"asked": lambda program, settings: asked.append(settings)})
    assert asked == [[best.optimizations]]


@pytest.mark.slow
def test_what_does_not_train_the_same_is_not_chosen():
    def wrong(optimizations):
        return build(optimizations, rate_of_staged=0.2)

    best = wb.find_best(
        wb.Program(name="wrong", build=wrong),
        budget=2,
        toggles="stage",
        refine=False,
        trace_steps=0,
        progress=False,
    )
    assert best.optimizations == wb.Optimizations() and best.ratio == 1.0
    (stage,) = best.runners_up
    assert stage.ratio > 1.3
    assert stage.reason.startswith("it does not train the same: bit-equal losses: differ from step")
    assert any(note.startswith("Stage was not chosen: it does not train") for note in best.notes)
    assert [variant.label for variant in best.comparison.variants] == ["off", "stage"]
    assert not best.comparison.equivalence[0].passed


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(OptionError) as caught:
        wb.find_best(PROGRAM, budget=5, memory="50MB", toggles="stage", progress=False)
    assert str(caught.value).startswith("memory is 50 MB, and one process of this program takes ")
    assert "run side by side, so give at least" in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budget": "soon"}, "budget is 'soon'; expected a time"),
        ({"memory": "much"}, "memory is 'much'; expected a size"),
        ({"toggles": ["stages"]}, "there is no toggle 'stages'"),
        ({"toggles": []}, "there is no setting to search among"),
        ({"toggles": [wb.Optimizations(batch_size=3)]}, "has another size of a batch"),
        ({"trace_steps": -1}, "trace_steps is -1"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(wrong, said):
    with pytest.raises(OptionError, match=said):
        wb.find_best(PROGRAM, progress=False, **wrong)
    with pytest.raises(OptionError, match="expected a wb.Program"):
        wb.find_best(build)


def test_an_error_of_ones_own_is_one_line():
    def broken(optimizations):
        raise ValueError("no data")

    with pytest.raises(RunError, match="ValueError: no data"):
        wb.find_best(wb.Program(name="broken", build=broken), budget=5, progress=False)


@pytest.mark.parametrize("at", [pytest.param("Starting stage", marks=pytest.mark.slow), "Round 1"])
def test_cancelling_leaves_no_process(at):
    def interrupt(text):
        if text.startswith(at):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        wb.find_best(PROGRAM, budget=3, toggles="stage", progress=interrupt)
    assert str(caught.value) == CANCELLED


def make():
    import tensorflow as tf

    weight = tf.Variable(tf.ones([3, 1]))

    @tf.function
    def train_step(features, label):
        loss = tf.reduce_mean(tf.square(features @ weight - label))
        weight.assign_sub(0.01 * weight)
        return loss

    data = tf.data.Dataset.from_tensor_slices((tf.ones([4096, 3]), tf.ones([4096, 1]))).batch(2)
    return train_step, data


@pytest.mark.slow
def test_a_function_is_searched_too():
    best = wb.find_best(
        wb.FunctionProgram(name="function", make=make),
        budget=2,
        toggles=["stage", "smart_stage"],
        refine=False,
        trace_steps=3,
        progress=False,
    )
    (stage,) = best.not_measured
    assert stage.label == "stage" and "is a FunctionProgram" in stage.reason
    assert {best.label, *(each.label for each in best.runners_up)} <= {"off", "smart stage"}
    assert "wb.smart_stage(train_step, dataset" in best.in_program or best.label == "off"
