"""Limit → view: the answer, the parts of a step, tables of families, ops and peaks."""

from __future__ import annotations

import dataclasses

from workbench.core.analysis.limit.limit import Limit
from workbench.core.analysis.limit.work import PRODUCTS
from workbench.viz.limit.sentence import idle_sentence, limit_sentence
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain
from workbench.viz.style.table import Table, table_lines

_MOST_OPS = 20
_NS = 1e9
# What this share of the ops' time is unknown of is said.
_WORTH_SAYING = 0.02


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the step: its swatch, its name, its share of the step, its time and share in
    words."""

    swatch: str
    name: str
    width: float
    time: str
    share: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitView:
    """The limit of a step, ready for every outlet.

    Attributes:
      label: of the variant; "" of a trace alone.
      sentence: the answer; its first piece is strong.
      idle: why cores idle; "" where they do not.
      parts: of the step.
      families, ops: what they had to do, and took.
      peaks: of the machine.
      notes: what the numbers leave out, a sentence each.
    """

    label: str
    sentence: tuple[str, str]
    idle: str
    parts: tuple[Part, ...]
    families: Table
    ops: Table
    peaks: Table
    notes: tuple[str, ...]

    def describe(self) -> str:
        """Sentences, the parts of a step, families, ops, peaks, notes."""
        lines = [self.label, ""] if self.label else []
        lines += ["".join(self.sentence), *filter(None, [self.idle]), ""]
        lines += aligned([(part.name, part.time, part.share) for part in self.parts], left={0})
        for table in (self.families, self.ops, self.peaks):
            lines += ["", f"{table.caption}:", *table_lines(table)]
        return "\n".join([*lines, "", *self.notes])


def limit_view(limit: Limit, label: str = "") -> LimitView:
    """What the view of a limit shows."""
    return LimitView(
        label=plain(label),
        sentence=limit_sentence(limit),
        idle=idle_sentence(limit),
        parts=tuple(_parts(limit)),
        families=_families(limit),
        ops=_ops(limit),
        peaks=_peaks(limit),
        notes=tuple(_notes(limit)),
    )


def _parts(limit: Limit) -> list[Part]:
    named = {
        "least": "At the peaks",
        "below peak": "Ops below peak",
        "beside the ops": "Work beside the ops",
        "idle: an op is ready": "Idle: an op is ready",
        "idle: waits": "Idle: the step waits",
        "idle: nothing is ready": "Idle: nothing is ready",
    }
    rows = limit.parts().to_dict("records")
    return [
        Part(
            f"wbl-p{number}",
            named[str(row["part"])],
            max(0.0, row["share"]),
            format.duration(row["ns"]),
            format.share(row["share"]),
        )
        for number, row in enumerate(rows)
    ]


def _families(limit: Limit) -> Table:
    rows = [
        (
            str(row["family"]),
            format.integer(row["ops"]),
            _flops(row["flops"]),
            format.size(row["bytes"]),
            format.duration(row["least_ns"]),
            format.duration(row["took_ns"]),
        )
        for row in limit.by_family().to_dict("records")
    ]
    took = format.duration(limit.floor_ns + limit.below_peak_ns)
    total = ("All ops", "", "", "", format.duration(limit.floor_ns), took)
    heads = ("Family", "Ops", "Arithmetic", "Moved", "At least", "Takes")
    return Table("By op family, as if all cores did it", heads, tuple(rows), total)


def _ops(limit: Limit) -> Table:
    shown = limit.df.head(_MOST_OPS).to_dict("records")
    rows = [
        (
            plain(row["name"]),
            plain(row["op"]),
            row["bound"] or "not known",
            _flops(row["flops"]),
            format.size(row["bytes"]),
            format.duration(row["least_ns"]),
            format.duration(row["took_ns"]),
        )
        for row in shown
    ]
    many = len(limit.df) > _MOST_OPS
    more = f", {_MOST_OPS} of {format.integer(len(limit.df))}" * many
    heads = ("Node", "Op", "Bound by", "Arithmetic", "Moved", "At least", "Takes")
    names = tuple(str(row["name"]) for row in shown)
    return Table(f"By node, of one core{more}", heads, tuple(rows), nodes=names, words=_WORDS)


_WORDS = frozenset({1, 2})


def _peaks(limit: Limit) -> Table:
    peaks = limit.peaks
    products = [
        (f"Multiply-adds, {dtype}", f"{_flops(2 * rate)}/s")
        for dtype, rate in peaks.multiply_adds.items()
    ]
    rows = [
        *products,
        ("Bytes of a core's own cache", f"{format.size(peaks.cached_bytes)}/s"),
        ("Bytes of a shared cache", f"{format.size(peaks.shared_bytes)}/s"),
        ("Bytes of memory, in order", f"{format.size(peaks.memory_bytes)}/s"),
        (
            "Random reads of 64 bytes of a cache",
            f"{format.duration(_NS / peaks.cached_lines)} each",
        ),
        ("Random reads of 64 bytes of memory", f"{format.duration(_NS / peaks.lines)} each"),
        ("Fields of text", f"{format.duration(_NS / peaks.fields)} each"),
    ]
    return Table("What a core does at most, while all do it", ("What", "Peak"), tuple(rows))


def _flops(count: float) -> str:
    """Floating-point operations: "2.4 Gflop"."""
    value, units = float(count), ("flop", "kflop", "Mflop", "Gflop", "Tflop")
    place = 0
    while value >= 999.5 and place + 1 < len(units):
        value, place = value / 1000, place + 1
    digits = 1 if place and value < 9.95 else 0
    return f"{value:.{digits}f}{format.NBSP}{units[place]}"


def _notes(limit: Limit) -> list[str]:
    one_core = format.duration(limit.one_core_ns)
    notes = [
        f"One core alone, one op after another, would need at least {one_core}. The least is that "
        "of this arithmetic at the peaks measured here, with every tensor read and written once; "
        "a model of other arithmetic has another one."
    ]
    if limit.exceeded:
        notes.append(
            "Some ops were faster than the peaks, which are too low: measure them again on an idle "
            "machine, with wb.limit(…, again=True)."
        )
    if limit.unknown_share > _WORTH_SAYING:
        share = format.share(limit.unknown_share)
        notes.append(f"Of {share} of the ops' time the least is not known, and counts as none.")
    if limit.peaks.cores != limit.cores:
        notes.append(
            f"The steps had {limit.cores} cores and this machine has {limit.peaks.cores}: the "
            "peaks are of another machine than the trace."
        )
    if limit.trace.meta.lost_ops:
        lost = format.integer(limit.trace.meta.lost_ops)
        notes.append(f"The trace lacks {lost} ops, which count as idle cores.")
    if not (limit.df["bound"] == PRODUCTS).any():
        notes.append("No op of these steps is bound by its multiply-adds.")
    return notes
