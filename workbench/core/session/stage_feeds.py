"""feed_dict of a stage: what its producers evaluate and feed before each put, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError


def stage_feeds(feed_dict: Mapping[Any, Any]) -> tuple[tuple[tf.Tensor, tf.Tensor], ...]:
    """Pairs of (fed tensor, value tensor), composites and nests taken apart.

    A variable is fed its value. A value whose static shape leaves open whether it fits is checked
    when it is evaluated.

    Raises:
      OptionError: numbers of tensors, dtypes or static shapes differ, or something is no tensor.
    """
    pairs: list[tuple[tf.Tensor, tf.Tensor]] = []
    for key, value in feed_dict.items():
        _require_equal_shapes(key, value)
        keys = tf.nest.flatten(key, expand_composites=True)
        values = tf.nest.flatten(_read(value), expand_composites=True)
        if len(keys) != len(values):
            raise OptionError(
                f"feed_dict of tf.staged maps {key!r} to {value!r}: "
                f"{len(keys)} tensors to feed but {len(values)} values"
            )
        pairs += [_pair(*both, key, value) for both in zip(keys, values, strict=True)]
    return tuple(pairs)


def _read(value: Any) -> Any:
    """The nest with values in place of variables, whose own tensors may be handles."""
    return tf.nest.map_structure(
        lambda each: tf.convert_to_tensor(each) if isinstance(each, tf.Variable) else each, value
    )


def _require_equal_shapes(key: Any, value: Any) -> None:
    """Composites have shapes of their own, of which their components say little."""
    keys, values = tf.nest.flatten(key), tf.nest.flatten(value)
    if len(keys) != len(values):
        return
    for target, source in zip(keys, values, strict=True):
        wanted, found = getattr(target, "shape", None), getattr(source, "shape", None)
        if isinstance(wanted, tf.TensorShape) and not wanted.is_compatible_with(found):
            raise OptionError(
                f"feed_dict of tf.staged maps {_name(target)} of shape {wanted} to "
                f"{_name(source)} of shape {found}; the shapes must be compatible"
            )


def _pair(target: Any, source: Any, key: Any, value: Any) -> tuple[tf.Tensor, tf.Tensor]:
    if not tf.is_tensor(target):
        raise OptionError(
            f"feed_dict of tf.staged has the key {key!r} of type {type(key).__name__}; expected a "
            "placeholder"
        )
    if not tf.is_tensor(source):
        raise OptionError(
            f"feed_dict of tf.staged maps {key!r} to {value!r} of type "
            f"{type(source).__name__}; expected a tensor, evaluated before each put"
        )
    kind = source.dtype.base_dtype
    if kind in (tf.resource, tf.variant):
        raise OptionError(
            f"feed_dict of tf.staged maps {_name(target)} to {_name(source)} of dtype {kind.name}; "
            "a handle cannot be fed: give a tensor that is read from it"
        )
    if kind != target.dtype.base_dtype:
        raise OptionError(
            f"feed_dict of tf.staged maps {_name(target)} of dtype {target.dtype.base_dtype.name} "
            f"to {_name(source)} of dtype {kind.name}; the dtypes must be equal"
        )
    _require_equal_shapes(target, source)
    if not source.shape.is_subtype_of(target.shape):
        source = tf.ensure_shape(source, target.shape, name="fed")
    return target, source


def _name(tensor: Any) -> str:
    return repr(getattr(tensor, "name", None) or tensor)
