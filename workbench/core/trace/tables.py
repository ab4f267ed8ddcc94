"""The tables of a Trace: their columns, their types, and the rules their rows keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.errors import TraceError
from workbench.files.saved_values import shown

KINDS = ("step", "prefetch", "inter_op")
_TIME = np.dtype(np.int64)
_LEAST_DURATION = np.dtype(np.uint32)


@dataclasses.dataclass(frozen=True)
class Column:
    """One column: `kind` is "time" (int64), "duration" (uint32 up), "number" or "text".

    What is `optional` is "" or 0 where a table lacks the column.
    """

    name: str
    kind: str
    optional: bool = False


def _columns(kind: str, *names: str, optional: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name, kind, optional) for name in names)


TABLES: dict[str, tuple[Column, ...]] = {
    "events": (
        *_columns("time", "start_ns"),
        *_columns("duration", "dur_ns"),
        *_columns("number", "delay_ns", "node", "track", "step"),
        *_columns("number", "made_bytes", "passed_bytes", optional=True),
    ),
    "nodes": (
        *_columns("text", "name", "op", "device"),
        *_columns("text", "source", "fusable", "fusable_part", "inputs", "outputs", optional=True),
    ),
    "edges": _columns("number", "source", "target", "control"),
    "tracks": (
        *_columns("text", "name", "kind"),
        *_columns("number", "index"),
        *_columns("text", "stage"),
        *_columns("text", "task", "client", optional=True),
    ),
    "runs": (*_columns("number", "track", "number"), *_columns("time", "start_ns", "end_ns")),
    "items": (
        *_columns("text", "stage"),
        *_columns("number", "item"),
        *_columns("time", "put_start_ns", "put_end_ns", "take_start_ns", "take_end_ns"),
        *_columns("number", "put_track", "put_run", "take_step", "take_track"),
        *_columns("number", "bytes", optional=True),
    ),
    "transfers": (
        *_columns("number", "node", "source", "track", "step", "bytes"),
        *_columns("time", "sent_ns", "start_ns", "end_ns"),
    ),
}
# A trace may lack them.
OPTIONAL_TABLES = ("edges", "transfers")


def column_names(table: str) -> list[str]:
    """The columns that a table must have, in their order."""
    return [column.name for column in TABLES[table] if not column.optional]


def no_edges() -> pd.DataFrame:
    """The table of edges of a trace whose tracer does not see the graph."""
    return _no_rows("edges")


def no_transfers() -> pd.DataFrame:
    """The table of transfers of a trace of one task."""
    return _no_rows("transfers")


def _no_rows(table: str) -> pd.DataFrame:
    return pd.DataFrame({name: np.zeros(0, np.int64) for name in column_names(table)})


def shaped(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with exactly the table's columns, each in its narrowest type, rows from 0.

    Raises:
      TraceError: a column is missing, unknown, or of the wrong type.
    """
    wanted = TABLES[table]
    names = [column.name for column in wanted]
    for column in wanted:
        if column.name not in frame.columns and not column.optional:
            needed = ", ".join(names)
            raise TraceError(f"table `{table}` has no column `{column.name}`; it needs {needed}")
    unknown = [str(name) for name in frame.columns if name not in names]
    if unknown:
        raise TraceError(
            f"table `{table}` has an unknown column `{unknown[0]}`; it takes {', '.join(names)}"
        )
    return pd.DataFrame(
        {c.name: _typed(table, c, _held(frame, c)) for c in wanted},
        index=pd.RangeIndex(len(frame)),
        columns=names,
    )


def _held(frame: pd.DataFrame, column: Column) -> pd.Series:
    if column.name in frame.columns:
        return frame[column.name]
    if column.kind == "number":
        return pd.Series(np.zeros(len(frame), np.int64))
    return pd.Series([""] * len(frame), dtype="str")


