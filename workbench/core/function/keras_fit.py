"""ModelStage: `fit` of a Keras model with the staged half of its training step run ahead.

The one thing changed is the instance's `make_train_function`, which `fit` asks for the function
that it calls once for each batch, or steps_per_execution of them, with the iterator of the epoch.
What `fit` reads, counts, logs and calls back stays Keras's.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.core.function.first_trace import trace
from workbench.core.function.keras_trainer import Wants, require_graph, require_known
from workbench.core.function.plan import plan_function
from workbench.core.function.rewrite import split
from workbench.core.function.run import FunctionRun, FunctionRunner, FunctionRunners, build_runner
from workbench.core.options import SmartStageOptions
from workbench.core.planning.stage_plan import StagePlan

_WANTS = Wants(
    what="a smart stage",
    eager="so it has no graph to cut",
    instead="A training loop of your own can be staged as a tf.function",
    undo="remove() its stage",
)


def smart_stage_model(model: Any, options: SmartStageOptions | None = None) -> ModelStage:
    """Runs ahead of each training step of a Keras model what in it depends on the batch alone.

    `model.fit` is called as always and trains the same weights, bit for bit with one producer.
    `evaluate`, `predict` and `train_on_batch` are as before. Batches are read ahead: with
    steps_per_epoch those are used in the next epoch, and dropped after the last one. A PyDataset,
    which hears of each epoch's end, is not read beyond it.

    Where the length of the data is not known, plain Keras finds its end with a step that has no
    batch but counts in `optimizer.iterations` (33 after 3 epochs of 10 batches) and in the seeds of
    dropout; a staged one does not (30), so a learning rate that follows the iterations, and with it
    the history, differ from the second epoch on. `tf.data.experimental.assert_cardinality` gives
    the data a length, with which both are equal.

    Args:
      model: a Keras 3 model on the TensorFlow backend; it may be compiled before or after, and
        again. A model that XLA compiles (jit_compile=True, which "auto" takes where it can) is not
        cut: its batches alone are fetched ahead.
      options: None means the defaults.

    Returns:
      A handle: `remove()`, or the end of a `with` block, undoes it; `plan` says what runs ahead.
      A model that is staged already keeps its handle, which takes the new options.

    Raises:
      OptionError: not a model.
      UnsupportedError: another Keras or backend; a model that makes its own train function, or is
        compiled to run eagerly or under a distribution strategy.
    """
    require_known(model, _WANTS)
    if model.compiled:
        require_graph(model, _WANTS)
    chosen = options or SmartStageOptions()
    present = getattr(model.make_train_function, "__self__", None)
    if not isinstance(present, ModelStage):
        return ModelStage(model, chosen)
    if present.options != chosen:
        present.options = chosen
        present.reset()
    return present


class ModelStage:
    """What stages one model; made by `smart_stage_model`.

    Attributes:
      options: as given.
      plan: what runs ahead and why the rest does not; None until `fit` has run a step.
    """

    def __init__(self, model: Any, options: SmartStageOptions) -> None:
        self.options = options
        self.plan: StagePlan | None = None
        self._model = model
        self._staged: _StagedFit | None = None
        model.make_train_function = self._make_train_function
        self.reset()

    def remove(self) -> None:
        """Has the model train as it did before; twice does nothing more."""
        model = self._model
        present = model and model.__dict__.get("make_train_function")
        if getattr(present, "__self__", None) is self:
            del model.make_train_function
            self.reset()
            self._model = None

    def reset(self) -> None:
        """Ends what runs ahead; the next `fit` makes its function anew."""
        if self._staged:
            self._staged.stop()
        self._staged = self.plan = None
        if self._model is not None:
            self._model.train_function = None

    def __enter__(self) -> ModelStage:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def _make_train_function(self, force: bool = False) -> Any:
        """Stands in for the model's method of that name."""
        model = self._model
        if model.train_function is None or force:
            require_graph(model, _WANTS)
            self.reset()
            type(model).make_train_function(model, force=True)
            self._staged = _StagedFit(self, model, model.train_function)
            model.train_function = self._staged
        # `fit` has made what goes through its epochs; no argument or attribute tells of it.
        epochs = sys._getframe(1).f_locals.get("epoch_iterator")
        if epochs is not None and self._staged is not None:
            self._staged.epoch_steps = _epoch_steps(epochs)
        return model.train_function


def _epoch_steps(epochs: Any) -> int | None:
    """The batches of an epoch whose end the data is told of, while its iterator goes on; or None.

    Such data, as a PyDataset with workers, must not be read beyond that end.
    """
    adapter = epochs.data_adapter
    told = next(c for c in type(adapter).__mro__ if "on_epoch_end" in vars(c))
    if not epochs.steps_per_epoch or told.__name__ == "DataAdapter":
        return None
    calls = math.ceil(epochs.steps_per_epoch / epochs.steps_per_execution)
    return int(calls * epochs.steps_per_execution)


class _StagedFit:
    """The train function of a staged model: takes an epoch's iterator, runs the next step.

    Attributes:
      epoch_steps: of the `fit` that runs, as of `FunctionRunners.start`.
    """

    def __init__(self, stage: ModelStage, model: Any, plain: Callable[[Any], Any]) -> None:
        self.epoch_steps: int | None = None
        self._stage = stage
        self._model = model
        self._plain = plain
        self._steps = model.steps_per_execution
        self._runners: list[tuple[Any, FunctionRunners]] = []
        # An iterator that Keras drops, at the end of an epoch or of all, ends its run.
        self._runs: weakref.WeakKeyDictionary[Any, FunctionRun] = weakref.WeakKeyDictionary()

    def __call__(self, iterator: Any) -> Any:
        if not isinstance(iterator, tf.data.Iterator):
            return self._plain(iterator)
        run = self._runs.get(iterator) or self._start(iterator)
        logs = run.step()
        for _ in range(1, self._steps):
            try:
                logs = run.step()
            except StopIteration:
                # As Keras does: the steps that there were count; the next call finds the end.
                break
        return logs

    def stop(self) -> None:
        """Ends all that runs ahead."""
        for run in list(self._runs.values()):
            run.stop()

    def _start(self, iterator: Any) -> FunctionRun:
        spec = iterator.element_spec
        runners = next((each for known, each in self._runners if known == spec), None)
        if runners is None:
            runners = FunctionRunners(lambda: self._build(spec))
            self._runners.append((spec, runners))
        run = runners.start(iterator, self.epoch_steps)
        self._runs[iterator] = run
        weakref.finalize(iterator, run.stop).atexit = False
        return run

    def _build(self, element_spec: Any) -> FunctionRunner:
        step = tf.function(
            self._model.train_step,
            autograph=False,
            reduce_retracing=True,
            jit_compile=self._model.jit_compile,
        )
        function = trace(step, _without_optionals(element_spec))
        plan = plan_function(function, self._stage.options)
        self._stage.plan = plan
        return build_runner(split(function, plan), element_spec, _without_optionals)


def _without_optionals(element: Any) -> Any:
    """An element, or its spec, with None for what is missing, as Keras hands it to a step."""
    missing = (tf.experimental.Optional, tf.OptionalSpec)
    return tf.nest.map_structure(lambda leaf: None if isinstance(leaf, missing) else leaf, element)
