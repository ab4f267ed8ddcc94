"""TrainingStep: what a FunctionProgram's `make` returned, checked: a step and its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.core.function.first_trace import trace
from workbench.core.function.fused_function import fuse_function
from workbench.core.function.stage import takes_components
from workbench.core.fusion.fusion_plan import FusionPlan
from workbench.core.fusion.plan import plan_fusion
from workbench.core.fusion.verify.verification import Verification
from workbench.core.optimizations import Optimizations
from workbench.core.tf_graph.concrete_function import is_compiled
from workbench.errors import OptionError, RunError
from workbench.experiments.program.function_program import FunctionProgram, arguments_of_make
from workbench.experiments.program.refusals import refusals_named
from workbench.experiments.worker.steps.compiled_step import compiling, require_compiles
from workbench.experiments.worker.steps.keras_scores import scored_step
from workbench.experiments.worker.steps.scored_steps import has_scores
from workbench.keras_in_use import count_names_anew

_EXPECTED = (
    "expected (train_step, dataset) with a tf.function and a tf.data.Dataset, or (model, dataset) "
    "with a compiled Keras model"
)


def training_step(
    program: FunctionProgram, optimizations: Optimizations | None = None, *, scored: bool = False
) -> TrainingStep:
    """Calls a program's `make`, with the batch size and the author's toggles that are wished for.

    Args:
      program: what is run.
      optimizations: what it is made with; None makes it as it is.
      scored: the step of a model returns labels and scores, too, if they are one tensor each.

    Raises:
      OptionError: it returned something else than a step or a model, and a dataset, or lacks what
        a toggle changes.
    """
    # A trace of one build tells of the ops of another one by their names.
    count_names_anew()
    returned = program.make(**arguments_of_make(program, optimizations or Optimizations()))
    who = f"program {program.name!r}: make"
    if not tf.executing_eagerly():
        raise OptionError(
            f"{who} switched eager execution off, in which a tf.function is called; leave out "
            "tf.compat.v1.disable_eager_execution() and workbench.compat.v1, or give the graph as "
            "a wb.Program"
        )
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise OptionError(f"{who} returned {_kind(returned)}; {_EXPECTED}")
    step, dataset = returned
    if not isinstance(dataset, tf.data.Dataset):
        raise OptionError(
            f"{who} returned a dataset of type {type(dataset).__name__}; {_EXPECTED}; "
            "tf.data.Dataset.from_generator makes one of a Python generator"
        )
    step, dataset = _arranged(program, optimizations, step, dataset)
    if isinstance(step, tf.types.experimental.PolymorphicFunction):
        return TrainingStep(who, step, dataset, takes_components(step, dataset.element_spec))
    if callable(getattr(step, "train_step", None)) and callable(getattr(step, "fit", None)):
        function = _step_of_model(who, step, dataset, scored)
        fitted = TrainingStep(who, function, dataset, spread=False)
        # Which labels and scores its step has is known once it is made to return them.
        fitted.has_scores = not scored and callable(getattr(step, "compute_loss", None))
        fitted.end_counts = int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
        return fitted
    raise OptionError(
        f"{who} returned a step of type {type(step).__name__}; {_EXPECTED}"
        + ("; decorate the function with @tf.function" if callable(step) else "")
    )


def _arranged(
    program: FunctionProgram, optimizations: Optimizations | None, step: Any, dataset: Any
) -> tuple[Any, Any]:
    """The step and the dataset as toggles change them."""
    for each in optimizations.switched if optimizations else ():
        with refusals_named(program.name, each.label):
            step, dataset = each.toggle.arrange(each.value, step, dataset)
    return step, dataset


def _kind(returned: Any) -> str:
    if isinstance(returned, (tuple, list)):
        return f"{len(returned)} values"
    return f"a value of type {type(returned).__name__}"


def _step_of_model(who: str, model: Any, dataset: tf.data.Dataset, scored: bool) -> Any:
    """The training step of a Keras model, its weights built by one step of `fit`."""
    if not getattr(model, "compiled", getattr(model, "_is_compiled", True)):
        raise OptionError(
            f"{who} returned the model {model.name!r}, which is not compiled; call "
            "model.compile(optimizer=…, loss=…) in make"
        )
    if getattr(model, "run_eagerly", False):
        raise OptionError(
            f"{who} returned the model {model.name!r} compiled with run_eagerly=True, so it has "
            "no graph; compile it with run_eagerly=False"
        )
    with compiling(who):
        model.fit(dataset.repeat(), steps_per_epoch=1, epochs=1, verbose=0, shuffle=False)
    model.reset_metrics()
    compiled = getattr(model, "jit_compile", None)
    step = scored_step(model) if scored else model.train_step
    return tf.function(step, autograph=False, jit_compile=compiled)


class TrainingStep:
    """A step and its data.

    Attributes:
      dataset: the data.
      has_loss, has_fingerprint, has_scores: what the step returns, or the step of a model that is
        made to be scored; known once `concrete` was called.
      inject_prefetch: whether tf.data adds a prefetch by itself, in words.
      own_prefetch: whether the pipeline has one.
      end_counts: whether the model's own `fit` counts a step at each end of the data.
    """

    def __init__(self, who: str, step: Any, dataset: tf.data.Dataset, spread: bool) -> None:
        self.dataset = dataset
        self.has_loss = self.has_fingerprint = self.has_scores = self.end_counts = False
        chosen = dataset.options().experimental_optimization.inject_prefetch
        self.inject_prefetch = {None: "on, TensorFlow's default", True: "on", False: "off"}[chosen]
        self.own_prefetch = _prefetches(dataset)
        self._who = who
        self._step = step
        self._spread = spread
        self._in_dict = False
        self._fused: Any = None
        self._plain: tuple[Any, FusionPlan] | None = None

    def concrete(self) -> Any:
        """The step's function, traced for any element; later calls run this trace as well.

        Raises:
          OptionError: it returns neither a loss, nor a dict, nor nothing, or XLA is to compile it
            and cannot.
        """
        spec = self.dataset.element_spec
        function = trace(self._step, *(spec if self._spread else (spec,)))
        returned = function.structured_outputs
        self._in_dict = isinstance(returned, dict)
        if self._in_dict:
            loss, fingerprint = returned.get("loss"), returned.get("fingerprint")
        else:
            loss, fingerprint = returned, None
        if self._in_dict and has_scores(returned.get("labels"), returned.get("scores")):
            self.has_scores = loss is not None
        self.has_loss = loss is not None
        self.has_fingerprint = fingerprint is not None
        if self.has_loss and not _is_scalar(loss, floating=True):
            raise OptionError(
                f"{self._who}: the step returns {_described(loss)}; expected the loss, a scalar "
                "floating-point tensor, or a dict with it as 'loss'; reduce it with tf.reduce_mean"
            )
        if self.has_fingerprint and not _is_scalar(fingerprint, floating=False):
            raise OptionError(
                f"{self._who}: the step returns {_described(fingerprint)} as 'fingerprint'; "
                "expected a scalar integer"
            )
        if is_compiled(function):
            element = next(iter(self.dataset))
            require_compiles(self._who, self._step, element if self._spread else (element,))
        return function

    def fused(self, function: Any) -> Any:
        """The function with its stock lookups fused, which later calls run."""
        plan = plan_fusion(function)
        fused = fuse_function(function, plan)
        self._fused = None if fused is function else fused
        self._plain = function, plan
        return fused

    def verify(self) -> Verification:
        """Compares what is fused with the function as it was, on the first element.

        Raises:
          RunError: nothing was to be fused.
        """
        if self._plain is None:
            raise RunError("nothing of this step is fused, so nothing can be verified")
        function, plan = self._plain
        return plan.verify(function, next(iter(self.dataset)))

    def call(self, element: Any) -> Any:
        """Runs the step on an element."""
        # In its own structure: before TensorFlow takes a flat list, it writes all of it into the
        # words of an error.
        step = self._step if self._fused is None else self._fused
        return step(*element) if self._spread else step(element)

    def reader(self, fetch: str) -> Callable[[Any], Any] | None:
        """What gets "loss" or "fingerprint" out of a step's result; None for "nothing"."""
        if fetch == "nothing":
            return None
        if self._in_dict:
            return lambda result: result[fetch].numpy()
        return lambda result: result.numpy()


def _is_scalar(value: Any, *, floating: bool) -> bool:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if not isinstance(dtype, tf.DType) or not isinstance(shape, tf.TensorShape):
        return False
    return shape.rank in (0, None) and (dtype.is_floating if floating else dtype.is_integer)


def _described(value: Any) -> str:
    if isinstance(getattr(value, "shape", None), tf.TensorShape):
        return f"a {value.dtype.name} tensor of shape {value.shape}"
    return f"a {type(value).__name__}"


def _prefetches(dataset: tf.data.Dataset) -> bool:
    """Whether a prefetch stands anywhere in a pipeline."""
    return "Prefetch" in type(dataset).__name__ or any(map(_prefetches, dataset._inputs()))
