"""Trace → Chrome trace JSON, which Perfetto and chrome://tracing open.

Slices of one thread must not cross there, or the viewers draw or drop them wrongly. So whatever
overlaps gets a thread of its own: one `tid` per sub-row. Times count from the start of the trace,
in microseconds with three decimals, written from integers so that no nanosecond is lost. What a
viewer does not need, but a reader that makes a Trace of the file again does, stands in `otherData`
and beside the names of threads.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.trace.intervals import sub_rows
from workbench.core.trace.receipts import Receipts, receipts, sending_events
from workbench.core.trace.tables import TABLES
from workbench.files.atomic_file import replacing

# What a thread holds, as its metadata say.
RUNS, OPS, PUTS, TAKES, RECEIPTS = "runs", "ops", "put", "take", "receive"
# Name of the args of an op that say how long it was ready before it started.
READY = "ready_ns_before_start"
# Names of those that are there where they are known, in the order of the columns of nodes.
WHERE_KNOWN = tuple(column.name for column in TABLES["nodes"] if column.optional)

_PROCESSES = {"step": (1, "Steps"), "prefetch": (2, "Prefetch"), "inter_op": (3, "Inter-op")}
_BUFFERS, _RECEIVE = 4, 5
_NONE = np.zeros(0, np.int64)
# at most 65 536 sub-rows: a sub-row is a uint16
_MOST_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True)
class _Slices:
    """Slices of one kind on one track, by start; `heads` are their JSON texts up to the times.

    `holds` is one of the kinds above. `rows` are those of the table that they come from: items of
    puts and takes, events of ops, stretches of receipts; of runs there are none.
    """

    track: int
    holds: str
    title: str
    start: np.ndarray
    end: np.ndarray
    heads: list[str]
    rows: np.ndarray
    pid: int = 0
    tids: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))


def write(
    path: str | os.PathLike[str],
    tables: Mapping[str, pd.DataFrame],
    occupancy: pd.DataFrame,
    meta: Mapping[str, Any],
) -> None:
    """Writes the trace as Chrome JSON, whole or not at all.

    Args:
      path: where to.
      tables: the seven tables of a checked trace.
      occupancy: changes of the buffers, as `Trace.occupancy` gives them.
      meta: what is known beside it, JSON-ready; it goes to `otherData`.
    """
    origin = _origin(tables)
    with replacing(path) as part, open(part, "w", encoding="utf-8") as out:
        out.write('{"displayTimeUnit":"ns","otherData":')
        tracks = tables["tracks"].to_dict("list")
        out.write(json.dumps({**meta, "origin_ns": origin, "tracks": tracks}))
        out.write(',"traceEvents":[\n')
        for number, line in enumerate(_lines(tables, occupancy, origin)):
            out.write(f",\n{line}" if number else line)
        out.write("\n]}\n")


def _origin(tables: Mapping[str, pd.DataFrame]) -> int:
    columns = [tables["events"]["start_ns"], tables["runs"]["start_ns"]]
    columns.append(tables["transfers"]["start_ns"])
    columns += [tables["items"][f"{what}_ns"] for what in ("put_start", "put_end", "take_start")]
    known = np.concatenate([column.to_numpy() for column in columns])
    known = known[known >= 0]
    return int(known.min()) if len(known) else 0


def _lines(
    tables: Mapping[str, pd.DataFrame], occupancy: pd.DataFrame, origin: int
) -> Iterator[str]:
    received = receipts(tables)
    others = [(_BUFFERS, "Buffers"), *([(_RECEIVE, "Receive")] if len(received.place) else [])]
    for number, name in [*_PROCESSES.values(), *others]:
        yield _metadata("process_name", number, 0, {"name": name})
        yield _metadata("process_sort_index", number, 0, {"sort_index": number})
    placed = _placed(tables, received)
    for slices in placed:
        yield from _slice_lines(slices, origin)
    yield from _flow_lines(placed, tables["items"], origin)
    yield from _transfer_lines(placed, tables, received, origin)
    for stage, time, count in zip(*(occupancy[c].tolist() for c in occupancy), strict=True):
        name = json.dumps(f"Buffer {stage}")
        yield (
            f'{{"name":{name},"ph":"C","pid":{_BUFFERS},"tid":0,"ts":{_us(time - origin)},'
            f'"args":{{"items":{count}}}}}'
        )


def _placed(tables: Mapping[str, pd.DataFrame], received: Receipts) -> list[_Slices]:
    """All slices, each with the process and the thread it is drawn in."""
    kinds = tables["tracks"]["kind"].tolist()
    found = [*_all_slices(tables), *_received(received.stretches)]
    filled = [slices for slices in found if len(slices.start)]
    return [
        dataclasses.replace(
            slices,
            pid=_RECEIVE if slices.holds == RECEIPTS else _PROCESSES[kinds[slices.track]][0],
            tids=number * _MOST_ROWS + 1 + sub_rows(slices.start, slices.end).astype(np.int64),
        )
        for number, slices in enumerate(filled)
    ]


def _slice_lines(slices: _Slices, origin: int) -> Iterator[str]:
    pid = slices.pid
    for row, tid in enumerate(np.unique(slices.tids).tolist()):
        name = f"{slices.title}, row {row + 1}" if row else slices.title
        held = {"name": name, "track": slices.track, "holds": slices.holds}
        yield _metadata("thread_name", pid, tid, held)
        yield _metadata("thread_sort_index", pid, tid, {"sort_index": tid})
    begin = (slices.start - origin).tolist()
    length = (slices.end - slices.start).tolist()
    for ts, dur, tid, head in zip(begin, length, slices.tids.tolist(), slices.heads, strict=True):
        yield f'{head},"ph":"X","pid":{pid},"tid":{tid},"ts":{_us(ts)},"dur":{_us(dur)}}}'


def _flow_lines(placed: list[_Slices], items: pd.DataFrame, origin: int) -> Iterator[str]:
    """An arrow from the put to the take of each item of which both were drawn."""
    puts, takes = (_places(placed, call) for call in (PUTS, TAKES))
    ends = zip(items["put_end_ns"].tolist(), items["take_end_ns"].tolist(), strict=True)
    for row, (put_ns, take_ns) in enumerate(ends):
        if row in puts and row in takes:
            times = put_ns - origin, take_ns - origin
            yield from _arrow('"item"', "item", str(row), (puts[row], takes[row]), times)


def _transfer_lines(
    placed: list[_Slices], tables: Mapping[str, pd.DataFrame], received: Receipts, origin: int
) -> Iterator[str]:
    """An arrow from the op that made a tensor to its receipt, where that op is known."""
    ops, receives = _places(placed, OPS), _places(placed, RECEIPTS)
    events, transfers = tables["events"], tables["transfers"]
    start = events["start_ns"].to_numpy(np.int64)
    # The last moment that is still in the slice.
    last = start + np.maximum(events["dur_ns"].to_numpy(np.int64), 1) - 1
    names = tables["nodes"]["name"].to_numpy(object)[transfers["node"].to_numpy(np.int64)]
    ends = np.maximum(transfers["end_ns"].to_numpy() - 1, transfers["start_ns"].to_numpy())
    made = sending_events(tables).tolist()
    found = zip(names, made, received.place.tolist(), ends.tolist(), strict=True)
    for row, (name, event, stretch, end) in enumerate(found):
        if event >= 0:
            times = int(last[event]) - origin, max(end, int(last[event])) - origin
            places = ops[event], receives[stretch]
            yield from _arrow(json.dumps(name), "transfer", f'"transfer {row}"', places, times)


def _places(placed: list[_Slices], holds: str) -> dict[int, tuple[int, int]]:
    """Process and thread of each slice of a kind, by its row."""
    return {
        row: (slices.pid, tid)
        for slices in placed
        if slices.holds == holds
        for row, tid in zip(slices.rows.tolist(), slices.tids.tolist(), strict=True)
    }


def _arrow(
    name: str,
    kind: str,
    number: str,
    places: tuple[tuple[int, int], tuple[int, int]],
    times: tuple[int, int],
) -> Iterator[str]:
    """The begin and the end of a flow; name and number are JSON, times in ns of the file."""
    for phase, (pid, tid), time in zip(('"s"', '"f","bp":"e"'), places, times, strict=True):
        yield (
            f'{{"name":{name},"cat":"{kind}","ph":{phase},"id":{number},"pid":{pid},'
            f'"tid":{tid},"ts":{_us(time)}}}'
        )


def _metadata(kind: str, pid: int, tid: int, args: Mapping[str, Any]) -> str:
    return json.dumps({"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args})


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _all_slices(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Slices]:
    """Per track: its runs, its puts or takes, its ops."""
    names = [_full_name(*each) for each in _named(tables["tracks"])]
    kinds = tables["tracks"]["kind"].tolist()
    order = np.argsort(tables["events"]["track"].to_numpy(), kind="stable")
    bounds = np.searchsorted(tables["events"]["track"].to_numpy()[order], np.arange(len(names) + 1))
    node_heads = _node_heads(tables["nodes"])
    for track, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind != "inter_op":
            yield _runs(tables["runs"], track, name, "step" if kind == "step" else "stage run")
            yield _calls(tables["items"], track, name, TAKES if kind == "step" else PUTS)
        rows = order[bounds[track] : bounds[track + 1]]
        title = name if kind == "inter_op" else f"{name}, ops"
        yield _ops(tables["events"].iloc[rows], rows, track, title, node_heads)


def _received(stretches: pd.DataFrame) -> Iterator[_Slices]:
    """When each task received something, for each worker that it was for."""
    for (receiver, client), part in stretches.groupby(["receiver", "client"], sort=True):
        columns = (part[name].tolist() for name in ("tensors", "bytes"))
        heads = [
            f'{{"name":"receive {count}","cat":"transfer",'
            f'"args":{{"tensors":{count},"bytes":{size}}}'
            for count, size in zip(*columns, strict=True)
        ]
        start, end = (part[f"{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
        title = _full_name("Receive", str(receiver), str(client))
        track = int(part["track"].iloc[0])
        yield _Slices(track, RECEIPTS, title, start, end, heads, part.index.to_numpy())


def _named(tracks: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    return zip(*(tracks[each].tolist() for each in ("name", "task", "client")), strict=True)


def _full_name(name: str, task: str, client: str) -> str:
    """A track's name; in a cluster with its task, and the worker that it works for."""
    where = task if task == client else f"{task} for {client}"
    return f"{name}, {where}" if where else name


