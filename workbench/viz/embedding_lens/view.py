"""EmbeddingLens → what its table shows, every string finished; bars as fractions of their axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.analysis.embedding_lens.lens import EmbeddingLens, LensTable, total_ns
from workbench.core.analysis.embedding_lens.lookup_times import PartTime, TableTimes
from workbench.core.graph.op_families import GRADIENT, LOOKUP, UPDATE
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain

_MOST_OPEN = 12
_NOT_SAMPLED = "not sampled"
_PARTS = ("lookup", "gradient", "update")
# The family whose color a part has.
_COLORS = (LOOKUP, GRADIENT, UPDATE)


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece of a bar: number of its op family, and its width as a fraction of the axis."""

    family: int
    width: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A table, or all of them.

    Attributes:
      name: of the table.
      size, ids: cells below the heads of the same name.
      bars: now and, with a second trace, fused: label, pieces and total.
      times: cells below the heads of times: now and, with a second trace, fused.
    """

    name: str
    size: tuple[str, ...]
    ids: tuple[str, ...]
    bars: tuple[tuple[str, tuple[Piece, ...], str], ...]
    times: tuple[tuple[str, ...], ...]

    def cells(self) -> tuple[str, ...]:
        """Name, sizes, ids and times, for a table of text."""
        return (self.name, *self.size, *self.ids, *(cell for cells in self.times for cell in cells))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LensView:
    """A lens, ready for every outlet.

    Attributes:
      sentence: the answer; its first piece is strong.
      notes: how to read it, a sentence each.
      legend: parts of the bars, with their families.
      size_heads, id_heads, time_heads: of the columns after the name, without the bars.
      rows: tables in their order. rest: those that are folded away. total: of all.
      rest_title: what opens the folded ones.
    """

    sentence: tuple[str, str]
    notes: tuple[str, ...]
    legend: tuple[tuple[str, int], ...]
    size_heads: tuple[str, ...]
    id_heads: tuple[str, ...]
    time_heads: tuple[str, ...]
    rows: tuple[Row, ...]
    rest: tuple[Row, ...]
    rest_title: str
    total: Row | None

    def describe(self) -> str:
        """Sentence, a line for each table, notes."""
        lines = ["".join(self.sentence)]
        if self.rows:
            which = ("", "fused")[: len(self.rows[0].bars)]
            times = (f"{head} {when}".strip() for head in self.time_heads for when in which)
            heads = ("Table", *self.size_heads, *self.id_heads, *times)
            rows = [*self.rows, *self.rest, *([self.total] if self.total else [])]
            lines += ["", *aligned([heads, *(row.cells() for row in rows)], left={0}), ""]
        return "\n".join([*lines, *self.notes])


def lens_view(lens: EmbeddingLens) -> LensView:
    """What the table of a lens shows."""
    most = max((_longest(table) for table in lens.tables), default=0.0) or 1.0
    rows = [_row(lens, table, most) for table in lens.tables]
    rest = rows[_MOST_OPEN:]
    return LensView(
        sentence=_sentence(lens),
        notes=tuple(_notes(lens)),
        legend=tuple(zip(_PARTS, _COLORS, strict=True)),
        size_heads=("Rows × dim", "Memory", "With slots"),
        id_heads=("Ids a batch", "Unique", "Top 1\u00a0%", "Gathered"),
        time_heads=("Lookup", "Gradient, update"),
        rows=tuple(rows[:_MOST_OPEN]),
        rest=tuple(rest),
        rest_title=f"{format.integer(len(rest))} more table{'s' * (len(rest) != 1)}",
        total=_total(lens) if len(rows) > 1 else None,
    )


def _longest(table: LensTable) -> float:
    return max(total_ns(times) for times in (table.times, table.fused) if times is not None)


def _row(lens: EmbeddingLens, table: LensTable, most: float) -> Row:
    facts, ids = table.facts, table.ids
    shape = format.UNKNOWN
    if facts is not None and facts.rows is not None and facts.dim is not None:
        shape = f"{format.integer(facts.rows)} × {format.integer(facts.dim)}"
    sizes = (facts.bytes, _with_slots(table)) if facts else (None, None)
    bars = [("now", _pieces(table.times, most), format.duration(total_ns(table.times)))]
    if lens.fused is not None:
        spent = format.duration(total_ns(table.fused)) if table.fused else format.UNKNOWN
        bars.append(("fused", _pieces(table.fused, most), spent))
    return Row(
        name=plain(table.name),
        size=(shape, *(format.size(each) for each in sizes)),
        ids=(
            format.integer(round(ids.per_batch)) if ids else _NOT_SAMPLED,
            format.share(ids.unique_share) if ids else format.UNKNOWN,
            _top(ids.top_share, ids.top_ids) if ids else format.UNKNOWN,
            format.size(table.gathered_bytes),
        ),
        bars=tuple(bars),
        times=_times(lens, table.times, table.fused),
    )


def _times(
    lens: EmbeddingLens, now: TableTimes, fused: TableTimes | None
) -> tuple[tuple[str, ...], ...]:
    both = (now, fused) if lens.fused is not None else (now,)
    return (
        tuple(_spent((t.lookup,)) if t else format.UNKNOWN for t in both),
        tuple(_spent((t.gradient, t.update)) if t else format.UNKNOWN for t in both),
    )


def _spent(parts: Sequence[PartTime]) -> str:
    """The time of parts with its interval, and of how many ops."""
    ns, ops = sum(part.ns for part in parts), sum(part.ops for part in parts)
    if not ops:
        return format.UNKNOWN
    halves = [(each[1] - each[0]) / 2 for part in parts if (each := part.interval_ns)]
    about = ""
    if len(halves) == len(parts):
        half = sum(half**2 for half in halves) ** 0.5
        words = format.interval(ns, ns - half, ns + half, format.duration, plus="±\u00a0")
        about = f" {words}"
    return f"{format.duration(ns)}{about}, {format.integer(ops)} op{'s' * (ops != 1)}"


def _pieces(times: TableTimes | None, most: float) -> tuple[Piece, ...]:
    if times is None:
        return ()
    return tuple(
        Piece(family, getattr(times, part).ns / most)
        for part, family in zip(_PARTS, _COLORS, strict=True)
        if getattr(times, part).ns
    )


def _with_slots(table: LensTable) -> int | None:
    facts = table.facts
    if facts is None or facts.bytes is None or facts.slot_bytes is None:
        return None
    return facts.bytes + facts.slot_bytes


def _top(part: float | None, ids: int) -> str:
    if part is None:
        return format.UNKNOWN
    return f"{format.share(part)} ({format.integer(ids)} id{'s' * (ids != 1)})"


def _sentence(lens: EmbeddingLens) -> tuple[str, str]:
    tables = lens.tables
    if not tables:
        return "No embedding table", ": no op of the trace reads rows of a variable."
    now = sum(total_ns(table.times) for table in tables)
    count = f"{format.integer(len(tables))} embedding table{'s' * (len(tables) != 1)}"
    strong = f"{count}, {format.duration(now)} of op time a step"
    parts = [sum(getattr(table.times, part).ns for table in tables) for part in _PARTS]
    said = "lookups {}, gradients {}, updates {}.".format(*map(format.duration, parts))
    if lens.fused is not None:
        fused = [table.fused for table in tables if table.fused is not None]
        spent = format.duration(sum(total_ns(times) for times in fused))
        missing = len(tables) - len(fused)
        without = f" ({format.integer(missing)} of them not in that trace)" * bool(missing)
        said += f" Fused: {spent}{without}."
    return strong, f": {said}"


def _notes(lens: EmbeddingLens) -> list[str]:
    notes = [
        "Op time is summed over threads, with a 95\u00a0% interval that takes steps as "
        "independent; it says what work there is, not by how much a step gets shorter."
    ]
    if lens.batches:
        notes.append(
            f"Ids of {format.integer(lens.batches)} batches, fetched without training. Unique: "
            "different ids of a batch over its ids. Top 1\u00a0%: of the ids that the first half "
            "of the batches has, the most frequent hundredth; and the part of the lookups of the "
            "second half that asks for them."
        )
    elif lens.not_sampled:
        notes.append(f"Ids and sizes were not sampled: {plain(lens.not_sampled)}.")
    else:
        notes.append(
            "Ids and sizes were not sampled: a trace holds no values. Give program= to read them."
        )
    if any(table.facts and table.facts.slots for table in lens.tables):
        notes.append("Slots: what the optimizer keeps for each row.")
    return notes


def _total(lens: EmbeddingLens) -> Row:
    tables = lens.tables
    held = [table.facts.bytes if table.facts else None for table in tables]
    with_slots = [_with_slots(table) for table in tables]
    gathered = [table.gathered_bytes for table in tables]
    ids = [table.ids.per_batch for table in tables if table.ids]
    counted = format.integer(round(sum(ids))) if len(ids) == len(tables) else format.UNKNOWN
    both = [[table.times for table in tables]]
    if lens.fused is not None:
        both.append([table.fused for table in tables if table.fused])
    lookups = tuple(format.duration(sum(t.lookup.ns for t in each)) for each in both)
    others = tuple(format.duration(sum(t.gradient.ns + t.update.ns for t in each)) for each in both)
    return Row(
        name="All tables",
        size=("", _size_of_all(held), _size_of_all(with_slots)),
        ids=(counted, "", "", _size_of_all(gathered)),
        bars=(),
        times=(lookups, others),
    )


def _size_of_all(sizes: Sequence[float | None]) -> str:
    known = [size for size in sizes if size is not None]
    return format.size(sum(known)) if len(known) == len(sizes) else format.UNKNOWN
