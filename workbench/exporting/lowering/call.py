"""A node of Workbench's with its attributes and tensors by name, as a template reads it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

_LISTS = ("s", "i", "f", "b", "type", "shape")


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyedTable:
    """What stands for an EmbeddingVariable in an export: a hash table and a matrix.

    Attributes:
      rows: how many keys have a row.
      defaults: how many rows behind those are for keys without one; key k reads number k mod it.
    """

    rows: int
    defaults: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Call:
    """One node of Workbench's.

    Attributes:
      attributes: by name, those at their default among them.
      inputs: by name a tensor, or a list where the op takes one.
      keyed: of each EmbeddingVariable that the node reads, in the order of its inputs.
    """

    attributes: Mapping[str, Any]
    inputs: Mapping[str, Any]
    keyed: tuple[KeyedTable, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """An input, or else an attribute."""
        return self.inputs[name] if name in self.inputs else self.attributes[name]


def attributes_of(node: Any, op_def: Any) -> dict[str, Any]:
    """The attributes of a node as plain values; those it lacks have their defaults."""
    values = {}
    for attribute in op_def.attr:
        given = node.attr.get(attribute.name)
        values[attribute.name] = _plain(attribute.default_value if given is None else given)
    return values


def tensors_of(arguments: Iterable[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """The dtypes of an op's inputs or outputs.

    Args:
      arguments: the definitions of these.
      attributes: of the node.

    Returns:
      Pairs of the name and a dtype, or a list of dtypes where the argument is a list.
    """
    pairs: list[Any] = []
    for argument in arguments:
        if argument.type_list_attr:
            pairs.append((argument.name, list(attributes[argument.type_list_attr])))
            continue
        dtype = attributes[argument.type_attr] if argument.type_attr else argument.type
        dtype = tf.as_dtype(dtype)
        if argument.number_attr:
            pairs.append((argument.name, [dtype] * attributes[argument.number_attr]))
        else:
            pairs.append((argument.name, dtype))
    return pairs


def flat_dtypes(pairs: Iterable[Any]) -> list[tf.DType]:
    """The dtypes of `tensors_of`, one after the other."""
    flat: list[tf.DType] = []
    for _, dtypes in pairs:
        flat += dtypes if isinstance(dtypes, list) else [dtypes]
    return flat


def by_name(pairs: Iterable[Any], tensors: Sequence[Any]) -> dict[str, Any]:
    """Tensors that stand one after the other, by the names of `tensors_of`."""
    named: dict[str, Any] = {}
    rest = iter(tensors)
    for name, dtypes in pairs:
        is_list = isinstance(dtypes, list)
        named[name] = [next(rest) for _ in dtypes] if is_list else next(rest)
    return named


def _plain(attribute: Any) -> Any:
    kind = attribute.WhichOneof("value")
    if kind != "list":
        return _value(kind, getattr(attribute, kind)) if kind else None
    held = next((name for name in _LISTS if getattr(attribute.list, name)), None)
    return [] if held is None else [_value(held, item) for item in getattr(attribute.list, held)]


def _value(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode()
    return tf.as_dtype(value) if kind == "type" else value
