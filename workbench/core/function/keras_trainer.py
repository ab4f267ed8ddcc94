"""Which Keras models' own steps can be taken and changed, and why the others cannot."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import logging
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError, UnsupportedError

_LOG = logging.getLogger("workbench")
_TRAINER = "keras.src.backend.tensorflow.trainer"
# The minor versions of Keras 3 that this was written for and tried with.
KNOWN = (15,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wants:
    """What is to be done to a model, in the words of its refusals.

    Attributes:
      what: a noun.
      eager: why a model that runs eagerly cannot have it, a clause.
      instead: what to do with a trainer that is not Keras's, a sentence.
      undo: what takes it from the model.
    """

    what: str
    eager: str
    instead: str
    undo: str


def is_model(value: Any) -> bool:
    """Whether a value is a model of some Keras, told without an import of one."""
    return bool(_makers(value))


def _makers(value: Any) -> list[type]:
    """The classes that make a train function, the one whose method is called first."""
    return [c for c in type(value).__mro__ if "make_train_function" in vars(c)]


def require_known(model: Any, wants: Wants) -> None:
    """Requires a model whose trainer is Keras 3's for TensorFlow, and looks as expected."""
    makers = _makers(model)
    if not makers:
        raise OptionError(
            f"model is of type {type(model).__name__}; expected a keras.Model, or pass a "
            "tf.function and a dataset"
        )
    maker = makers[0]
    name = type(model).__name__
    if maker.__module__ != _TRAINER:
        backend = maker.__module__.removeprefix("keras.src.backend.").removesuffix(".trainer")
        raise UnsupportedError(
            f"model {name!r} takes its make_train_function from {maker.__name__!r} of "
            f"{maker.__module__!r}; expected that of Keras 3 for TensorFlow"
            + (f", but the backend is {backend}" if backend in ("jax", "torch") else "")
            + f". {wants.instead}"
        )
    version = importlib.metadata.version("keras")
    major, minor = (int(part) for part in version.split(".")[:2])
    asked = list(inspect.signature(vars(maker)["make_train_function"]).parameters)
    tried = ", ".join(f"3.{each}" for each in KNOWN)
    if major != 3 or asked != ["self", "force"]:
        raise UnsupportedError(
            f"Keras {version} is not one whose trainer this knows (tried: {tried}): its "
            f"make_train_function takes {asked}, expected ['self', 'force']"
        )
    if minor not in KNOWN:
        _LOG.warning(
            "Keras %s was not tried with %s (tried: %s); its trainer looks the same",
            version,
            wants.what,
            tried,
        )


def require_graph(model: Any, wants: Wants) -> None:
    """Requires a model whose steps run as graphs, on one device.

    Raises:
      UnsupportedError: it does not.
    """
    if model.run_eagerly:
        raise UnsupportedError(
            f"model {model.name!r} is compiled with run_eagerly=True, {wants.eager}; "
            f"compile it with run_eagerly=False, or {wants.undo}"
        )
    strategy = model.distribute_strategy
    if not isinstance(strategy, type(tf.distribute.get_strategy())) or tf.distribute.has_strategy():
        raise UnsupportedError(
            f"model {model.name!r} trains under {type(strategy).__name__}; {wants.what} runs on "
            f"one device: train without a strategy, or {wants.undo}"
        )
