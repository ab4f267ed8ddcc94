"""XLA: TensorFlow's compiler, for parts of a session's graph or for a function as a whole."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import UnsupportedError

_CLUSTERS, _FUNCTION = "clusters", "function"


class _Xla(Toggle):
    def configure(self, choice: Any, config: Any) -> None:
        import tensorflow as tf

        options = config.graph_options.optimizer_options
        options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1
        # Without it, XLA leaves out what runs on a CPU.
        options.cpu_global_jit = True

    def arrange(self, choice: Any, step: Any, dataset: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        if isinstance(step, tf.types.experimental.PolymorphicFunction):
            return _compiled_function(step), dataset
        return _compiled_model(step), dataset

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if is_function and choice == _CLUSTERS:
            return "clusters are of a session's graph; of a tf.function have xla=function"
        if not is_function and choice == _FUNCTION:
            return "a session has no tf.function to compile as a whole; have xla=clusters"
        return ""

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return (-0.4, 0.25) if choice == _CLUSTERS else (0.0, 0.2)

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        if choice == _FUNCTION:
            return [
                "train_step = tf.function(train_step.python_function, jit_compile=True)",
                "# of a Keras model: model.compile(…, jit_compile=True)",
            ]
        return [
            "config.graph_options.optimizer_options.global_jit_level = (",
            "    tf.compat.v1.OptimizerOptions.ON_1",
            ")",
            "config.graph_options.optimizer_options.cpu_global_jit = True",
        ]


def _compiled_function(step: Any) -> Any:
    """The same tf.function, compiled by XLA; what its author called stays as it is."""
    if step._jit_compile:
        raise UnsupportedError("XLA compiles the step already, by its jit_compile=True")
    compiled = step._clone(None)
    compiled._jit_compile = True
    return compiled


def _compiled_model(model: Any) -> Any:
    if getattr(model, "jit_compile", None):
        raise UnsupportedError(
            "XLA compiles the model already: Keras has jit_compile='auto' where it is not False"
        )
    model.jit_compile = True
    if not model.jit_compile:
        raise UnsupportedError("the model has a layer of which Keras says that XLA cannot have it")
    # What was made before stays uncompiled.
    model.train_function = None
    return model


XLA = _Xla(
    name="xla",
    choices=("off", _CLUSTERS, _FUNCTION),
    label="XLA",
    help=(
        "TensorFlow's compiler makes one kernel of neighbouring ops, where it knows all of them, "
        "or of a whole function."
    ),
    training=Training.ROUNDED,
)
