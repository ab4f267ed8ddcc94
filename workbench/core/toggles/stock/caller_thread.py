"""The thread that calls: a session's ops run on it, as TensorFlow itself offers."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training


class _CallerThread(Toggle):
    def configure(self, choice: Any, config: Any) -> None:
        config.inter_op_parallelism_threads = -1

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if is_function:
            return "a tf.function has no session whose ops run on the caller's thread"
        return ""

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return -0.15, 0.15

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        return ["config.inter_op_parallelism_threads = -1"]


CALLER_THREAD = _CallerThread(
    name="caller_thread",
    choices=("off", "on"),
    label="caller thread",
    help="Ops run on the thread that calls Session.run, or that brings a batch; no pool has them.",
    training=Training.SAME,
)
