"""The order of a function's arguments in which TensorFlow can save it as a signature.

TensorFlow's saver takes the arguments of a signature to be sorted by their names. A signature of a
model that TensorFlow 1 exported has those of a SparseTensor in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.function.polymorphism.function_type import FunctionType, Parameter


def order_to_save(function: Any) -> list[int] | None:
    """The numbers of a signature's arguments, sorted by name; None where they are in that order.

    Args:
      function: a concrete function.
    """
    signature = function.structured_input_signature
    if signature is None or function._arg_keywords is None or function.function_type is None:
        return None
    positional, named = signature
    keywords = list(map(tf.compat.as_str, function._arg_keywords))
    specs = all(isinstance(spec, tf.TensorSpec) for spec in named.values())
    if positional or not specs or keywords == sorted(keywords) or set(keywords) != named.keys():
        return None
    order = sorted(range(len(keywords)), key=keywords.__getitem__)
    names = [list(function.function_type.parameters)[number] for number in order]
    return order if names == sorted(names) else None


def by_keyword(function_type: FunctionType, order: Sequence[int]) -> FunctionType:
    """The type of a function whose arguments are given by name alone, in another order."""
    known = list(function_type.parameters.values())
    parameters = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, each.optional, each.type_constraint)
        for each in (known[number] for number in order)
    ]
    return FunctionType(
        parameters, function_type.captures, return_annotation=function_type.return_annotation
    )