def _typed(table: str, column: Column, values: pd.Series) -> Any:
    if column.kind == "text":
        return values.astype("str").array
    whole = _integers(table, column.name, values)
    if column.kind == "time":
        return whole.astype(_TIME, copy=False)
    narrow = _narrowest(whole)
    if column.kind == "duration":
        narrow = np.promote_types(narrow, _LEAST_DURATION)
    return whole.astype(narrow, copy=False)


def _integers(table: str, column: str, values: pd.Series) -> np.ndarray:
    numbers = values.to_numpy()
    if numbers.dtype.kind in "iu" or not len(numbers):
        return numbers if len(numbers) else numbers.astype(np.int64)
    try:
        whole = numbers.astype(np.int64)
        wrong = np.flatnonzero(whole != numbers)
    except (TypeError, ValueError, OverflowError):
        wrong = np.array([_first_non_integer(numbers)])
    if len(wrong) or numbers.dtype.kind == "b":
        row = int(wrong[0]) if len(wrong) else 0
        raise TraceError(
            f"table `{table}`, row {row}: `{column}` is {shown(numbers[row])}; expected an integer"
        )
    return whole


def _first_non_integer(values: np.ndarray) -> int:
    """The first value that is none, or needs more than 64 bits."""
    most = np.iinfo(np.int64)
    whole = (isinstance(v, (int, np.integer)) and most.min <= v <= most.max for v in values)
    return next((i for i, fits in enumerate(whole) if not fits), 0)


