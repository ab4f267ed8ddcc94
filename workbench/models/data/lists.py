"""List columns of a click log: how many values a field has, and which rows have a wrong number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from workbench.models.data.table_format import Column, TableFormat

_LINE_END = 10


def list_suspects(
    layout: TableFormat, data: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Rows with a list that has a wrong number of values or an empty one, bool [rows].

    Args:
      layout: the format of the block.
      data: bytes of the block, uint8.
      starts, ends: where each field begins, and the mark behind it, int [rows, columns].
    """
    suspect = np.zeros(len(ends), bool)
    found: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    lengths: dict[str, np.ndarray] = {}
    for i, column in enumerate(layout.columns):
        if column.kind != "list":
            continue
        if column.joined_by not in found:
            found[column.joined_by] = _joiners(data, column.joined_by[0], layout.separator[0])
        joiners, lonely = found[column.joined_by]
        start, end = starts[:, i], ends[:, i]
        length = np.where(start == end, 0, joiners[end] - joiners[start] + 1)
        lengths[column.name] = length
        suspect |= (lonely[end] != lonely[start]) | (length < column.least)
        if column.most is not None:
            suspect |= length > column.most
        if column.as_long_as is not None:
            suspect |= length != lengths[column.as_long_as]
    return suspect


def _joiners(data: np.ndarray, joiner: int, separator: int) -> tuple[np.ndarray, np.ndarray]:
    """How many joiners, and how many beside an empty value, stand before each byte."""
    is_joiner = data == joiner
    at_edge = is_joiner | (data == separator) | (data == _LINE_END)
    lonely = is_joiner & (np.append(at_edge[1:], True) | np.insert(at_edge[:-1], 0, True))
    return _before(is_joiner), _before(lonely)


def _before(mask: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(mask) + 1, np.int32)
    np.cumsum(mask, out=counts[1:])
    return counts


def list_fault(layout: TableFormat, column: Column, fields: Mapping[str, bytes]) -> str | None:
    """What is wrong with a list of a row, for a message; None if nothing is."""
    values = _values(column, fields)
    if b"" in values:
        return (
            f"value {values.index(b'') + 1} of {len(values)} is empty; expected values joined by "
            f"{column.joined_by.decode()!r}, none of them empty"
        )
    if column.as_long_as is not None:
        like = next(c for c in layout.columns if c.name == column.as_long_as)
        other = len(_values(like, fields))
        if len(values) != other:
            return (
                f"{_counted(len(values))}, but {column.as_long_as} of the row has {other}; "
                "expected as many in both"
            )
    joined = f"joined by {column.joined_by.decode()!r}"
    if column.most is not None and len(values) > column.most:
        return f"{_counted(len(values))}; expected at most {column.most} {joined}; leave off others"
    if len(values) < column.least:
        return f"{_counted(len(values))}; expected at least {column.least} {joined}"
    return None


def _values(column: Column, fields: Mapping[str, bytes]) -> list[bytes]:
    field = fields[column.name]
    return field.split(column.joined_by) if field else []


def _counted(count: int) -> str:
    return f"{count} {'value' if count == 1 else 'values'}"
