"""Searches among choices of toggles, in real child processes: what wins, and what goes wrong."""

from __future__ import annotations

import os
import sys

import cloudpickle
import pytest

import workbench as wb

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
SIZE = wb.Toggle("size", [640, 16], training="same")
HANGS = wb.Toggle("reader", ["quick", "stuck"], training="same")
RAISES = wb.Toggle("width", [1, 2], training="same")
RATE = wb.Toggle("rate", ["usual", "none"])
MARK = wb.toggles.EnvironmentToggle("WORKBENCH_TEST", ["a", "b"])


def build(optimizations):
    """A product of matrices beside the training, which takes nearly all of a step."""
    import tensorflow as tf

    v1 = tf.compat.v1
    if optimizations[RAISES] == 2:
        raise ValueError("no such width")
    size = optimizations[SIZE]
    if optimizations[MARK] == "b":
        # Where the variable is not there, this choice is no faster.
        size = 16 if os.environ["WORKBENCH_TEST"] == "b" else size
    ones = v1.get_variable("ones", [size, size], trainable=False, use_resource=True)
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(10**7)).get_next()
    if optimizations[HANGS] == "stuck":
        batch = tf.numpy_function(_never, [batch], tf.int64)
        batch.set_shape([])
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    # Nothing, of which the graph optimizer does not know it.
    nothing = tf.stop_gradient(tf.minimum(tf.reduce_sum(tf.square(ones @ ones)), 0.0))
    seen = tf.cast(batch % 100, tf.float32)
    loss = tf.square(seen * 1e-3 - weight) + nothing
    rate = 0.1 if optimizations[RATE] == "usual" else float("nan")
    return wb.Built(train_op=v1.train.GradientDescentOptimizer(rate).minimize(loss), loss=loss)


def _never(number):
    import time

    time.sleep(1000)
    return number


PROGRAM = wb.Program(name="product", build=build)
pytestmark = pytest.mark.usefixtures("no_process_is_left")


def searched(*toggles, budget=12, **options):
    return wb.find_best(
        PROGRAM,
        budget=budget,
        toggles=["stage", *toggles],
        refine=False,
        trace_steps=0,
        progress=False,
        **options,
    )


def reasons(best):
    return {each.label: each.reason for each in (*best.not_measured, *best.runners_up)}


def test_the_faster_choice_is_found_and_its_code_measures_it_again():
    best = searched(SIZE)
    assert best.label == "size 16" and best.ratio > 2
    assert best.comparison.trains_the_same("size 16")
    assert "# your own: size = 16" in best.in_program
    measured = []

    def measure(program, settings, baseline):
        measured.extend([settings, baseline])

    exec(best.code.replace("wb.compare(", "measure("), {"program": PROGRAM, "measure": measure})
    assert measured == [[best.optimizations], best.baseline]
    assert best.baseline["size"] == 640


def test_choices_that_hang_and_raise_are_a_sentence_and_the_search_goes_on():
    best = searched(RAISES, HANGS, SIZE, budget=45)
    assert best.label == "size 16"
    why = reasons(best)
    assert "did not answer in the" in why["reader stuck"] and "was ended" in why["reader stuck"]
    assert "no such width" in why["width 2"]
    # What the last ones take at most, on a busy machine.
    assert best.took_s < 45 + 20


def test_a_choice_that_trains_nan_is_not_chosen():
    fast = wb.Optimizations(chosen=(SIZE.at(16), RATE.at("none")))
    best = searched(fast, allow_another_training=True)
    assert best.label == "off" and best.runners_up[0].label == "rate none + size 16"
    (note,) = [note for note in best.notes if "was not chosen" in note]
    assert note == "Rate none + size 16 was not chosen: its loss is nan from step 2 on."


def test_another_training_is_chosen_where_that_is_allowed_and_both_curves_are_kept():
    best = searched(wb.Toggle("size", [640, 16]), allow_another_training=True)
    assert best.label == "size 16"
    (check,) = best.comparison.checks_of("size 16")
    assert check.toggles == "size 16 beside size 640" and len(check.losses) == check.steps > 0


def test_an_environment_of_its_own_has_a_process_of_its_own():
    best = searched(MARK, budget=25)
    assert best.label == "WORKBENCH_TEST b" and best.ratio > 2
    assert "WORKBENCH_TEST" not in os.environ
    assert 'os.environ["WORKBENCH_TEST"] = "b"' in best.in_program
