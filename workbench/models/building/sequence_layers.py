"""Layers over histories of clicks: attention of a candidate to them, and gated recurrence.

The attention unit is DIN's (Zhou et al., 2018), the recurrence with an attentional update gate is
DIEN's (Zhou et al., 2019). Cells and `dynamic_rnn` of `tf.compat.v1.nn.rnn_cell` stand on Keras 2,
which TensorFlow no longer brings; so the recurrence is a scan with a cell of its own.
"""

from __future__ import annotations

import tensorflow as tf

from workbench.models.building.layers import dense
from workbench.models.data.taobao import LONGEST_HISTORY

v1 = tf.compat.v1

_SEPARATOR = "\x02"
_ATTENTION = (80, 40)
_ABSENT = -1e9


def split_history(texts: tf.Tensor) -> tf.Tensor:
    """The clicks of each history, oldest first, string [batch, 50]; "" where there is none.

    Of a longer history the first 50 clicks count.
    """
    clicks = tf.strings.split(texts, _SEPARATOR)
    return clicks.to_tensor("", shape=[None, LONGEST_HISTORY])


def attention(query: tf.Tensor, keys: tf.Tensor, present: tf.Tensor, name: str) -> tf.Tensor:
    """How much each key matters to the query, by a small network over both.

    Args:
      query: float32 [batch, width].
      keys: float32 [batch, length, depth].
      present: bool [batch, length], which keys there are.
      name: of the scope of its weights.

    Returns:
      float32 [batch, length]: 0 where a key is absent, and the sum of a row is 1.
    """
    length, depth = keys.shape[1:]
    with v1.variable_scope(name):
        query = parametric_relu(dense(query, depth, "query", activation=None), "query")
        query = tf.tile(query[:, None, :], [1, length, 1])
        found = tf.concat([query, keys, query - keys, query * keys], axis=2)
        for i, units in enumerate(_ATTENTION):
            found = dense(found, units, f"unit_{i}", activation=tf.sigmoid)
        scores = dense(found, 1, "score", activation=None)
    return masked_softmax(tf.squeeze(scores, axis=2), present)


def masked_softmax(scores: tf.Tensor, present: tf.Tensor) -> tf.Tensor:
    """The softmax of each row over what is present, and 0 elsewhere, float32 [batch, length].

    A row of which nothing is present is 0 throughout.
    """
    weights = tf.nn.softmax(tf.where(present, scores, tf.fill(tf.shape(scores), _ABSENT)))
    return weights * tf.cast(present, weights.dtype)


def parametric_relu(inputs: tf.Tensor, name: str) -> tf.Tensor:
    """Like relu for inputs above 0; below it they are scaled by a learned weight per column."""
    start = v1.constant_initializer(0.1)
    slope = v1.get_variable(f"{name}_slope", [inputs.shape[-1]], initializer=start)
    return tf.maximum(inputs, 0.0) + slope * tf.minimum(inputs, 0.0)


def gru(inputs: tf.Tensor, present: tf.Tensor, units: int, name: str) -> tf.Tensor:
    """States of a gated recurrent unit behind each input; an absent input leaves it as it is.

    Args:
      inputs: float32 [batch, length, width].
      present: bool [batch, length], which inputs there are.
      units: width of the state.
      name: of the scope of its weights.

    Returns:
      float32 [batch, length, units].
    """
    return attentional_gru(inputs, tf.cast(present, inputs.dtype), units, name)


def attentional_gru(inputs: tf.Tensor, attention: tf.Tensor, units: int, name: str) -> tf.Tensor:
    """States of a GRU whose update gate is multiplied by the attention of each input (AUGRU).

    With attention a, update gate u and candidate c, the state s becomes (1 - a u) s + a u c: what
    gets no attention leaves it as it is, and where all of it is 1 this is a GRU.

    Args:
      inputs: float32 [batch, length, width].
      attention: float32 [batch, length], of 0 to 1.
      units: width of the state.
      name: of the scope of its weights.

    Returns:
      float32 [batch, length, units].
    """
    with v1.variable_scope(name):
        # What the inputs add to the gates and the candidate is one product for all steps.
        added = dense(tf.transpose(inputs, [1, 0, 2]), 3 * units, "inputs", activation=None)
        # The body of a loop takes tensors, no reference variables.
        gates = tf.identity(v1.get_variable("gates", [units, 2 * units]))
        candidate = tf.identity(v1.get_variable("candidate", [units, units]))

        def step(state: tf.Tensor, now: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            given, attended = now
            to_gates, to_candidate = tf.split(given, [2 * units, units], axis=1)
            opened = tf.sigmoid(to_gates + tf.matmul(state, gates))
            reset, update = tf.split(opened, 2, axis=1)
            new = tf.tanh(to_candidate + tf.matmul(reset * state, candidate))
            return state + attended * update * (new - state)

        empty = tf.zeros([tf.shape(inputs)[0], units], inputs.dtype)
        states = tf.scan(step, (added, tf.transpose(attention)[:, :, None]), empty)
    states = tf.transpose(states, [1, 0, 2])
    return tf.ensure_shape(states, [None, inputs.shape[1], units])
