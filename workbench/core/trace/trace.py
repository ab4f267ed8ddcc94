"""Trace: what one capture saw, as columns.

A frozen value: seven pandas tables and what is known beside them. Times are int64 nanoseconds of
the wall clock (CLOCK_REALTIME); a million events take 20 to 30 MB. Integers are as narrow as their
values allow, many of them unsigned: widen before subtracting.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pandas as pd

from workbench.core.trace import chrome_json, parquet_file, tables
from workbench.core.trace.meta import TraceMeta
from workbench.display import Displayed
from workbench.errors import TraceError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trace(Displayed):
    """What one capture saw.

    Attributes:
      events: one row per executed op, sorted by start.
        - start_ns, dur_ns: when it started, and how long it ran.
        - delay_ns: how long it was ready before it started.
        - node, track: rows of those tables.
        - step: number of the step; on a prefetch track, number of the stage run.
        - made_bytes: memory of its outputs that nothing else held at its end.
        - passed_bytes: of outputs that are an input's memory. Both are 0 where the tracer does not
          see them.
      nodes: every node that ran. The buffers' own ops have rows here, but no events: the items say
        when they waited.
        - name, op, device: op is its type.
        - source: the line of the user's code that made it, "" where it is not known.
        - fusable: the kind of what a rule of fusion would fuse it with, such as "batch
          normalization"; "" of nodes that stay, and where the rules were not asked.
        - fusable_part: the name of that, likewise.
        - inputs, outputs: its tensors with their shapes, as `tensor_shapes` writes them; "" where
          no capture asked for them.
      edges: which of these nodes ran after which: source and target (rows of nodes), control (1
        for a control edge). Without rows where the tracer does not see the graph.
      tracks: one row per track. Ops of main steps are on inter_op tracks, one per OS thread. Ops of
        a stage run are on the track of the prefetch thread that ran it.
        - name: as shown.
        - kind: "step", "prefetch" or "inter_op".
        - index: within its kind.
        - stage: of a prefetch track, else "".
        - task: in a trace of a cluster, where it is, such as "ps 0"; "" in a trace of one task.
        - client: in a trace of a cluster, the task whose steps its ops are of; "" in a trace of one
          task.
      runs: one row per session run: track (a step or a prefetch track), number, start_ns, end_ns.
      items: one row per item that went through a stage's buffer. -1 stands for what the trace did
        not see.
        - stage.
        - item: its sequence number.
        - put_start_ns: when put was called.
        - put_end_ns: when it was admitted.
        - take_start_ns, take_end_ns.
        - put_track, put_run, take_step, take_track.
        - bytes: 0 where they are not known.
      transfers: one row per tensor that one task sent another. Without rows in a trace of one task.
        - node: row of nodes, its name where it was received.
        - source: row of nodes, the op that made it where it was sent.
        - track, step: the run it was for.
        - bytes.
        - sent_ns: when its op had made it; -1 where that is not known.
        - start_ns, end_ns: of its receipt.
      meta: what is known beside the tables.

    Raises:
      TraceError: a column is missing, unknown or of the wrong type, or meta is no TraceMeta.
    """

    events: pd.DataFrame
    nodes: pd.DataFrame
    tracks: pd.DataFrame
    runs: pd.DataFrame
    items: pd.DataFrame
    edges: pd.DataFrame = dataclasses.field(default_factory=tables.no_edges)
    transfers: pd.DataFrame = dataclasses.field(default_factory=tables.no_transfers)
    meta: TraceMeta = dataclasses.field(default_factory=TraceMeta)

    def __post_init__(self) -> None:
        for name in tables.TABLES:
            object.__setattr__(self, name, tables.shaped(name, getattr(self, name)))
        if not isinstance(self.meta, TraceMeta):
            raise TraceError(f"meta is a {type(self.meta).__name__}; expected a TraceMeta")

    def __repr__(self) -> str:
        title = f"{self.meta.title!r}, " if self.meta.title else ""
        return (
            f"Trace({title}{len(self.steps())} steps, {len(self.events)} events, "
            f"{len(self.items)} items)"
        )

    @property
    def on_a_gpu(self) -> bool:
        """Whether ops of it ran on a GPU: their times are those of their launch, and of waiting."""
        return bool(self.nodes["device"].str.contains("GPU:").any())

    def tables(self) -> dict[str, pd.DataFrame]:
        """The seven tables by name."""
        return {name: getattr(self, name) for name in tables.TABLES}

    def self_check(self) -> None:
        """Holds every row to the rules of a trace.

        Raises:
          TraceError: names table, row, rule and what was found.
        """
        tables.check(self.tables())

    def steps(self) -> pd.DataFrame:
        """The runs of main steps by start: number, track, start_ns, end_ns."""
        main = np.flatnonzero((self.tracks["kind"] == "step").to_numpy(bool))
        runs = self.runs[self.runs["track"].isin(main)]
        ordered = runs.sort_values(["start_ns", "track"], kind="stable", ignore_index=True)
        return ordered[["number", "track", "start_ns", "end_ns"]]

    def held_before(self) -> dict[str, int]:
        """Items in each stage's buffer before its first put or take seen here.

        From `meta.occupancy_at_start` where it is known, else those that were seen being taken
        but not being put.
        """
        known = self.meta.occupancy_at_start
        unseen = self.items["put_end_ns"] < 0
        counted = unseen.groupby(self.items["stage"], sort=False).sum()
        return {
            str(stage): int(known.get(stage, count))
            for stage, count in zip(counted.index, counted.tolist(), strict=True)
        }

    def occupancy(self) -> pd.DataFrame:
        """Every change of the number of items in a buffer: stage, time_ns, count after it."""
        parts = [
            pd.DataFrame({"stage": stage, "time_ns": time, "count": count})
            for stage, before in self.held_before().items()
            for time, count in [_changes(self.items[self.items["stage"] == stage], before)]
        ]
        nothing = pd.DataFrame({"stage": [], "time_ns": [], "count": []})
        joined = pd.concat(parts, ignore_index=True) if parts else nothing
        return joined.astype({"stage": "str", "time_ns": np.int64, "count": np.int64})

    def window(self, start_ns: int, end_ns: int) -> Trace:
        """The part of the trace in [start_ns, end_ns): all that touches it, in full length.

        Items are kept that were being put, in the buffer or being taken meanwhile.

        Raises:
          TraceError: the window ends before it starts.
        """
        if end_ns < start_ns:
            raise TraceError(f"the window ends at {end_ns}, before its start {start_ns}")
        begin = self.events["start_ns"].to_numpy()
        keep = _touches(begin, begin + self.events["dur_ns"].to_numpy(), start_ns, end_ns)
        runs, items = self.runs, self.items
        ran = _touches(runs["start_ns"].to_numpy(), runs["end_ns"].to_numpy(), start_ns, end_ns)
        put = items["put_start_ns"].where(items["put_start_ns"] >= 0, items["put_end_ns"])
        taken = items["take_end_ns"].to_numpy()
        held = ((taken < 0) | (taken >= start_ns)) & (put.to_numpy() < end_ns)
        sent, begun, received = (self.transfers[f"{name}_ns"] for name in ("sent", "start", "end"))
        left = sent.where(sent >= 0, begun).to_numpy()
        travels = _touches(left, received.to_numpy(), start_ns, end_ns)
        return dataclasses.replace(
            self,
            events=self.events[keep],
            runs=runs[ran],
            items=items[held],
            transfers=self.transfers[travels],
            meta=self._meta_without(items[~held]),
        )

    def _meta_without(self, dropped: pd.DataFrame) -> TraceMeta:
        """Of a trace without these items: what left the buffer before is no more in it."""
        gone = dropped[dropped["put_end_ns"] < 0]["stage"].value_counts()
        left = {
            stage: max(0, count - int(gone.get(stage, 0)))
            for stage, count in self.meta.occupancy_at_start.items()
        }
        return dataclasses.replace(self.meta, occupancy_at_start=left)

    def to_pandas(self) -> pd.DataFrame:
        """The events with names in place of row numbers, one row per executed op."""
        events = self.events
        node, track = events["node"].to_numpy(), events["track"].to_numpy()
        named = {
            name: table[name].astype("category").take(rows).array
            for table, rows, names in (
                (self.nodes, node, ("name", "op", "device")),
                (self.tracks.rename(columns={"name": "track"}), track, ("track", "kind", "stage")),
            )
            for name in names
        }
        times = {name: events[name] for name in ("start_ns", "dur_ns", "delay_ns")}
        return pd.DataFrame({**times, **named, "step": events["step"]})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one Parquet file, after a self check; an interrupted save leaves no file.

        Raises:
          TraceError: the trace breaks a rule.
        """
        self.self_check()
        parquet_file.write(path, self.tables(), self.meta.to_json())

    def to_chrome(self, path: str | os.PathLike[str]) -> None:
        """Writes Chrome trace JSON for Perfetto or chrome://tracing, after a self check.

        `import_trace` reads it back, without edges, bytes and transfers.

        Raises:
          TraceError: the trace breaks a rule.
        """
        self.self_check()
        chrome_json.write(path, self.tables(), self.occupancy(), self.meta.to_json())


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads what `Trace.save` wrote, and checks it.

    Raises:
      TraceError: there is no such file, it is not a trace, is of a newer format, or breaks a rule.
    """
    read, meta = parquet_file.read(path)
    try:
        trace = Trace(**read, meta=TraceMeta.from_json(meta))
        trace.self_check()
    except TraceError as error:
        raise TraceError(f"`{os.fspath(path)}` is damaged: {error}") from error
    return trace


def _changes(items: pd.DataFrame, before: int) -> tuple[np.ndarray, np.ndarray]:
    """When a buffer that held `before` items changes, and how many it holds then."""
    put, took = items["put_end_ns"].to_numpy(), items["take_end_ns"].to_numpy()
    put, took = put[put >= 0], took[took >= 0]
    time = np.concatenate((put, took))
    change = np.repeat([1, -1], [len(put), len(took)])
    # at one moment the put comes first: an item handed straight over was in the buffer
    order = np.lexsort((-change, time))
    return time[order], np.maximum(0, before + np.cumsum(change[order]))


def _touches(begin: np.ndarray, finish: np.ndarray, low: int, high: int) -> np.ndarray:
    """Which stretches share time with [low, high), or are empty and lie in it."""
    return (begin < high) & ((finish > low) | (begin >= low))
