"""Keras models, modules and functions as SavedModels, as TensorFlow itself saves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.trackable import base as trackable

from workbench.core.function.keras_trainer import is_model
from workbench.errors import OptionError, UnsupportedError, first_line

_DEFAULT = "serving_default"


def is_function(model: Any) -> bool:
    """Whether a model is a `tf.function`, or a concrete one."""
    return isinstance(
        model,
        (tf.types.experimental.ConcreteFunction, tf.types.experimental.PolymorphicFunction),
    )


def is_object(model: Any) -> bool:
    """Whether TensorFlow can save a model as an object."""
    return is_function(model) or is_model(model) or isinstance(model, trackable.Trackable)


def save_object(model: Any, folder: Path, inputs: Any, signatures: Any) -> None:
    """Saves a Keras model, a module or a function.

    Args:
      model: what is saved.
      folder: where, an empty one.
      inputs: TensorSpecs of a `tf.function`, None elsewhere. A list or a tuple has one item for
        each argument, nested as the argument is; a dict has them by name.
      signatures: as `tf.saved_model.save` takes them; None means the model's own.

    Raises:
      OptionError: the model's arguments are not known, or what is given does not fit them.
      UnsupportedError: TensorFlow cannot save the model.
    """
    if is_function(model):
        _save_function(model, folder, inputs, signatures)
        return
    if inputs is not None:
        raise OptionError(
            "inputs are given, and the model is neither a session nor a tf.function; leave them "
            "out, or give signatures="
        )
    if is_model(model) and signatures is None:
        _save_keras(model, folder)
    else:
        _saved(model, folder, signatures)


def _save_keras(model: Any, folder: Path) -> None:
    if not model.built:
        raise OptionError(
            f"model {model.name!r} is not built, so that its inputs are not known; call it on a "
            "batch first"
        )
    try:
        model.export(str(folder), verbose=False)
    except (ValueError, TypeError) as error:
        raise UnsupportedError(
            f"Keras cannot export model {model.name!r}: {first_line(error)}"
        ) from error


def _save_function(model: Any, folder: Path, inputs: Any, signatures: Any) -> None:
    if signatures is not None:
        raise OptionError(
            "the model is a function, which is one signature; give the tf.Module that has it "
            "beside signatures="
        )
    concrete = _concrete(model, inputs)
    module = tf.Module()
    module.function = model
    module.variables_of_function = list(concrete.graph.variables)
    _saved(module, folder, {_DEFAULT: concrete})


def _concrete(function: Any, inputs: Any) -> Any:
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        if inputs is not None:
            raise OptionError("inputs are given beside a concrete function, which has its own")
        return function
    if inputs is not None:
        named = dict(inputs) if isinstance(inputs, Mapping) else {}
        several = () if named else inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        try:
            return function.get_concrete_function(*several, **named)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"the function cannot be traced with these inputs: {first_line(error)}"
            ) from error
    if function.input_signature is not None:
        return function.get_concrete_function()
    traced = function._list_all_concrete_functions_for_serialization()
    if len(traced) != 1:
        raise OptionError(
            f"the function was traced for {len(traced)} kinds of arguments; give inputs= as "
            "TensorSpecs, or a concrete function"
        )
    return traced[0]


def _saved(model: Any, folder: Path, signatures: Any) -> None:
    try:
        tf.saved_model.save(model, str(folder), signatures=signatures)
    except AssertionError as error:
        raise UnsupportedError(
            "the model reads a table or a variable that it does not hold; give the tf.Module that "
            f"holds it ({first_line(error)})"
        ) from error
    except (ValueError, TypeError, RuntimeError) as error:
        raise OptionError(f"TensorFlow cannot save the model: {first_line(error)}") from error
