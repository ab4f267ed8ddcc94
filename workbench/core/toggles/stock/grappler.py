"""Grappler: TensorFlow's graph optimizer, which rewrites a graph before its first run."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training

_OFF, _NO_MEMORY = "off", "no_memory_optimizer"


class _Grappler(Toggle):
    def prepare(self, choice: Any, *, is_function: bool) -> None:
        import tensorflow as tf

        if choice == _OFF:
            tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

    def configure(self, choice: Any, config: Any) -> None:
        from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

        options = config.graph_options.rewrite_options
        if choice == _OFF:
            options.disable_meta_optimizer = True
        if choice == _NO_MEMORY:
            options.memory_optimization = RewriterConfig.NO_MEM_OPT

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if is_function and choice == _NO_MEMORY:
            return "tf.config has no switch for the memory optimizer, so only sessions have it"
        return ""

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return (-0.02, 0.05) if choice == _OFF else (0.0, 0.02)

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        if is_function:
            off = '{"disable_meta_optimizer": True}'
            return [f"tf.config.optimizer.set_experimental_options({off})"]
        if choice == _OFF:
            return ["config.graph_options.rewrite_options.disable_meta_optimizer = True"]
        return ["config.graph_options.rewrite_options.memory_optimization = 1  # NO_MEM_OPT"]


GRAPPLER = _Grappler(
    name="grappler",
    choices=("default", _OFF, _NO_MEMORY),
    label="Grappler",
    help="TensorFlow's graph optimizer: as it is, off, or without the pass that saves memory.",
    training=Training.ROUNDED,
)