def _node_heads(nodes: pd.DataFrame) -> list[str]:
    return [
        f'{{"name":{json.dumps(name)},"cat":{json.dumps(op)},'
        f'"args":{{"op":{json.dumps(op)},"device":{json.dumps(device)}'
        + "".join(
            f',"{column}":{json.dumps(text)}'
            for column, text in zip(WHERE_KNOWN, known, strict=True)
            if text
        )
        for name, op, device, *known in nodes.itertuples(index=False)
    ]


def _ops(
    events: pd.DataFrame, rows: np.ndarray, track: int, title: str, node_heads: list[str]
) -> _Slices:
    start = events["start_ns"].to_numpy()
    heads = [
        f'{node_heads[node]},"step":{step},"{READY}":{delay}}}'
        for node, step, delay in zip(
            *(events[c].tolist() for c in ("node", "step", "delay_ns")), strict=True
        )
    ]
    end = start + events["dur_ns"].to_numpy()
    return _Slices(track, OPS, title, start, end, heads, rows)


def _runs(runs: pd.DataFrame, track: int, title: str, word: str) -> _Slices:
    own = runs[runs["track"] == track].sort_values("start_ns", kind="stable")
    heads = [f'{{"name":"{word} {number}","cat":"run"' for number in own["number"].tolist()]
    start, end = own["start_ns"].to_numpy(), own["end_ns"].to_numpy()
    return _Slices(track, RUNS, title, start, end, heads, _NONE)


def _calls(items: pd.DataFrame, track: int, title: str, call: str) -> _Slices:
    """The puts or takes of one track, a nanosecond longer so that a flow can end inside."""
    calls = items[(items[f"{call}_track"] == track) & (items[f"{call}_start_ns"] >= 0)]
    calls = calls.sort_values(f"{call}_start_ns", kind="stable")
    run = "put_run" if call == PUTS else "take_step"
    heads = [
        f'{{"name":"{call}","cat":"item",'
        f'"args":{{"stage":{json.dumps(stage)},"item":{item},"run":{number}}}'
        for stage, item, number in zip(
            *(calls[column].tolist() for column in ("stage", "item", run)), strict=True
        )
    ]
    start, end = (calls[f"{call}_{edge}_ns"].to_numpy() for edge in ("start", "end"))
    title = f"{title}, {call}"
    return _Slices(track, call, title, start, end + 1, heads, calls.index.to_numpy())
