"""Tally: what became of many programs of one kind."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

_COUNTED = ("steps", "raced", "refused_feeds", "edits", "refused_edits", "varied")


@dataclasses.dataclass
class Tally:
    """Counts of programs, and those that differ.

    Attributes:
      programs: how many; `skipped`, of those that cannot be built.
      fused, staged: in how many something was really fused, or ran ahead.
      counts: sums of what results count.
      faults: of each signature the seeds, and the first difference in words.
      orders: how many fetched values have their rows in another order.
    """

    programs: int = 0
    skipped: int = 0
    fused: int = 0
    staged: int = 0
    different: int = 0
    orders: int = 0
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: dict[str, tuple[list[int], str, bool]] = dataclasses.field(default_factory=dict)

    def add(self, record: dict[str, Any]) -> str:
        """Adds the record of a program; returns a difference of a new kind in words, or ""."""
        self.programs += 1
        self.skipped += bool(record["skipped"])
        self.fused += record["fused"] > 0
        self.staged += record["staged"] > 0
        self.orders += record["orders"]
        self.counts.update({name: record[name] for name in _COUNTED})
        self.different += bool(record["differences"])
        for sign, text in record["differences"][:1]:
            seeds, _, _ = self.faults.setdefault(sign, ([], text, record["ref"]))
            seeds.append(record["seed"])
            if len(seeds) == 1:
                return f"seed {record['seed']}{' (ref)' if record['ref'] else ''}: {text}"
        return ""

    def __str__(self) -> str:
        counts = self.counts
        parts = [
            f"{self.programs} programs",
            f"{self.fused} fused",
            *([f"{self.staged} staged"] if self.staged else []),
            *([f"{self.skipped} not built"] if self.skipped else []),
            f"{counts['steps']} runs compared",
            f"{counts['raced']} runs race and are left out",
            f"{counts['refused_feeds']} feeds refused",
            f"{counts['edits']} edits, {counts['refused_edits']} refused",
            f"{counts['varied']} values vary in stock",
            f"{self.orders} values in another order",
            f"{self.different} programs differ",
        ]
        return ", ".join(parts)
