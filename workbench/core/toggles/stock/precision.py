"""Precision: products of matrices in float32, or in bfloat16 by TensorFlow's graph optimizer."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training

_OPTION = "auto_mixed_precision_onednn_bfloat16"


class _Precision(Toggle):
    def prepare(self, choice: Any) -> None:
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({_OPTION: True})

    def configure(self, choice: Any, config: Any) -> None:
        from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

        setattr(config.graph_options.rewrite_options, _OPTION, RewriterConfig.ON)

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return 0.05, 0.1

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        if is_function:
            return [f'tf.config.optimizer.set_experimental_options({{"{_OPTION}": True}})']
        return [f"config.graph_options.rewrite_options.{_OPTION} = 1  # RewriterConfig.ON"]


PRECISION = _Precision(
    name="precision",
    choices=("float32", "bfloat16"),
    label="precision",
    help="Products of matrices in 16 bits. This is another training: 3 digits instead of 7.",
    training=Training.ANOTHER,
)
