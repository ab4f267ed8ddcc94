"""Fused layers, products, interactions and columns of text in stock ops.

Norms, products and interactions are sums of many numbers. Stock ops add these in an order of their
own, so that results agree to rounding.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.exporting.lowering.call import Call


def batch_norm(call: Call) -> list[Any]:
    """WorkbenchBatchNorm."""
    mean, variance = tf.nn.moments(call["x"], axes=[0])
    arguments = mean, variance, call["beta"], call["gamma"], call["epsilon"]
    return [tf.nn.batch_normalization(call["x"], *arguments), mean, variance]


def batch_norm_gradient(call: Call) -> list[Any]:
    """WorkbenchBatchNormGrad."""
    x, gamma, epsilon = call["x"], call["gamma"], call["epsilon"]
    beta = tf.zeros_like(gamma)
    mean, variance = tf.nn.moments(x, axes=[0])
    y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)
    inputs = [x, gamma, beta]
    of_x, of_gamma, of_beta = tf.gradients(y, inputs, grad_ys=call["gradient"])
    if not call["of_relu"]:
        return [of_x, of_gamma, of_beta, tf.zeros([0], tf.float32)]
    of_x = tf.raw_ops.ReluGrad(gradients=of_x, features=x)
    return [of_x, of_gamma, of_beta, tf.reduce_sum(of_x, 0)]


def dot_interaction(call: Call) -> list[Any]:
    """WorkbenchDotInteraction."""
    return [_dots(call, call["x"])]


def dot_interaction_gradient(call: Call) -> list[Any]:
    """WorkbenchDotInteractionGrad."""
    return tf.gradients(_dots(call, call["x"]), [call["x"]], grad_ys=call["gradient"])


def fm_interaction(call: Call) -> list[Any]:
    """WorkbenchFmInteraction."""
    return [_squares(call["x"], keep_dims=call["keep_dims"])]


def fm_interaction_gradient(call: Call) -> list[Any]:
    """WorkbenchFmInteractionGrad."""
    x = call["x"]
    y = _squares(x, keep_dims=False)
    return tf.gradients(y, [x], grad_ys=tf.reshape(call["gradient"], tf.shape(y)))


def matmul(call: Call) -> list[Any]:
    """WorkbenchMatMul."""
    transposed = {name: call[name] for name in ("transpose_a", "transpose_b")}
    product = tf.matmul(call["a"], call["b"], **transposed)
    for bias in call["bias"]:
        product = tf.nn.bias_add(product, bias)
    return [tf.nn.relu(product) if call["relu"] else product]


def hash_columns(call: Call) -> list[Any]:
    """WorkbenchHashColumns."""
    ids, indices = [], []
    for texts, buckets, zero_last in zip(
        call["texts"], call["buckets"], call["zero_last"], strict=True
    ):
        places = tf.where(tf.not_equal(texts, ""))
        ids.append(tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, places), buckets))
        indices.append(tf.pad(places, [[0, 0], [0, 1]]) if zero_last else places)
    return [*ids, *indices]


def decode_csv(call: Call) -> list[Any]:
    """WorkbenchDecodeCsv."""
    options = {name: call[name] for name in ("field_delim", "use_quote_delim", "na_value")}
    return list(
        tf.raw_ops.DecodeCSV(
            records=call["records"],
            record_defaults=call["record_defaults"],
            select_cols=[],
            **options,
        )
    )


def _dots(call: Call, x: tf.Tensor) -> tf.Tensor:
    products = tf.matmul(x, x, transpose_b=True)
    flat = tf.reshape(products, [-1, call["vectors"] ** 2])
    return tf.gather(flat, tf.constant(call["pairs"], tf.int64), axis=1)


def _squares(x: tf.Tensor, *, keep_dims: bool) -> tf.Tensor:
    total = tf.reduce_sum(x, 1, keepdims=keep_dims)
    return tf.square(total) - tf.reduce_sum(tf.square(x), 1, keepdims=keep_dims)
