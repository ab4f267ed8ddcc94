"""Layers over histories: attention sees what is present, recurrences are those of the papers."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workbench.models.building.layers import model_scope
from workbench.models.building.sequence_layers import (
    attention,
    attentional_gru,
    gru,
    masked_softmax,
    parametric_relu,
    split_history,
)
from workbench.models.data.taobao import LONGEST_HISTORY

v1 = tf.compat.v1


def run(build, *arguments):
    """What a layer gives, in a fresh graph, and its variables by name."""
    with tf.Graph().as_default():
        with model_scope("m", 1):
            outputs = build(*arguments)
        variables = {v.name.removeprefix("m/").removesuffix(":0"): v for v in v1.global_variables()}
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            return session.run([outputs, variables])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def recurrence(inputs, attended, units, weights):
    """Specification of the recurrence, a step at a time, as DIEN's equations have it."""
    state = np.zeros([len(inputs), units])
    states = []
    for t in range(inputs.shape[1]):
        given_now = inputs[:, t] @ weights["r/inputs/kernel"] + weights["r/inputs/bias"]
        gates = sigmoid(given_now[:, : 2 * units] + state @ weights["r/gates"])
        reset, update = gates[:, :units], gates[:, units:]
        new = np.tanh(given_now[:, 2 * units :] + (reset * state) @ weights["r/candidate"])
        update = attended[:, t, None] * update
        state = (1 - update) * state + update * new
        states.append(state)
    return np.stack(states, axis=1)


def test_a_gru_is_its_specification():
    inputs = drawn(3, 7, 5)
    present = np.ones([3, 7], bool)
    found, weights = run(lambda: gru(tf.constant(inputs), tf.constant(present), 4, "r"))
    np.testing.assert_allclose(found, recurrence(inputs, present, 4, weights), atol=1e-5)


def test_attention_scales_the_update_gate_and_not_what_is_kept():
    inputs = drawn(3, 7, 5)
    attended = np.random.default_rng(1).random([3, 7]).astype(np.float32)
    found, weights = run(
        lambda: attentional_gru(tf.constant(inputs), tf.constant(attended), 4, "r")
    )
    np.testing.assert_allclose(found, recurrence(inputs, attended, 4, weights), atol=1e-5)


def test_a_state_stays_as_it_is_where_nothing_is_present_or_attended():
    inputs = drawn(2, 6, 5)
    present = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0]], bool)
    found, _ = run(lambda: gru(tf.constant(inputs), tf.constant(present), 4, "r"))
    for row, t in zip(*np.nonzero(~present), strict=True):
        assert (found[row, t] == found[row, t - 1]).all()
    assert not (found[1, 2] == found[1, 1]).any()


def test_gradients_of_a_recurrence_are_those_of_the_same_steps_written_out():
    inputs, attended = drawn(2, 4, 3), np.full([2, 4], 0.5, np.float32)

    def both():
        scanned = attentional_gru(tf.constant(inputs), tf.constant(attended), 3, "r")
        with v1.variable_scope("r", reuse=True):
            kernel = v1.get_variable("inputs/kernel", [3, 9])
            bias = v1.get_variable("inputs/bias", [9])
            gates, candidate = (
                v1.get_variable("gates", [3, 6]),
                v1.get_variable("candidate", [3, 3]),
            )
        state = tf.zeros([2, 3])
        for t in range(4):
            added = tf.matmul(inputs[:, t], kernel) + bias
            opened = tf.sigmoid(added[:, :6] + tf.matmul(state, gates))
            new = tf.tanh(added[:, 6:] + tf.matmul(opened[:, :3] * state, candidate))
            state += 0.5 * opened[:, 3:] * (new - state)
        weights = [kernel, bias, gates, candidate]
        return [
            tf.gradients(tf.reduce_sum(tf.square(last)), weights)
            for last in (scanned[:, -1], state)
        ]

    (scanned, written), _ = run(both)
    for one, other in zip(scanned, written, strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(one, other, atol=1e-6)


@given(
    scores=arrays.arrays(np.float32, (3, 5), elements=st.floats(-1e4, 1e4, width=32)),
    present=arrays.arrays(bool, (3, 5)),
)
def test_a_masked_softmax_is_the_softmax_of_what_is_present(scores, present):
    found, _ = run(lambda: masked_softmax(tf.constant(scores), tf.constant(present)))
    for row, mask, weights in zip(scores.astype(np.float64), present, found, strict=True):
        assert (weights[~mask] == 0).all()
        if mask.any():
            exponents = np.exp(row[mask] - row[mask].max())
            np.testing.assert_allclose(weights[mask], exponents / exponents.sum(), atol=1e-6)


def test_attention_is_over_the_present_keys_and_depends_on_the_query():
    queries, keys = drawn(2, 6), drawn(1, 4, 8, seed=2).repeat(2, axis=0)
    present = np.array([[1, 1, 1, 0]] * 2, bool)
    found, weights = run(
        lambda: attention(tf.constant(queries), tf.constant(keys), tf.constant(present), "a")
    )
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert (found[:, 3] == 0).all()
    assert np.abs(found[0] - found[1]).max() > 1e-3
    assert weights["a/unit_0/kernel"].shape == (4 * 8, 80)


def test_absent_keys_change_nothing():
    queries, keys = drawn(2, 6), drawn(2, 4, 8)
    present = np.array([[1, 1, 0, 0], [1, 0, 0, 1]], bool)
    other = np.where(present[..., None], keys, 7.0).astype(np.float32)
    one, two = (
        run(lambda k=k: attention(tf.constant(queries), tf.constant(k), tf.constant(present), "a"))
        for k in (keys, other)
    )
    assert (one[0] == two[0]).all()


def test_a_parametric_relu_scales_what_is_below_zero():
    found, weights = run(lambda: parametric_relu(tf.constant([[-2.0, 3.0]]), "x"))
    np.testing.assert_allclose(found, [[-0.2, 3.0]], atol=1e-6)
    assert weights["x_slope"].tolist() == pytest.approx([0.1, 0.1])


def test_histories_are_split_and_cut():
    many = [b"%d" % i for i in range(LONGEST_HISTORY + 3)]
    texts = [b"7", b"\x02".join([b"a", b"b c", b"d"]), b"\x02".join(many)]
    found, _ = run(lambda: split_history(tf.constant(texts)))
    assert found.shape == (3, LONGEST_HISTORY)
    assert found[0].tolist() == [b"7"] + [b""] * (LONGEST_HISTORY - 1)
    assert found[1, :4].tolist() == [b"a", b"b c", b"d", b""]
    assert found[2].tolist() == many[:LONGEST_HISTORY]
