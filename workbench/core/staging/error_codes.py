"""Exception classes and integer codes → error codes, as a stage's options accept both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench.core.options import StageOptions
from workbench.errors import OptionError

_CODE_OF_CLASS: dict[type, int] = {
    tf.errors.CancelledError: tf.errors.CANCELLED,
    tf.errors.UnknownError: tf.errors.UNKNOWN,
    tf.errors.InvalidArgumentError: tf.errors.INVALID_ARGUMENT,
    tf.errors.DeadlineExceededError: tf.errors.DEADLINE_EXCEEDED,
    tf.errors.NotFoundError: tf.errors.NOT_FOUND,
    tf.errors.AlreadyExistsError: tf.errors.ALREADY_EXISTS,
    tf.errors.PermissionDeniedError: tf.errors.PERMISSION_DENIED,
    tf.errors.UnauthenticatedError: tf.errors.UNAUTHENTICATED,
    tf.errors.ResourceExhaustedError: tf.errors.RESOURCE_EXHAUSTED,
    tf.errors.FailedPreconditionError: tf.errors.FAILED_PRECONDITION,
    tf.errors.AbortedError: tf.errors.ABORTED,
    tf.errors.OutOfRangeError: tf.errors.OUT_OF_RANGE,
    tf.errors.UnimplementedError: tf.errors.UNIMPLEMENTED,
    tf.errors.InternalError: tf.errors.INTERNAL,
    tf.errors.UnavailableError: tf.errors.UNAVAILABLE,
    tf.errors.DataLossError: tf.errors.DATA_LOSS,
    # What a Python producer raises at its end reaches TensorFlow as OUT_OF_RANGE.
    StopIteration: tf.errors.OUT_OF_RANGE,
}
_HIGHEST_CODE = tf.errors.UNAUTHENTICATED


def error_codes(types: Sequence[Any]) -> frozenset[int]:
    """The codes named by exception classes (`tf.errors.OutOfRangeError`) or integers (11).

    Raises:
      OptionError: an entry that is neither.
    """
    codes = set()
    for kind in types if isinstance(types, (tuple, list, set, frozenset)) else (types,):
        if isinstance(kind, int) and not isinstance(kind, bool) and 0 < kind <= _HIGHEST_CODE:
            codes.add(kind)
        elif isinstance(kind, type) and kind in _CODE_OF_CLASS:
            codes.add(_CODE_OF_CLASS[kind])
        else:
            raise OptionError(
                f"{kind!r} is not an exception type of a stage; expected a class such as "
                "tf.errors.OutOfRangeError, or its integer code such as tf.errors.OUT_OF_RANGE"
            )
    return frozenset(codes)


def closed_codes(options: StageOptions) -> frozenset[int]:
    """The codes that end the epoch of a stage: OUT_OF_RANGE, unless its options name others."""
    return error_codes(options.closed_exception_types or (tf.errors.OUT_OF_RANGE,))


def with_codes(options: Any) -> Any:
    """StageOptions or SmartStageOptions with integer codes in place of exception classes."""
    closed = options.closed_exception_types
    return dataclasses.replace(
        options,
        closed_exception_types=None if closed is None else tuple(sorted(error_codes(closed))),
        ignored_exception_types=tuple(sorted(error_codes(options.ignored_exception_types))),
    )
