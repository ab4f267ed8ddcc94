"""EmbeddingLens: the tables of a model with their ids, their size, and what they take in a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.analysis.embedding_lens.lookup_times import (
    NO_TIMES,
    PartTime,
    TableTimes,
    lookup_times,
)
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable
from workbench.core.trace.trace import Trace
from workbench.display import Displayed, charts
from workbench.errors import TraceError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LensTable:
    """One embedding table.

    Attributes:
      name: of its variable.
      facts: its size and slots; None where no program was given.
      ids: what it is asked for; None where no ids were sampled.
      times: what it takes in a step of the first trace; 0 where only the other one reads it.
        fused: in one of the second, if any; None where that trace does not read it.
    """

    name: str
    facts: EmbeddingTable | None
    ids: IdStatistics | None
    times: TableTimes
    fused: TableTimes | None

    @property
    def gathered_bytes(self) -> float | None:
        """Bytes of the rows that a step looks up, those looked up twice counted twice."""
        if self.ids is None or self.facts is None or self.facts.row_bytes is None:
            return None
        return self.ids.per_batch * self.facts.row_bytes


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EmbeddingLens(Displayed):
    """The embedding tables of a model, those that take most time first.

    Attributes:
      trace: whose times are shown. fused: that of the same model with fused lookups; None without.
      tables: of which the trace reads rows.
      batches: how many batches the ids are of; 0 where none were sampled.
      not_sampled: why none were, a clause; "" where no program was given.
    """

    trace: Trace
    fused: Trace | None
    tables: tuple[LensTable, ...]
    batches: int
    not_sampled: str = ""

    def __repr__(self) -> str:
        return f"EmbeddingLens({len(self.tables)} tables, {self.batches} batches of ids)"

    def plot(self, *, tables: Sequence[str] | None = None, theme: str | None = None) -> Figure:
        """A plotly figure of how skewed ids are: shares of lookups that the most frequent ids take.

        Args:
          tables: names of those to draw; None draws all, the first eight at once.
          theme: "light" or "dark"; None takes `plotly.io.templates.default` where one was set.

        Raises:
          OptionError: another theme, no such table, or no ids of them were sampled.
        """
        return charts().of_lens(self, tables, theme)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each table; times in ns a step, None for what is not known."""
        return pd.DataFrame([_row(table) for table in self.tables], columns=_COLUMNS)


def make_lens(
    trace: Trace,
    fused: Trace | None = None,
    facts: Mapping[str, EmbeddingTable] | None = None,
    ids: Mapping[str, IdStatistics] | None = None,
    *,
    not_sampled: str = "",
) -> EmbeddingLens:
    """Joins what is known of each table.

    Args:
      trace, fused: of the model as it is, and with fused lookups.
      facts: of the tables of its graph, by name.
      ids: of those whose ids were sampled, by name.
      not_sampled: why none were, a clause.

    Raises:
      TraceError: a trace does not know which op feeds which, or has no step.
    """
    facts, ids = facts or {}, ids or {}
    times = lookup_times(_usable(trace))
    in_fused = lookup_times(_usable(fused)) if fused is not None else {}
    # A slot is read by rows as well; only the graph tells it from a table.
    slots = {slot for table in facts.values() for slot in table.slots}
    tables = [
        LensTable(
            name=name,
            facts=facts.get(name),
            ids=ids.get(name),
            times=times.get(name, NO_TIMES),
            fused=in_fused.get(name),
        )
        for name in dict.fromkeys([*times, *in_fused])
        if name not in slots
    ]
    tables.sort(key=lambda table: (-total_ns(table.times), table.name))
    return EmbeddingLens(
        trace=trace,
        fused=fused,
        tables=tuple(tables),
        batches=max((each.batches for each in ids.values()), default=0),
        not_sampled=not_sampled,
    )


def total_ns(times: TableTimes) -> float:
    """All that a table takes in a step, in ns of op time."""
    return times.lookup.ns + times.gradient.ns + times.update.ns


def _usable(trace: Trace) -> Trace:
    if len(trace.events) and not len(trace.edges):
        raise TraceError(
            "the trace does not know which op feeds which, so no op of it is known to read a "
            "table: TensorFlow's step stats, an older version or another tool took it; capture it "
            "again without step_stats"
        )
    if not len(trace.steps()):
        raise TraceError("the trace has no step, so no table is looked up in it; capture some")
    return trace


_SIZES = ("rows", "dim", "bytes", "slot_bytes")
_IDS = ("batches", "ids_per_batch", "unique_share", "ids_seen", "top_ids", "top_share")
_PARTS = ("lookup", "gradient", "update")
_TIMES = tuple(f"{part}_{what}" for part in _PARTS for what in ("ops", "ns", "low_ns", "high_ns"))
_COLUMNS = [
    "table",
    *_SIZES,
    *_IDS,
    "gathered_bytes",
    "lookups",
    *_TIMES,
    *(f"fused_{name}" for name in _TIMES),
]


def _row(table: LensTable) -> dict[str, Any]:
    facts, ids = table.facts, table.ids
    row: dict[str, Any] = {"table": table.name, "lookups": table.times.lookups}
    row |= {name: getattr(facts, name) for name in _SIZES} if facts else {}
    if ids:
        row |= {
            "batches": ids.batches,
            "ids_per_batch": ids.per_batch,
            "unique_share": ids.unique_share,
            "ids_seen": ids.seen,
            "top_ids": ids.top_ids,
            "top_share": ids.top_share,
            "gathered_bytes": table.gathered_bytes,
        }
    for lead, times in (("", table.times), ("fused_", table.fused)):
        if times is not None:
            for part in _PARTS:
                row |= _cells(f"{lead}{part}", getattr(times, part))
    return row


def _cells(name: str, part: PartTime) -> dict[str, Any]:
    low, high = part.interval_ns or (None, None)
    return {
        f"{name}_ops": part.ops,
        f"{name}_ns": part.ns,
        f"{name}_low_ns": low,
        f"{name}_high_ns": high,
    }
