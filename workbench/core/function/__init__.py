"""Stages of a `tf.function` or of a Keras fit."""
