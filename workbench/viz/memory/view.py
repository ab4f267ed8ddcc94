"""Memory → view: the answer, the curve of a step, tables of the peak, every string finished."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.analysis.memory.memory import BUFFER, Memory
from workbench.core.graph.op_families import FAMILY_NAMES
from workbench.viz.memory.curve import Curve, step_curve
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain
from workbench.viz.style.table import Table, table_lines

_MOST_SCOPES, _MOST_NODES = 10, 20


@dataclasses.dataclass(frozen=True)
class Part:
    """A family at the peak: its swatch, name, part of the peak, and both as words."""

    swatch: str
    name: str
    width: float
    bytes: str
    share: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryView:
    """The memory of a trace, ready for every outlet.

    Attributes:
      sentence: the answer; its first piece is strong.
      notes: what the numbers leave out, a sentence each.
      curve: of one step.
      parts: what lives at the peak, by family; parts_caption: which moment that is.
      scopes, nodes: the same by name scope and by node.
      facts: peaks, buffers and variables.
    """

    sentence: tuple[str, str]
    notes: tuple[str, ...]
    curve: Curve
    parts: tuple[Part, ...]
    parts_caption: str
    scopes: Table
    nodes: Table
    facts: Table

    def describe(self) -> str:
        """Sentence, what lives at the peak, peaks beside buffers and variables, notes."""
        lines = ["".join(self.sentence), "", f"{self.parts_caption}:"]
        lines += aligned([(part.name, part.bytes, part.share) for part in self.parts], left={0})
        for table in (self.facts, self.scopes, self.nodes):
            lines += ["", f"{table.caption}:", *table_lines(table)]
        return "\n".join([*lines, "", *self.notes])


def memory_view(memory: Memory) -> MemoryView:
    """What the view of a trace's memory shows."""
    return MemoryView(
        sentence=_sentence(memory),
        notes=tuple(_notes(memory)),
        curve=step_curve(memory),
        parts=tuple(_part(*row) for row in _rows(memory.by_family())),
        parts_caption=_caption(memory),
        scopes=_scopes(memory),
        nodes=_nodes(memory),
        facts=_facts(memory),
    )


def _rows(table: pd.DataFrame) -> list[tuple[str, int, float]]:
    names = table.iloc[:, 0].tolist()
    return list(zip(names, table["bytes"].tolist(), table["share"].tolist(), strict=True))


def _part(name: str, count: int, share: float) -> Part:
    swatch = f"wbc-f{FAMILY_NAMES.index(name)}" if name in FAMILY_NAMES else "wbm-held"
    return Part(swatch, name, share, format.size(count), format.share(share))


def _sentence(memory: Memory) -> tuple[str, str]:
    name, count, share = _rows(memory.by_family())[0]
    largest = "Items in buffers" if name == BUFFER else name
    said = (
        f" live at once at the peak, and {_mean_peak(memory)} at the peak of a step on average. "
        f"The largest part is {largest}: {format.size(count)}, {format.share(share)}."
    )
    return f"{format.size(memory.peak_bytes)} of tensors", said


def _mean_peak(memory: Memory) -> str:
    mean = format.size(float(memory.step_peaks.mean()))
    interval = memory.step_peak_interval
    if interval is None:
        return f"{mean} (a single step, so without an interval)"
    about = format.interval(float(memory.step_peaks.mean()), *interval, format.size, plus="±\u00a0")
    return f"{mean} {about}"


def _caption(memory: Memory) -> str:
    steps = memory.trace.steps()
    within = steps[(steps["start_ns"] <= memory.peak_ns) & (memory.peak_ns <= steps["end_ns"])]
    if not len(within):
        return "What lives at the peak, between steps"
    number, start = int(within["number"].iloc[0]), int(within["start_ns"].iloc[0])
    after = format.duration(memory.peak_ns - start)
    return f"What lives at the peak, {after} into step {format.integer(number)}"


def _scopes(memory: Memory) -> Table:
    rows = _rows(memory.by_scope())
    shown = tuple(
        (plain(name), format.size(count), format.share(share))
        for name, count, share in rows[:_MOST_SCOPES]
    )
    more = f", {_MOST_SCOPES} of {format.integer(len(rows))}" * (len(rows) > _MOST_SCOPES)
    return Table(f"By name scope{more}", ("Scope", "At the peak", "Share"), shown)


def _nodes(memory: Memory) -> Table:
    table = memory.df
    shown = table.head(_MOST_NODES)
    columns = (
        shown["name"].map(plain),
        shown["op"].map(lambda op: plain(op) or BUFFER),
        shown["tensors"].map(format.integer),
        shown["bytes"].map(format.size),
        shown["share"].map(format.share),
    )
    more = f", {_MOST_NODES} of {format.integer(len(table))}" * (len(table) > _MOST_NODES)
    return Table(
        f"By node{more}",
        ("Node", "Op", "Runs or items", "At the peak", "Share"),
        tuple(zip(*(column.tolist() for column in columns), strict=True)),
        nodes=tuple(shown["name"].where(shown["op"] != "", "")),
    )


def _facts(memory: Memory) -> Table:
    rows = [
        ("Tensors, peak of the trace", format.size(memory.peak_bytes)),
        ("Tensors, mean of the steps' peaks", _mean_peak(memory)),
    ]
    for row in memory.buffers.to_dict("records"):
        name, mean = plain(str(row["stage"])), format.size(row["mean_bytes"])
        part = format.share(row["share"])
        rows.append((f"Buffer of {name}, one item", format.size(row["item_bytes"])))
        rows.append((f"Buffer of {name}, mean", f"{mean}, {part} of all tensors"))
    rows.append(("Variables of the model", format.size(memory.variable_bytes)))
    return Table("Beside each other", ("What", "Bytes"), tuple(rows))


def _notes(memory: Memory) -> list[str]:
    notes = [
        "Counted for each output of an op, from the begin of the op to the end of the last op that "
        "reads it; memory that ops pass on counts once, and tensors in a list count until the list "
        "is gone. Text beyond 24 bytes a string, scratch "
        "memory of kernels and the allocator's own are not in it, so a process takes more."
    ]
    if memory.variable_bytes is None:
        notes.append("The trace does not know the model's variables.")
    if memory.trace.meta.lost_ops:
        lost = format.integer(memory.trace.meta.lost_ops)
        notes.append(f"The trace lacks {lost} ops, and so what they made.")
    return notes
