"""Precision: products of matrices in float32, or in bfloat16.

A graph's optimizer chooses the ops of a session or a function. Keras's policy is for a model.
"""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import UnsupportedError
from workbench.keras_in_use import keras_in_use

_POLICY = "mixed_bfloat16"
_OPTION = "auto_mixed_precision_onednn_bfloat16"


class _Precision(Toggle):
    def prepare(self, choice: Any, *, is_function: bool) -> None:
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({_OPTION: True})
        if is_function:
            # Whether it is a model is known once its layers are made, and that is too late.
            keras_in_use().mixed_precision.set_global_policy(_POLICY)

    def arrange(self, choice: Any, step: Any, dataset: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        if not isinstance(step, tf.types.experimental.PolymorphicFunction):
            if not any(layer.compute_dtype == "bfloat16" for layer in getattr(step, "layers", ())):
                raise UnsupportedError("each layer of the model has a dtype of its own")
            # The layers say what is computed in 16 bits.
            tf.config.optimizer.set_experimental_options({_OPTION: False})
        return step, dataset

    def configure(self, choice: Any, config: Any) -> None:
        from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

        setattr(config.graph_options.rewrite_options, _OPTION, RewriterConfig.ON)

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return 0.05, 0.1

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        if is_function:
            return [
                f'tf.config.optimizer.set_experimental_options({{"{_OPTION}": True}})',
                f'# of a Keras model instead: keras.mixed_precision.set_global_policy("{_POLICY}")',
            ]
        return [f"config.graph_options.rewrite_options.{_OPTION} = 1  # RewriterConfig.ON"]


PRECISION = _Precision(
    name="precision",
    choices=("float32", "bfloat16"),
    label="precision",
    help="Products of matrices in 16 bits. This is another training: 3 digits instead of 7.",
    training=Training.ANOTHER,
)
