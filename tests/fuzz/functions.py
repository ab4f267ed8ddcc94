"""Programs as a `tf.function` that is a step, called as it is and fused."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import workbench as wb
from tests.fuzz import data
from tests.fuzz.built import is_trained
from tests.fuzz.compare import differences
from tests.fuzz.parts import build_parts
from tests.fuzz.program import Program
from tests.fuzz.result import Result
from tests.fuzz.sessions import Outcome, failure
from tests.fuzz.training import made_optimizers, train_op
from tests.fuzz.world import World

_NUDGE = 2e-7


@dataclasses.dataclass(kw_only=True)
class Step:
    """A traced step, and what it changes.

    Attributes:
      program: that it is of.
      function: the concrete function, of a limit and the batch.
      variables: all variables by name, slots too; `trained` are those that are trained.
      start: the values that they begin with.
    """

    program: Program
    function: Any
    variables: Mapping[str, Any]
    trained: Sequence[Any]
    start: Mapping[str, Any]

    def reset(self) -> None:
        """Sets all variables back."""
        for name, variable in self.variables.items():
            variable.assign(self.start[name])


class EagerVariables:
    """Makes variables outside of the function that is traced."""

    def __init__(self, nudge: float) -> None:
        self.made: dict[str, Any] = {}
        self.trained: list[Any] = []
        self._nudge = nudge

    def __call__(self, name: str, value: Any, resource: bool) -> Any:
        """Makes one, once though the function is traced twice; see `World`."""
        if name in self.made:
            return self.made[name]
        trains = is_trained(name, value)
        if trains and self._nudge:
            random = np.random.RandomState(len(name))
            factor = 1 + self._nudge * random.uniform(-1, 1, np.shape(value))
            value = (value * factor).astype(value.dtype)
        with tf.init_scope():
            found = tf.Variable(value, trainable=trains, name=name.replace("/", "_"))
        self.made[name] = found
        if trains:
            self.trained.append(found)
        return found


def trace(program: Program, nudge: float = 0.0) -> Step:
    """The step of a program, traced once."""
    example, variables = data.given(program, 0), EagerVariables(nudge)
    optimizers = made_optimizers(program)

    def step(limit: tf.Tensor, *batch: tf.Tensor) -> dict[str, tf.Tensor]:
        world = World(program, dict(zip(example, batch, strict=True)), variables, limit)
        build_parts(world)
        if not program.outside:
            train_op(world, variables.trained, optimizers)
        named = {f"loss {number}": each for number, each in enumerate(world.losses)}
        return named | {f"metric {number}": each for number, each in enumerate(world.metrics)}

    specs = [
        tf.TensorSpec(
            data.shape_of(program, name, value),
            tf.string if value.dtype == object else value.dtype,
        )
        for name, value in example.items()
    ]
    function = tf.function(step, autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec([], tf.int64), *specs)
    named = dict(variables.made)
    for number, optimizer in enumerate(optimizers):
        slots = optimizer.variables
        for at, each in enumerate(slots() if callable(slots) else slots):
            named[f"slot {number}.{at}"] = each
    start = {name: each.numpy() for name, each in named.items()}
    return Step(
        program=program, function=concrete, variables=named, trained=variables.trained, start=start
    )


def check(program: Program) -> Result:
    """Calls a step as it is, then fused, from the same variables."""
    result = Result(program=program, steps=len(program.runs))
    try:
        step = trace(program)
    except (TypeError, ValueError, LookupError, tf.errors.OpError) as error:
        result.skipped = f"{type(error).__name__}: {error}"[:200]
        return result
    stock = outcomes(step, step.function)
    try:
        plan = wb.plan_fusion(step.function)
        fused = wb.fuse_function(step.function, plan if program.seed % 2 else None)
    except wb.WorkbenchError as error:
        result.add("plan", "planning", f"{type(error).__name__}: {error}")
        return result
    result.fused = plan.count
    if fused is step.function:
        return result
    found = outcomes(step, fused)
    labels = [f"call {number}: {run.what}" for number, run in enumerate(program.runs)]
    seen = list(differences(stock, found, labels))
    if not seen:
        return result
    again = [outcomes(step, step.function)]
    nudged = trace(program, _NUDGE)
    again.append(outcomes(nudged, nudged.function))
    varying = {
        (each.where, each.kind, each.name)
        for other in again
        for each in differences(stock, other, labels, 1e-5)
    }
    first = min((labels.index(where) for where, _, _ in varying), default=len(labels))
    result.differences = [
        each
        for each in seen
        if labels.index(each.where) <= first and (each.where, each.kind, each.name) not in varying
    ]
    result.varied = len(seen) - len(result.differences)
    return result


def outcomes(step: Step, function: Any) -> list[Outcome]:
    """What a function gives for each run of the program, from the variables' first values."""
    step.reset()
    found = []
    for number, run in enumerate(step.program.runs):
        batch = [tf.constant(each) for each in data.given(step.program, number).values()]
        limit = tf.constant(3 if run.what == "fail" else 9, tf.int64)
        try:
            values = _called(step, function, [limit, *batch])
        except Exception as error:
            found.append(failure(error))
            step.reset()
            continue
        state = {name: each.numpy() for name, each in step.variables.items()}
        found.append(Outcome(values=values, state=state))
    return found


def _called(step: Step, function: Any, batch: Sequence[tf.Tensor]) -> dict[str, Any]:
    if not step.program.outside:
        return {name: each.numpy() for name, each in function(*batch).items()}
    with tf.GradientTape() as tape:
        named = function(*batch)
        total = tf.add_n([each for name, each in named.items() if name.startswith("loss")])
    gradients = tape.gradient(total, step.trained)
    found = {name: each.numpy() for name, each in named.items()}
    for number, each in enumerate(gradients):
        value = None if each is None else tf.convert_to_tensor(each).numpy()
        found[f"gradient {number}"] = value
    return found
