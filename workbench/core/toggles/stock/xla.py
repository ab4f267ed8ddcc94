"""XLA: TensorFlow's compiler, which makes one kernel of what it can of a session's graph."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training


class _Xla(Toggle):
    def configure(self, choice: Any, config: Any) -> None:
        import tensorflow as tf

        options = config.graph_options.optimizer_options
        options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1
        # Without it, XLA leaves out what runs on a CPU.
        options.cpu_global_jit = True

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if is_function:
            return (
                "XLA compiles a tf.function as a whole, which its author says with "
                "jit_compile=True; make it a choice of your own: wb.Toggle('jit', [False, True])"
            )
        return ""

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return -0.4, 0.25

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        return [
            "config.graph_options.optimizer_options.global_jit_level = (",
            "    tf.compat.v1.OptimizerOptions.ON_1",
            ")",
            "config.graph_options.optimizer_options.cpu_global_jit = True",
        ]


XLA = _Xla(
    name="xla",
    choices=("off", "clusters"),
    label="XLA",
    help="TensorFlow's compiler makes one kernel of neighbouring ops, where it knows all of them.",
    training=Training.ROUNDED,
)