def _narrowest(values: np.ndarray) -> np.dtype[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0:
        return np.promote_types(np.min_scalar_type(low), np.min_scalar_type(-high - 1))
    # not uint64: with an int64 it mixes to float, and nothing here is that large
    return min(np.dtype(np.int64), np.min_scalar_type(high), key=lambda kind: kind.itemsize)


def check(tables: Mapping[str, pd.DataFrame]) -> None:
    """Holds the rows to the rules of a trace.

    Raises:
      TraceError: with the table, the row, what stands there and the rule it breaks.
    """
    for table, broken, rule, columns in _rules(tables):
        rows = np.flatnonzero(np.asarray(broken))
        if len(rows):
            frame, row = tables[table], int(rows[0])
            found = ", ".join(f"{name} {_plain(frame[name].iloc[row])!r}" for name in columns)
            raise TraceError(f"table `{table}`, row {row}: {rule}; found {found}")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


_Rule = tuple[str, Any, str, tuple[str, ...]]


def _rules(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Rule]:
    """(table, which rows break it, the rule, the columns to show), cheap ones first."""
    tracks = tables["tracks"]
    kind = np.append(tracks["kind"].to_numpy(object), "")  # -1 finds ""
    yield "tracks", ~tracks["kind"].isin(KINDS), f"kind is one of {', '.join(KINDS)}", ("kind",)
    yield "tracks", tracks["index"] < 0, "index counts from 0", ("index",)
    key = ["kind", "stage", "index", "task", "client"]
    again = "no two tracks share kind, stage, index, task and client"
    yield "tracks", tracks.duplicated(key), again, tuple(key)
    yield from _event_rules(tables)
    yield from _edge_rules(tables["edges"], len(tables["nodes"]))
    yield from _run_rules(tables["runs"], kind)
    yield from _item_rules(tables["items"], kind)
    yield from _transfer_rules(tables["transfers"], len(tables["nodes"]), kind)


def _event_rules(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Rule]:
    events = tables["events"]
    start = events["start_ns"].to_numpy()
    yield "events", start < 0, "times count from 1970, so are not negative", ("start_ns",)
    earlier = np.concatenate(([False], start[1:] < start[:-1])) if len(start) else start
    yield "events", earlier, "events are sorted by start_ns", ("start_ns",)
    for name in ("dur_ns", "delay_ns", "made_bytes", "passed_bytes"):
        yield "events", events[name].to_numpy() < 0, f"{name} is not negative", (name,)
    for name, table in (("node", "nodes"), ("track", "tracks")):
        most = len(tables[table])
        outside = ~_within(events[name].to_numpy(), most)
        yield "events", outside, f"{name} is a row of `{table}`, 0 to {most - 1}", (name,)


def _edge_rules(edges: pd.DataFrame, nodes: int) -> Iterator[_Rule]:
    for name in ("source", "target"):
        outside = ~_within(edges[name].to_numpy(), nodes)
        yield "edges", outside, f"{name} is a row of `nodes`, 0 to {nodes - 1}", (name,)
    yield "edges", ~_within(edges["control"].to_numpy(), 2), "control is 0 or 1", ("control",)


def _run_rules(runs: pd.DataFrame, kind: np.ndarray) -> Iterator[_Rule]:
    wrong = ~np.isin(_kind_of(runs["track"], kind), ("step", "prefetch"))
    yield "runs", wrong, "track is a row of `tracks` of kind step or prefetch", ("track",)
    yield "runs", runs["start_ns"] < 0, "times are not negative", ("start_ns",)
    times = ("start_ns", "end_ns")
    yield "runs", runs["end_ns"] < runs["start_ns"], "a run ends after it starts", times
    again = runs.duplicated(["track", "number"])
    yield "runs", again, "numbers of runs are unique within a track", ("track", "number")


def _item_rules(items: pd.DataFrame, kind: np.ndarray) -> Iterator[_Rule]:
    again = items.duplicated(["stage", "item"])
    yield "items", again, "item numbers are unique within a stage", ("stage", "item")
    yield "items", items["bytes"] < 0, "bytes is not negative", ("bytes",)
    put_times, take_times = ("put_start_ns", "put_end_ns"), ("take_start_ns", "take_end_ns")
    begun, put, asked, took = (items[name].to_numpy() for name in put_times + take_times)
    for names in (put_times, take_times):
        known = np.minimum(items[names[0]], items[names[1]]) >= -1
        yield "items", ~known, "an unknown time is -1", names
    yield "items", (asked < 0) != (took < 0), "a take has both times or none", take_times
    yield "items", (begun >= 0) & (put < begun), "a put ends after it starts", put_times
    yield "items", took < asked, "a take ends after it starts", take_times
    both = ("put_end_ns", "take_end_ns")
    yield "items", (took >= 0) & (put > took), "an item is taken after it was put", both
    for name, wanted in (("put_track", "prefetch"), ("take_track", "step")):
        wrong = (items[name] != -1) & (_kind_of(items[name], kind) != wanted)
        yield "items", wrong, f"{name} is a row of `tracks` of kind {wanted}, or -1", (name,)


def _transfer_rules(transfers: pd.DataFrame, nodes: int, kind: np.ndarray) -> Iterator[_Rule]:
    for name in ("node", "source"):
        outside = ~_within(transfers[name].to_numpy(), nodes)
        yield "transfers", outside, f"{name} is a row of `nodes`, 0 to {nodes - 1}", (name,)
    wrong = ~np.isin(_kind_of(transfers["track"], kind), ("step", "prefetch"))
    yield "transfers", wrong, "track is a row of `tracks` of kind step or prefetch", ("track",)
    yield "transfers", transfers["bytes"] < 0, "bytes is not negative", ("bytes",)
    sent, start, end = (transfers[name] for name in ("sent_ns", "start_ns", "end_ns"))
    yield "transfers", sent < -1, "an unknown time is -1", ("sent_ns",)
    yield (
        "transfers",
        (start < 0) | (end < start),
        "it ends after it starts",
        ("start_ns", "end_ns"),
    )
    yield "transfers", sent > end, "it is received after it was sent", ("sent_ns", "end_ns")


def _kind_of(track: pd.Series, kind: np.ndarray) -> np.ndarray:
    """Kind of each track by its row; "", the last of `kind`, where there is no such row."""
    rows = track.to_numpy(np.int64)
    return kind[np.where(_within(rows, len(kind) - 1), rows, -1)]


def _within(values: np.ndarray, most: int) -> np.ndarray:
    return (values >= 0) & (values < most)
