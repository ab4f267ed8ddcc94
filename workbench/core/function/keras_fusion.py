"""ModelFusion: a Keras model's own steps with lookups and other layers done by few ops.

The one thing changed are the instance's `train_step`, `test_step` and `predict_step`, which Keras
builds into the functions that it calls: there each builds the nodes of the model's own step, as a
fusion plan makes them. What `fit` reads, counts, logs and calls back stays Keras's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from workbench.core.function.first_trace import trace
from workbench.core.function.fused_function import build_fused, require_fusible
from workbench.core.function.keras_trainer import Wants, require_graph, require_known
from workbench.core.fusion.fusion_plan import FusionPlan
from workbench.core.fusion.plan import plan_fusion
from workbench.core.fusion.verify.verification import Verification
from workbench.core.tf_graph.concrete_function import arguments_of
from workbench.errors import UnsupportedError
from workbench.ignored import warn_ignored

_STEPS = ("train", "test", "predict")
_WANTS = Wants(
    what="fused lookups",
    eager="so it has no graph in which lookups are found",
    instead="The function of a training loop of your own is fused by wb.fuse_function",
    undo="remove() its fusion",
)


def fuse_model(model: Any, *, verify: Any = None) -> ModelFusion:
    """Has few ops do the stock embedding lookups of a Keras model, and other layers.

    `fit`, `evaluate`, `predict` and the `…_on_batch` methods are called as always. Model, optimizer
    and what is saved stay what they are. Results are those of Keras, but for the order in which
    numbers are summed. These are fused:

    - lookups, their gradients, and the updates of tables by optimizers whose updates `plan_fusion`
      knows.
    - what prepares the ids of embeddings.
    - batch normalizations where they train.
    - interactions of vectors: dots, and those of factorization machines.

    Another kernel does products of matrices in gradients, where `plan_fusion` says.

    XLA has no fused lookups: from now on the model is compiled without it, where Keras chose it
    (jit_compile="auto").

    Args:
      model: a Keras 3 model on the TensorFlow backend; it may be compiled before or after, and
        again, and have a `train_step` of its own.
      verify: a batch as `train_on_batch` takes it, `(x, y)` or with weights. On it each step is
        compared with the model's own before it is used, on copies of the variables. None compares
        nothing.

    Returns:
      A handle: `remove()`, or the end of a `with` block, undoes it; `describe()` says what is fused
      and why the rest is not. A model that is fused already keeps its handle.

    Raises:
      OptionError: not a model. In a step that runs first: the batch does not fit it.
      PlanError: in a step that runs first: fused, it does not do what the model's own does.
      UnsupportedError: another Keras or backend; a model that makes its own train function, runs
        eagerly, under a distribution strategy, or is compiled with jit_compile=True.
    """
    require_known(model, _WANTS)
    present = getattr(model.__dict__.get("train_step"), "func", None)
    owner = getattr(present, "__self__", None)
    if isinstance(owner, ModelFusion):
        return owner
    if model.compiled:
        require_graph(model, _WANTS)
        _require_no_xla(model)
    return ModelFusion(model, verify)


class ModelFusion:
    """What fuses one model's lookups and other layers; made by `fuse_model`.

    Attributes:
      plans: of "train", "test" and "predict" what was done to the step; those that have run.
      verified: of the same what a comparison with the model's own step says, where one was asked
        for.
    """

    def __init__(self, model: Any, verify: Any = None) -> None:
        self.plans: dict[str, FusionPlan] = {}
        self.verified: dict[str, Verification] = {}
        self._batch = verify
        self._model = model
        self._could_compile = model.supports_jit
        model.supports_jit = False
        if model.compiled:
            model.jit_compile = False
        for name in _STEPS:
            own = getattr(model, f"{name}_step")
            setattr(model, f"{name}_step", functools.partial(self._step, name, own))
        self._reset()

    @property
    def plan(self) -> FusionPlan | None:
        """The plan of the training step; None until it has run."""
        return self.plans.get("train")

    def describe(self) -> str:
        """What is fused in which step, and why the rest is not, in words."""
        parts = [self._described(name) for name in _STEPS if name in self.plans]
        return "\n".join(parts) or "no step has run yet: call fit, evaluate or predict"

    def remove(self) -> None:
        """Has the model look up as it did before; twice does nothing more."""
        model = self._model
        present = model and getattr(model.__dict__.get("train_step"), "func", None)
        if getattr(present, "__self__", 0) is self:
            for name in _STEPS:
                delattr(model, f"{name}_step")
            model.supports_jit = self._could_compile
            self._reset()
            self._model = None

    def __enter__(self) -> ModelFusion:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"ModelFusion({self.plans})"

    def _reset(self) -> None:
        """Has Keras make its functions anew."""
        self.plans.clear()
        self.verified.clear()
        for name in _STEPS:
            setattr(self._model, f"{name}_function", None)

    def _step(self, name: str, step: Callable[[Any], Any], data: Any) -> Any:
        """Stands in for one of the model's steps."""
        if self._model.run_eagerly:
            require_graph(self._model, _WANTS)
        if tf.config.functions_run_eagerly():
            warn_ignored(
                "fuse_model(model)",
                self._model.name,
                "after tf.config.run_functions_eagerly(True) the model's own steps run op by op",
            )
        # Called by hand; or under a tape, which could not differentiate what is fused already.
        if tf.executing_eagerly() or record.could_possibly_record():
            return step(data)
        require_graph(self._model, _WANTS)
        function = trace(tf.function(step, autograph=False), _specs(data))
        require_fusible(function)
        # Also where nothing is fused: Keras's own step would be traced once more.
        plan = self.plans[name] = plan_fusion(function)
        if self._batch is not None and name not in self.verified:
            self._verify(name, plan, function)
        batch = [each for each in tf.nest.flatten(data, expand_composites=True) if each is not None]
        return build_fused(function, plan, batch)

    def _verify(self, name: str, plan: FusionPlan, function: Any) -> None:
        """Compares a step with the model's own; to predict, a batch has no labels."""
        given = tf.nest.flatten(self._batch, expand_composites=True)
        given = [each for each in given if each is not None][: len(arguments_of(function))]
        self.verified[name] = plan.verify(function, given).require()

    def _described(self, name: str) -> str:
        lines = self.plans[name].describe().splitlines()
        if name in self.verified:
            verified = self.verified[name].describe().splitlines()
            lines += [f"verified: {line}" for line in verified]
        return "\n  ".join([f"{name} step:", *lines])


def _specs(data: Any) -> Any:
    """The specs of a batch, None where something is missing."""
    return tf.nest.map_structure(lambda x: None if x is None else tf.type_spec_from_value(x), data)


def _require_no_xla(model: Any) -> None:
    # Serialized, as `get_compile_config` gives them, not all arguments are to be had.
    asked = model._compile_config.config.get("jit_compile")
    if asked is True and model.jit_compile:
        raise UnsupportedError(
            f"model {model.name!r} is compiled with jit_compile=True, and XLA has no fused "
            'lookups; compile it with jit_compile=False or "auto"'
        )
