"""FunctionStage: an iterable of a step's results whose staged half runs ahead of them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.core.function.first_trace import trace
from workbench.core.function.plan import plan_function
from workbench.core.function.rewrite import split
from workbench.core.function.run import (
    FunctionRun,
    FunctionRunner,
    FunctionRunners,
    build_runner,
)
from workbench.core.options import SmartStageOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.tf_graph.concrete_function import arguments_of
from workbench.errors import OptionError, UnsupportedError


def smart_stage_function(
    train_step: Any, dataset: tf.data.Dataset, options: SmartStageOptions | None = None
) -> FunctionStage:
    """Runs ahead of `train_step` what in it depends on the batch alone.

    Iterating gives what `for element in dataset: train_step(*element)` gives, in the same order,
    and bit for bit what `train_step` gives when it is traced for `dataset.element_spec`. Each loop
    is a new epoch, with a new iterator of the dataset. The elements are read ahead: a loop that is
    left early has used up more of a dataset with a state of its own.

    Args:
      train_step: a `tf.function`, or a concrete one. It is given a tuple element as its components,
        `train_step(*element)`, when it takes that many arguments, and otherwise, like every other
        element, as one argument, `train_step(element)`.
      dataset: a `tf.data.Dataset`. End it with `prefetch`, so that reading is ahead as well.
      options: None means the defaults.

    Returns:
      The iterable; its `plan` says what runs ahead and why the rest does not.

    Raises:
      OptionError: not a `tf.function`, not a dataset, or elements that the function cannot take.
      UnsupportedError: eager execution is off, or a dataset of several workers or replicas.
    """
    _require_eager()
    kinds = (tf.types.experimental.PolymorphicFunction, tf.types.experimental.ConcreteFunction)
    if not isinstance(train_step, kinds):
        raise OptionError(
            f"train_step is {train_step!r} of type {type(train_step).__name__}; expected a "
            "tf.function: decorate it with @tf.function"
        )
    _require_local(dataset)
    if not isinstance(dataset, tf.data.Dataset):
        raise OptionError(
            f"dataset is of type {type(dataset).__name__}; expected a tf.data.Dataset, such as "
            "tf.data.Dataset.from_generator makes of a Python generator"
        )
    return FunctionStage(train_step, dataset, options or SmartStageOptions())


class FunctionStage:
    """An iterable of the results of a step; each iteration is an epoch with threads of its own."""

    def __init__(
        self, train_step: Any, dataset: tf.data.Dataset, options: SmartStageOptions
    ) -> None:
        self._step = train_step
        self._dataset = dataset
        self._options = options
        # The flat tensors of a concrete function are in the same order either way.
        self._spread = isinstance(
            train_step, tf.types.experimental.ConcreteFunction
        ) or takes_components(train_step, dataset.element_spec)
        self._runners = FunctionRunners(self._build)

    @functools.cached_property
    def plan(self) -> StagePlan:
        """What runs ahead and why; the step is traced when this, or the first epoch, needs it."""
        return plan_function(self._function, self._options)

    def __iter__(self) -> StepIterator:
        """Starts an epoch: its producers run ahead from here on."""
        _require_eager()
        return StepIterator(self._runners.start(iter(self._dataset)))

    @functools.cached_property
    def _function(self) -> Any:
        spec = self._dataset.element_spec
        arguments = spec if self._spread else (spec,)
        if isinstance(self._step, tf.types.experimental.ConcreteFunction):
            function = self._step
        else:
            function = trace(self._step, *arguments)
        _require_same(function, arguments)
        return function

    def _build(self) -> FunctionRunner:
        return build_runner(split(self._function, self.plan), self._dataset.element_spec)


class StepIterator(Iterator[Any]):
    """The results of one epoch. Its threads end with the data, on an error, when it is closed and
    when nothing refers to it any more."""

    def __init__(self, run: FunctionRun) -> None:
        self._step = run.step
        self._stop = weakref.finalize(self, run.stop)
        self._stop.atexit = False

    def __next__(self) -> Any:
        return self._step()

    def close(self) -> None:
        """Stops the producers; there are no more results."""
        self._stop()


def takes_components(train_step: Any, element_spec: Any) -> bool:
    """Whether a step is given the components of a tuple, or the element as it is.

    Raises:
      OptionError: it can be given neither, or both and which is not clear.
    """
    parameters = train_step.function_type.parameters.values()
    kinds = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    kinds += [each for each in parameters if each.kind is each.POSITIONAL_ONLY]
    least, most = sum(not each.optional for each in kinds), len(kinds)
    any_number = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    asked = [
        each.name for each in parameters if each.kind is each.KEYWORD_ONLY and not each.optional
    ]
    count = len(element_spec) if isinstance(element_spec, tuple) else None
    spread = count is not None and least <= count and (any_number or count <= most)
    whole = least <= 1 and (any_number or most >= 1)
    types = f"the step is a function of {train_step.function_type}, an element is {element_spec}"
    if asked or not (spread or whole):
        raise OptionError(
            f"{types}; expected one argument for each component of a tuple, or a single one for "
            "the whole element, and none besides without a default"
        )
    if spread and whole and not any_number and count != 1 and most > 1:
        raise OptionError(
            f"{types}; its defaults leave open whether it wants the components or the element: "
            "wrap it in a tf.function without them"
        )
    return spread


def _require_eager() -> None:
    if not tf.executing_eagerly():
        raise UnsupportedError(
            "smart_stage of a tf.function runs eagerly, but a graph is being built here; call it "
            "outside tf.function and tf.Graph, or stage the graph of a session"
        )


def _require_local(dataset: Any) -> None:
    """Refuses the datasets of `tf.distribute`, with what to use instead."""
    kind = type(dataset).__name__
    if isinstance(dataset, tf.distribute.DistributedDataset):
        raise UnsupportedError(
            f"dataset is a {kind}, with a value for each replica, but a smart stage hands over "
            "what all replicas of this process read; give it the tf.data.Dataset itself, and have "
            "the function of strategy.run take its part by "
            "tf.distribute.get_replica_context().replica_id_in_sync_group"
        )
    if kind.startswith("PerWorker") and hasattr(dataset, "__iter__"):
        raise UnsupportedError(
            f"dataset is a {kind}, which other workers read, but a smart stage runs ahead in its "
            "own process; put what may run ahead, which wb.find_boundary(train_step) names, into "
            "the function of create_per_worker_dataset, as in dataset.map(…).prefetch(2), or train "
            "in the sessions of `workbench cluster`, where each worker has its stage"
        )


def _require_same(function: Any, arguments: Any) -> None:
    """Requires that the flat arguments of a function are the flat components of an element."""
    leaves = tf.nest.flatten(arguments, expand_composites=True)
    given = [leaf.dtype for leaf in leaves if isinstance(leaf, tf.TensorSpec)]
    taken = [tensor.dtype for tensor in arguments_of(function)]
    if given != taken:
        raise OptionError(
            f"the step takes tensors of {[d.name for d in taken]}, but an element of the dataset "
            f"has {[d.name for d in given]}"
        )
